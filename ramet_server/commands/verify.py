"""The command that looks whether everything is as it must be."""

import json
import sys
from collections import Counter
from dataclasses import asdict
from typing import Any

import click

from ramet_server.commands.migrate import open_database
from ramet_server.database.schema import SchemaState, state
from ramet_server.domain.call import Call
from ramet_server.domain.clock import SystemClock
from ramet_server.domain.errors import RametError
from ramet_server.domain.findings import Finding, Outcome
from ramet_server.domain.ids import check_id
from ramet_server.serving.logs import logging_to
from ramet_server.serving.settings import Settings, settings_from, settings_options
from ramet_server.verifying import Verification


class _CouldNotRun(click.ClickException):
    exit_code = 2


@click.command(short_help="Check that what is stored is as it must be.")
@settings_options("database_url", "await_content_seconds", "log_format", "log_level")
@click.option("--space", help="Look at this space alone; what belongs to no space is left out then.")
@click.option("--repair", is_flag=True, help="Mend what is safe to mend, and say what is left to people.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line; the last one is the summary.")
def verify(space: str | None, repair: bool, as_json: bool, **values: Any) -> None:
    """Checks what the services store, beside servers that go on writing, and prints a line per finding.

    Exits with 0 where nothing is wrong (any more), with 1 where something is, with 2 where it could not look.
    """
    settings = settings_from(values)
    try:
        if space is not None:
            check_id(space, "--space")
        counts = _look(settings, space, repair, as_json)
    except RametError as error:
        raise _CouldNotRun(error.message) from error
    wrong = counts.total() - counts[Outcome.MENDED]
    summary = {"findings": counts.total(), "mended": counts[Outcome.MENDED], "left": wrong}
    click.echo(json.dumps(summary) if as_json else " ".join(f"{name}={count}" for name, count in summary.items()))
    sys.exit(1 if wrong else 0)


def _look(settings: Settings, space: str | None, repair: bool, as_json: bool) -> Counter[Outcome]:
    try:
        database = open_database(settings, pool_size=1)
    except click.ClickException as error:
        raise _CouldNotRun(error.message) from error
    counts: Counter[Outcome] = Counter()
    try:
        with logging_to(None, settings.log_format, settings.log_level):
            if state(database, Call(space="")) is not SchemaState.CURRENT:
                raise _CouldNotRun("The schema is not this program's: run `ramet-server migrate` first.")
            verification = Verification(database, settings.limits(), SystemClock())
            for finding in verification.run(Call(space=""), space=space, repair=repair):
                counts[finding.outcome] += 1
                click.echo(json.dumps(asdict(finding)) if as_json else _line(finding))
    finally:
        database.close()
    return counts


def _line(finding: Finding) -> str:
    where = f"space={finding.space}" if finding.space else "no space"
    line = f"{finding.code} {where} id={finding.id}: is {finding.found}; should be {finding.expected}"
    if finding.outcome is Outcome.MENDED:
        return f"{line} [mended]"
    return f"{line} [left: {finding.reason}]" if finding.outcome is Outcome.LEFT else line
