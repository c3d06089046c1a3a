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
from ramet_server.sweeping import Counts, Sweep


@click.command(short_help="Finish now what calls and crashes left to do.")
@settings_options(
    "database_url",
    "request_id_hours",
    "await_content_seconds",
    "tree_change_days",
    "session_days",
    "telemetry_days",
    "telemetry_on_delete",
    "log_format",
    "log_level",
)
@click.option("--dry-run", is_flag=True, help="Only count what would go by age, and of telemetry; change nothing.")
def sweep(dry_run: bool, **values: Any) -> None:
    """Makes one pass of the sweep over a database, and prints what was done.

    Servers do this by themselves from time to time; it is safe beside them.
    """
    settings = settings_from(values)
    database = open_database(settings, pool_size=1)
    try:
        with logging_to(None, settings.log_format, settings.log_level):
            if state(database, Call(space="")) is not SchemaState.CURRENT:
                raise click.ClickException("The schema is not this program's: run `ramet-server migrate` first.")
            made = Sweep(database, settings.limits(), SystemClock())
            lines = _foretold(made) if dry_run else _counts(made.run(Call(space="")))
    except RametError as error:
        raise click.ClickException(error.message) from error
    finally:
        database.close()
    for line in lines:
        click.echo(line)


def _counts(counts: Counts) -> list[str]:
    return [f"{name}={count}" for name, count in vars(counts).items()]


def _foretold(sweep: Sweep) -> list[str]:
    foretold = sweep.foretell(Call(space=""))
    aged = [
        f"space={each.space_id} expired_sessions={each.sessions} nodes={each.nodes} records={each.records}"
        for each in foretold.aged
    ]
    by_space = [
        f"space={each.space_id} expired_diagnoses={each.diagnoses} steps={each.steps} tool_invocations={each.tools}"
        for each in foretold.expired
    ]
    expired = sum(each.diagnoses for each in foretold.expired)
    left = foretold.left
    return [
        *aged,
        *by_space,
        f"expired_sessions={sum(each.sessions for each in foretold.aged)}",
        f"expired_diagnoses={expired}",
        f"detached_diagnoses={left.detached_diagnoses}",
        f"deleted_diagnoses={left.deleted_diagnoses}",
    ]
