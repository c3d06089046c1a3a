"""The command that brings a database's schema to this program's revision."""

import click

from ramet_server.database.database import Database
from ramet_server.database.schema import upgrade
from ramet_server.domain.call import Call
from ramet_server.domain.errors import RametError
from ramet_server.serving.logs import logging_to
from ramet_server.serving.settings import Settings, settings_options


@click.command(short_help="Bring the database's schema up to date.")
@settings_options("database_url", "log_format", "log_level")
def migrate(database_url: str, log_format: str, log_level: str) -> None:
    """Brings the schema of a database to the revision of this program, alone among all that try.

    An empty database is set up; one that is up to date is left as it is.
    """
    settings = Settings(database_url=database_url, log_format=log_format, log_level=log_level)
    database = open_database(settings, pool_size=1)
    try:
        with logging_to(None, settings.log_format, settings.log_level):
            before, after = upgrade(database, Call(space=""))
    except RametError as error:
        raise click.ClickException(error.message) from error
    finally:
        database.close()
    if before == after:
        click.echo(f"The schema is at revision {after} already.")
    else:
        click.echo(f"The schema went from revision {before or 'none'} to {after}.")


def open_database(settings: Settings, pool_size: int) -> Database:
    """Returns the database of the settings, not connected yet; a bad URL ends the command with one line."""
    try:
        return Database.open(settings.database_url, pool_size)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
