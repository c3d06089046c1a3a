"""The command line ``ramet-server``."""

from importlib import import_module

import click

from ramet_server import __version__

_COMMANDS = {
    "all": "ramet_server.commands.start:serve_all",
    "session": "ramet_server.commands.start:serve_session",
    "tree": "ramet_server.commands.start:serve_tree",
    "telemetry": "ramet_server.commands.start:serve_telemetry",
    "migrate": "ramet_server.commands.migrate:migrate",
    "sweep": "ramet_server.commands.sweep:sweep",
    "delete-space": "ramet_server.commands.delete_space:delete_space",
    "export": "ramet_server.commands.archive:export",
    "import": "ramet_server.commands.archive:import_",
    "verify": "ramet_server.commands.verify:verify",
    "health": "ramet_server.commands.ask_health:health",
}


class _LoadedWhenUsed(click.Group):
    """Loads the module of a command only when it is called, which makes a health check four times as fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command


@click.group(cls=_LoadedWhenUsed, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="ramet-server")
def main() -> None:
    """Serves Ramet's services over gRPC.

    Every option can come from the environment, too.
    """
