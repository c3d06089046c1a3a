"""Serving by several workers: this process holds the address and looks after them."""

import asyncio
import sys

import click

from ramet_server.serving.address import AddressRefused, held
from ramet_server.serving.logs import logging_to
from ramet_server.serving.replicas import Replicas, ReplicasFailed
from ramet_server.serving.settings import Settings


def start(command: str, settings: Settings) -> None:
    """Serves what a command names until SIGTERM or SIGINT, then drains; where it cannot, it raises ClickException."""
    if settings.listen.startswith("unix:"):
        raise click.UsageError(
            f"--workers (RAMET_WORKERS) of {settings.workers} needs HOST:PORT: workers cannot share {settings.listen}."
        )
    try:
        with held(settings.listen) as address, logging_to(None, settings.log_format, settings.log_level):
            replicas = Replicas(lambda number: _worker(command, number), settings, address)
            asyncio.run(replicas.run(click.echo))
    except (AddressRefused, ReplicasFailed) as error:
        raise click.ClickException(str(error)) from error


def _worker(command: str, number: int) -> list[str]:
    # -P, since with -m Python would look for modules in the working directory first.
    return [sys.executable, "-P", "-m", "ramet_server.commands.worker", command, str(number)]
