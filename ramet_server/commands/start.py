"""The commands that serve: every service on one address, or one alone."""

from importlib import import_module
from typing import Any

import click

from ramet_server.serving.settings import settings_from, settings_options


@click.command("all", short_help="Serve every service on one port.")
@settings_options()
def serve_all(**values: Any) -> None:
    """Serves every service on one port."""
    _start("all", values)


@click.command("session", short_help="Serve SessionStorage.")
@settings_options()
def serve_session(**values: Any) -> None:
    """Serves SessionStorage: the content of sessions."""
    _start("session", values)


@click.command("tree", short_help="Serve SessionTree.")
@settings_options()
def serve_tree(**values: Any) -> None:
    """Serves SessionTree: the shape of the forest."""
    _start("tree", values)


@click.command("telemetry", short_help="Serve Telemetry.")
@settings_options()
def serve_telemetry(**values: Any) -> None:
    """Serves Telemetry: what agents did, step by step."""
    _start("telemetry", values)


def _start(command: str, values: dict[str, Any]) -> None:
    settings = settings_from(values)
    # The services are loaded only where this process serves them, so that a parent of workers stays small.
    name = "serve" if settings.workers == 1 else "replicate"
    import_module(f"ramet_server.commands.{name}").start(command, settings)
