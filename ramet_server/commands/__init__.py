"""The command line ``ramet-server``."""

import click

from ramet_server import __version__
from ramet_server.commands.ask_health import health
from ramet_server.commands.migrate import migrate
from ramet_server.commands.serve import serve_all, serve_session, serve_tree


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="ramet-server")
def main() -> None:
    """Serves Ramet's services over gRPC.

    Every option can come from the environment, too.
    """


for command in (serve_all, serve_session, serve_tree, migrate, health):
    main.add_command(command)
