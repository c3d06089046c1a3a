"""The commands that serve: every service in one process, or one alone."""

import asyncio
import json
import signal
import time
from collections.abc import Sequence
from typing import Any

import click

from ramet_server import __version__
from ramet_server.commands.migrate import open_database
from ramet_server.commands.services import ALL, SESSION, TELEMETRY, TREE, ServedService
from ramet_server.database.database import Database
from ramet_server.database.schema import prepare
from ramet_server.domain.call import Call
from ramet_server.domain.clock import SystemClock
from ramet_server.serving.address import local_address
from ramet_server.serving.listen import Background, Server, Servicer
from ramet_server.serving.logs import logging_to
from ramet_server.serving.readiness import PING_SECONDS, StartRefused
from ramet_server.serving.settings import Settings, settings_from, settings_options
from ramet_server.sweeping import Sweep, in_background


@click.command("all", short_help="Serve every service on one port.")
@settings_options()
def serve_all(**values: Any) -> None:
    """Serves every service in one process, on one port."""
    serve(settings_from(values), ALL)


@click.command("session", short_help="Serve SessionStorage.")
@settings_options()
def serve_session(**values: Any) -> None:
    """Serves SessionStorage: the content of sessions."""
    serve(settings_from(values), [SESSION])


@click.command("tree", short_help="Serve SessionTree.")
@settings_options()
def serve_tree(**values: Any) -> None:
    """Serves SessionTree: the shape of the forest."""
    serve(settings_from(values), [TREE])


@click.command("telemetry", short_help="Serve Telemetry.")
@settings_options()
def serve_telemetry(**values: Any) -> None:
    """Serves Telemetry: what agents did, step by step."""
    serve(settings_from(values), [TELEMETRY])


def serve(settings: Settings, services: Sequence[ServedService]) -> None:
    """Serves until SIGTERM or SIGINT, then drains; raises ClickException with one line where it cannot start."""
    database = open_database(settings, settings.pool_size)
    try:
        with logging_to(None, settings.log_format, settings.log_level):
            asyncio.run(_serve(settings, services, database))
    except StartRefused as error:
        raise click.ClickException(str(error)) from error
    finally:
        database.close()


async def _serve(settings: Settings, services: Sequence[ServedService], database: Database) -> None:
    stop, stop_now = _signals()
    server = make_server(settings, services, database, _background(settings, database))
    try:
        await server.start()
        await server.wait_for_first_look()
        _announce(settings, services, server.address)
        await server.serve(stop)
        await _first_to_end(server.drain(), stop_now.wait())
    finally:
        await server.stop_now()


def make_server(
    settings: Settings, services: Sequence[ServedService], database: Database, background: Sequence[Background] = ()
) -> Server:
    """Builds the server of some services over one database; to be called within the event loop."""
    clock = SystemClock()
    return Server(
        settings,
        [Servicer(each.descriptor, each.build(database, settings.limits(), clock)) for each in services],
        lambda: prepare(database, Call(space="")),
        lambda: database.ping(Call(space="", deadline=time.monotonic() + PING_SECONDS)),
        # A file that cannot be used now will not come by itself, as a database server may.
        insist=database.engine.dialect.name == "sqlite",
        background=background,
    )


def _background(settings: Settings, database: Database) -> list[Background]:
    """Returns what runs beside the calls: whatever a server serves, it sweeps for all."""
    if not settings.sweep_seconds:
        return []
    return [in_background(Sweep(database, settings.limits(), SystemClock()).steps, settings.sweep_seconds)]


def _signals() -> tuple[asyncio.Event, asyncio.Event]:
    """Returns what the first SIGTERM or SIGINT sets, and what the second sets."""
    first, second = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        (second if first.is_set() else first).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    return first, second


async def _first_to_end(*works: Any) -> None:
    tasks = [asyncio.ensure_future(work) for work in works]
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    for task in done:
        task.result()


def _announce(settings: Settings, services: Sequence[ServedService], address: str) -> None:
    """Tells on standard output where and how the server runs, in the form of the logs."""
    names = ", ".join(each.name for each in services)
    if settings.log_format == "json":
        told = {"message": "Listening", "address": address, "services": names, "version": __version__}
        click.echo(json.dumps(told | {"settings": settings.shown()}))
        return
    click.echo(f"ramet-server {__version__}: {names}")
    for name, value in settings.shown().items():
        click.echo(f"  {name}={value}")
    click.echo(f"Listening on {address}")
    method, body = services[0].example
    full_name = f"{services[0].descriptor.full_name}/{method}"
    place = address.replace("unix:", "-unix ", 1) if address.startswith("unix:") else local_address(address)
    click.echo(f"Try: grpcurl -plaintext -d '{body}' {place} {full_name}")
