"""Serving in this process: some services over one database, until it is asked to stop."""

import asyncio
import gc
import json
import time
from collections.abc import Sequence
from typing import Any, Protocol

import click

from ramet_server import __version__
from ramet_server.commands.migrate import open_database
from ramet_server.commands.services import ServedService, of_command
from ramet_server.database.database import Database
from ramet_server.database.schema import prepare
from ramet_server.domain.call import Call
from ramet_server.domain.clock import SystemClock
from ramet_server.serving.address import local_address
from ramet_server.serving.listen import Background, Server, Servicer
from ramet_server.serving.logs import logging_to
from ramet_server.serving.readiness import PING_SECONDS, StartRefused
from ramet_server.serving.settings import Settings
from ramet_server.serving.stop_signals import stop_signals
from ramet_server.sweeping import Sweep, in_background


class Role(Protocol):
    """What a process is among those that serve its address."""

    number: int
    """0 where it is alone, else the number of the worker, from 1 on."""

    def stops(self) -> tuple[asyncio.Event, asyncio.Event]:
        """Returns what asks to drain and what asks to end at once; called within the event loop."""

    def announce(self, text: str) -> None:
        """Tells that calls are taken."""


class _Alone:
    number = 0

    def stops(self) -> tuple[asyncio.Event, asyncio.Event]:
        return stop_signals()

    def announce(self, text: str) -> None:
        click.echo(text)


def start(command: str, settings: Settings) -> None:
    """Serves what a command names, in this process alone; see serve."""
    serve(settings, of_command(command))


def serve(settings: Settings, services: Sequence[ServedService], role: Role | None = None) -> None:
    """Serves until it is asked to stop, then drains; raises ClickException with one line where it cannot start."""
    role = role or _Alone()
    beside = {"worker": role.number} if role.number else {}
    database = open_database(settings, settings.pool_size)
    try:
        with logging_to(None, settings.log_format, settings.log_level, beside):
            asyncio.run(_serve(settings, services, database, role))
    except StartRefused as error:
        raise click.ClickException(str(error)) from error
    finally:
        database.close()


async def _serve(settings: Settings, services: Sequence[ServedService], database: Database, role: Role) -> None:
    stop, stop_now = role.stops()
    # The first worker sweeps for all of them.
    background = _background(settings, database) if role.number <= 1 else []
    server = make_server(settings, services, database, background)
    try:
        await server.start()
        await server.wait_for_first_look()
        # What is loaded by now stays, and need not be looked at by each full collection: of 64 appends at once the
        # slowest hundredth took 104 ms in place of 137.
        gc.collect()
        gc.freeze()
        role.announce(_announcement(settings, services, server.address))
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


async def _first_to_end(*works: Any) -> None:
    tasks = [asyncio.ensure_future(work) for work in works]
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    for task in done:
        task.result()


def _announcement(settings: Settings, services: Sequence[ServedService], address: str) -> str:
    """Returns what tells where and how the server runs, in the form of the logs."""
    names = ", ".join(each.name for each in services)
    if settings.log_format == "json":
        told = {"message": "Listening", "address": address, "services": names, "version": __version__}
        return json.dumps(told | {"settings": settings.shown()})
    method, body = services[0].example
    full_name = f"{services[0].descriptor.full_name}/{method}"
    place = address.replace("unix:", "-unix ", 1) if address.startswith("unix:") else local_address(address)
    return "\n".join(
        [
            f"ramet-server {__version__}: {names}",
            *(f"  {name}={value}" for name, value in settings.shown().items()),
            f"Listening on {address}",
            f"Try: grpcurl -plaintext -d '{body}' {place} {full_name}",
        ]
    )
