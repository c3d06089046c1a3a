"""Holds command lines that containers run against the command line that there is."""

from collections.abc import Iterable

import click

from ramet_server.commands import main
from ramet_server.serving.settings import environment_names

PROGRAM = "ramet-server"


def check_command(arguments: list[str]) -> click.Command:
    """Parses the arguments of ``ramet-server`` without running anything, and returns the command that they choose.

    Raises ClickException where there is no such command, option or value.
    """
    with click.Context(main, info_name=PROGRAM) as context:
        _, command, rest = main.resolve_command(context, arguments)
        assert command is not None
        command.make_context(arguments[0], rest, parent=context)
        return command


def check_settings(names: Iterable[str]) -> None:
    """Fails where a variable that looks like a setting is none."""
    unknown = {name for name in names if name.startswith("RAMET_")} - set(environment_names())
    assert not unknown, f"no such settings: {unknown}"


def port_of(address: str) -> int:
    """Returns the port of HOST:PORT."""
    return int(address.rpartition(":")[2])
