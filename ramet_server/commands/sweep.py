"""The command that makes one pass of the sweep."""

from typing import Any

import click

from ramet_server.commands.migrate import open_database
from ramet_server.database.schema import SchemaState, state
from ramet_server.domain.call import Call
from ramet_server.domain.clock import SystemClock
from ramet_server.domain.errors import RametError
from ramet_server.serving.logs import logging_to
from ramet_server.serving.settings import settings_from, settings_options
from ramet_server.sweeping import Sweep


@click.command(short_help="Finish now what calls and crashes left to do.")
@settings_options("database_url", "request_id_hours", "await_content_seconds", "log_format", "log_level")
def sweep(**values: Any) -> None:
    """Makes one pass of the sweep over a database, and prints what was done.

    Servers do this by themselves from time to time; it is safe beside them.
    """
    settings = settings_from(values)
    database = open_database(settings, pool_size=1)
    try:
        with logging_to(None, settings.log_format, settings.log_level):
            if state(database, Call(space="")) is not SchemaState.CURRENT:
                raise click.ClickException("The schema is not this program's: run `ramet-server migrate` first.")
            counts = Sweep(database, settings.limits(), SystemClock()).run(Call(space=""))
    except RametError as error:
        raise click.ClickException(error.message) from error
    finally:
        database.close()
    for name, count in vars(counts).items():
        click.echo(f"{name}={count}")
