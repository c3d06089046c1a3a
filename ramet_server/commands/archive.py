"""The commands that write and read archives."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import IO, Any

import click

from ramet_server.archiving import (
    ArchiveError,
    BadRedaction,
    Choices,
    Counts,
    Export,
    Import,
    KeptIds,
    NewIds,
    Scope,
    ScopeKind,
    is_archive,
    load_redaction,
    raw_lines,
    read_folder,
    read_lines,
    read_transcripts,
)
from ramet_server.archiving.lines import Line
from ramet_server.commands.migrate import open_database
from ramet_server.database.database import Database
from ramet_server.database.schema import SchemaState, prepare, state
from ramet_server.domain.call import Call
from ramet_server.domain.clock import SystemClock
from ramet_server.domain.errors import RametError
from ramet_server.domain.ids import check_id
from ramet_server.serving.logs import logging_to
from ramet_server.serving.settings import Settings, settings_from, settings_options

_TELL_EVERY_S = 2.0


@click.command("export", short_help="Write sessions, forest and telemetry to a file.")
@settings_options("database_url", "log_format", "log_level")
@click.option("--space", default="default", show_default=True, help="The space to export.")
@click.option("--session", "session_id", help="Only this session, with its node and telemetry.")
@click.option("--subtree", "node_id", help="Only this node and all below it, with their sessions and telemetry.")
@click.option("--redact", help="A function, as in package.module:function, over every text that leaves.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True), default="-")
def export(
    space: str, session_id: str | None, node_id: str | None, redact: str | None, file: Path, **values: Any
) -> None:
    """Writes a space to FILE (or standard output) as JSON Lines, as of one moment, beside running servers.

    A file is there whole or not at all.
    """
    if session_id is not None and node_id is not None:
        raise click.UsageError("--session and --subtree exclude each other.")
    scope = Scope(ScopeKind.SPACE)
    if session_id is not None:
        scope = Scope(ScopeKind.SESSION, session_id)
    if node_id is not None:
        scope = Scope(ScopeKind.SUBTREE, node_id)
    with _database(settings_from(values)) as (database, settings):
        if state(database, Call(space="")) is not SchemaState.CURRENT:
            raise click.ClickException("The schema is not this program's: run `ramet-server migrate` first.")
        redaction = None if redact is None else _loaded(redact)
        run = Export(database, settings.limits(), SystemClock(), scope, redaction)
        with _written(file) as out, _progress("Exported") as tell:
            run.run(Call(_space(space)), out.write, tell)


@click.command("import", short_help="Read sessions, forest and telemetry from a file.")
@settings_options("database_url", "log_format", "log_level")
@click.option("--space", help="Where to put it; without it, the space that the archive names, or `default`.")
@click.option(
    "--ids", type=click.Choice(["keep", "new"]), default="keep", show_default=True, help="What becomes of ids."
)
@click.option(
    "--map-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --ids new: where each new id is written, and read from when the import is run again.",
)
@click.option("--resume", is_flag=True, help="Go on with sessions that an earlier run left half-way.")
@click.argument("file", type=click.Path(exists=True, path_type=Path, allow_dash=True), default="-")
def import_(space: str | None, ids: str, map_file: Path | None, resume: bool, file: Path, **values: Any) -> None:
    """Reads FILE (or standard input) into a database: an archive, chat transcripts, or a folder of sessions.

    What is there and equal stays; what is there and differs stops the import, and what came before stays.
    """
    if map_file is not None and ids == "keep":
        raise click.UsageError("--map-file is for --ids new.")
    if resume and ids == "new" and map_file is None:
        raise click.UsageError("With --ids new, only a --map-file knows the ids to go on with.")
    with (
        _database(settings_from(values)) as (database, settings),
        _read(file) as (lines, named_space, dated),
        closing(NewIds(map_file)) if ids == "new" else nullcontext(KeptIds()) as chosen,
        _progress("Read") as tell,
    ):
        prepare(database, Call(space=""))
        call = Call(_space(space or named_space))
        choices = Choices(chosen, resume=resume, dated=dated)
        _, new = Import(database, settings.limits(), SystemClock(), call, choices).run(lines, tell)
    click.echo(f"New in space {call.space}: {_told(new)}.", err=True)


def _space(space: str) -> str:
    try:
        return check_id(space, "The space")
    except RametError as error:
        raise click.UsageError(error.message) from error


def _loaded(redact: str) -> Callable[[str, str, str], str]:
    # A script finds modules beside where it runs; a console script does not.
    sys.path.insert(0, os.getcwd())
    return load_redaction(redact)


@contextmanager
def _database(settings: Settings) -> Iterator[tuple[Database, Settings]]:
    """Lends the database; what goes wrong ends the command with one line."""
    database = open_database(settings, pool_size=2)
    try:
        with logging_to(None, settings.log_format, settings.log_level):
            yield database, settings
    except (ArchiveError, BadRedaction) as error:
        raise click.ClickException(str(error)) from error
    except RametError as error:
        raise click.ClickException(error.message) from error
    except OSError as error:
        raise click.ClickException(str(error)) from error
    finally:
        database.close()


@contextmanager
def _written(file: Path) -> Iterator[IO[bytes]]:
    if str(file) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    beside = file.with_name(f"{file.name}.part")
    try:
        with beside.open("wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def _read(file: Path) -> Iterator[tuple[Iterable[tuple[int, Line]], str, bool]]:
    """Yields numbered lines, the space that the file names, and whether it tells times."""
    now = SystemClock().now()
    if file.is_dir():
        yield read_folder(file, now), "default", False
        return
    with nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb") as opened:
        yield _lines(raw_lines(opened), now)


def _lines(lines: Iterator[bytes], now: datetime) -> tuple[Iterable[tuple[int, Line]], str, bool]:
    first = next(lines, b"")
    whole = chain([first] if first else [], lines)
    if first and not is_archive(first):
        return read_transcripts(whole, now), "default", False
    parsed = read_lines(whole)
    header = next(parsed)
    return chain([header], parsed), header[1]["space"], True


@contextmanager
def _progress(word: str) -> Iterator[Callable[[Counts], None]]:
    """Tells on standard error how far it is, from time to time and at the end."""
    told_at = time.monotonic()
    last = Counts()

    def tell(counts: Counts) -> None:
        nonlocal told_at, last
        last = counts
        if time.monotonic() - told_at >= _TELL_EVERY_S:
            told_at = time.monotonic()
            click.echo(f"{word} {_told(counts)} ...", err=True)

    try:
        yield tell
    finally:
        click.echo(f"{word} {_told(last)}.", err=True)


def _told(counts: Counts) -> str:
    parts = [f"{count} {name}" for name, count in vars(counts).items() if name != "lines"]
    return ", ".join(parts)
