"""The command that deletes everything of one space."""

import sys
from typing import Any

import click

from ramet_server.clearing import Cleared, Clearing
from ramet_server.commands.migrate import open_database
from ramet_server.database.schema import SchemaState, state
from ramet_server.domain.call import Call
from ramet_server.domain.clock import SystemClock
from ramet_server.domain.errors import RametError
from ramet_server.domain.ids import check_id
from ramet_server.serving.logs import logging_to
from ramet_server.serving.settings import settings_from, settings_options


@click.command("delete-space", short_help="Delete everything of one space.")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do it; without this it only counts the rows that would go.")
@settings_options("database_url", "log_format", "log_level")
def delete_space(name: str, yes: bool, **values: Any) -> None:
    """Deletes everything of one space: sessions, records, forest, telemetry, and what is remembered of requests.

    Stop its writers first: what they write meanwhile may stay. It can be cut and run again. Exits with 1 where
    something is left, and says what.
    """
    settings = settings_from(values)
    database = open_database(settings, pool_size=1)
    try:
        with logging_to(None, settings.log_format, settings.log_level):
            call = Call(space=check_id(name, "NAME"))
            if state(database, call) is not SchemaState.CURRENT:
                raise click.ClickException("The schema is not this program's: run `ramet-server migrate` first.")
            clearing = Clearing(database, settings.limits(), SystemClock())
            left = _delete(clearing, call) if yes else None
            rows = clearing.foretell(call) if left is None else left
    except RametError as error:
        raise click.ClickException(error.message) from error
    finally:
        database.close()
    for table, count in rows.items():
        click.echo(f"{table}={count}")
    if left is None:
        click.echo("Nothing was deleted: add --yes to do it." if rows else "There is nothing of this space.")
    elif left:
        click.echo("This was written meanwhile: stop the writers of the space, and run it again.")
        sys.exit(1)


def _delete(clearing: Clearing, call: Call) -> dict[str, int]:
    """Deletes the space, telling on standard error how far it came; returns the rows that are left, by table."""
    cleared = Cleared()
    told = ""
    for cleared in clearing.run(call):
        now = f"sessions={cleared.sessions} nodes={cleared.nodes} diagnoses={cleared.diagnoses} notes={cleared.notes}"
        if now != told:
            click.echo(now, err=True)
            told = now
    click.echo(f"deleted {told}")
    return dict(cleared.left)
