"""Writing an archive: everything of a space, a subtree or a session, as of one moment, line by line.

All is read in one transaction that sees one state, on MySQL as on SQLite, however long it takes: writers
go on meanwhile. (The database keeps what they replace until the export ends: SQLite's log grows, and
MySQL's undo log.) What is kept in mind grows with the number of sessions, never with that of records.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sqlalchemy import Connection

import session_service
import telemetry
import tree_service
from ramet_server.archiving.coverage import Coverage
from ramet_server.archiving.fields import lost_name, session_name
from ramet_server.archiving.lines import (
    Counts,
    Line,
    Tally,
    encode,
    end_line,
    header_line,
    node_line,
    record_line,
    refs_line,
    session_line,
    telemetry_line,
)
from ramet_server.archiving.redacting import Redaction, redact
from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import DatabaseUnavailable, NodeNotFound, SessionNotFound
from ramet_server.domain.limits import Limits
from session_service.rules.archiving.leaving import Leaving, LeavingSessions
from session_service.rules.archiving.ports import Place
from telemetry.rules.archiving.carrying import LeavingDiagnoses
from tree_service.rules.archiving.leaving import LeavingNodes

_PAGE = 500


class ScopeKind(StrEnum):
    """How much is exported."""

    SPACE = "space"
    SUBTREE = "subtree"
    SESSION = "session"


@dataclass(frozen=True)
class Scope:
    """What is exported."""

    kind: ScopeKind
    id: str | None = None
    """Of the session, or of the node at the top; None for a space."""


class Export:
    """One run that writes an archive; it blocks."""

    def __init__(
        self, database: Database, limits: Limits, clock: Clock, scope: Scope, redaction: Redaction | None = None
    ) -> None:
        self._database = database
        self._limits = limits
        self._clock = clock
        self._scope = scope
        self._redaction = redaction
        self._began = False

    def run(self, call: Call, write: Callable[[bytes], object], tell: Callable[[Counts], None]) -> Counts:
        """Writes the archive of the call's space; ``tell`` hears from time to time how far it is.

        Raises SessionNotFound where neither session nor node has the id.
        """

        def work(connection: Connection) -> Counts:
            if self._began:
                raise DatabaseUnavailable("The connection was lost in the middle of the export; begin it again.")
            lines = _Lines(self._parts(connection, call.space), self._scope)
            tally = Tally(tell)
            for line in lines.all(call.space, redacted=self._redaction is not None):
                self._began = True
                if "kind" not in line:
                    write(encode(line))
                    continue
                write(encode(line if self._redaction is None else redact(line, self._redaction)))
                tally.count(line)
            # The header counts, too: it is a line that may be missing.
            write(encode(end_line(tally.end() + Counts(lines=1))))
            return tally.counts

        return self._database.read(call, work, snapshot=True)

    def _parts(self, connection: Connection, space: str) -> "_Parts":
        return _Parts(
            session_service.build_leaving(connection, space, self._clock),
            tree_service.build_leaving(connection, space, self._limits, self._clock),
            telemetry.build_leaving(connection, space),
        )


@dataclass(frozen=True)
class _Parts:
    """The three services' parts, over one connection."""

    sessions: LeavingSessions
    nodes: LeavingNodes
    diagnoses: LeavingDiagnoses


class _Lines:
    """The lines of one archive, in their order."""

    def __init__(self, parts: _Parts, scope: Scope) -> None:
        self._parts = parts
        self._scope = scope
        self._coverage = Coverage()
        self._written: set[str] = set()
        self._lost: dict[str, str] = {}

    def all(self, space: str, *, redacted: bool) -> Iterator[Line]:
        """Yields every line but the last."""
        if self._scope.kind is ScopeKind.SPACE:
            yield header_line(self._scope.kind, None, space, redacted=redacted)
            yield from self._sessions(self._by_creation(), None)
            yield from map(node_line, self._parts.nodes.forest())
            yield from map(refs_line, self._parts.nodes.refs())
            yield from self._diagnoses(None)
            return
        chosen = self._chosen(self._scope.id or "")
        yield header_line(self._scope.kind, self._scope.id, space, redacted=redacted)
        within = set(chosen)
        yield from self._sessions(chosen, within)
        yield from map(node_line, self._parts.nodes.cut_out(chosen))
        for refs in self._parts.nodes.refs_of(chosen):
            # What refers to others that are not here would refer to nothing.
            inside = [ref for ref in refs if ref.target_id in within]
            if inside:
                yield refs_line(inside)
        for session_id in chosen:
            yield from self._diagnoses(session_id)

    def _chosen(self, top_id: str) -> Sequence[str]:
        below = self._parts.nodes.ids_below(top_id)
        if self._scope.kind is ScopeKind.SUBTREE:
            if not below:
                raise NodeNotFound("No node has this id.")
            return below
        if not below and self._parts.sessions.find(top_id) is None:
            raise SessionNotFound("Neither a session nor a node has this id.")
        return [top_id]

    def _by_creation(self) -> Iterator[str]:
        after: Place | None = None
        while page := self._parts.sessions.page(after, _PAGE):
            yield from (place.session_id for place in page)
            after = page[-1]

    def _sessions(self, wanted: Iterable[str], within: Collection[str] | None) -> Iterator[Line]:
        """Yields sessions with their records, each after those whose records it shares."""
        for session_id in wanted:
            waiting = [session_id]
            while waiting:
                leaving = None if waiting[-1] in self._written else self._parts.sessions.find(waiting[-1])
                if leaving is None:
                    waiting.pop()
                    continue
                owners = self._parts.sessions.owners([span.origin for span in leaving.shown])
                owners = {origin: each for origin, each in owners.items() if within is None or each in within}
                first = [owners[span.origin] for span in leaving.shown if span.origin in owners]
                missing = [each for each in dict.fromkeys(first) if each not in self._written and each != waiting[-1]]
                if missing:
                    waiting += reversed(missing)
                    continue
                yield from self._session(leaving, owners)
                self._written.add(waiting.pop())

    def _session(self, leaving: Leaving, owners: Mapping[str, str]) -> Iterator[Line]:
        names = {
            span.origin: session_name(owners[span.origin]) if span.origin in owners else self._lost_name(span.origin)
            for span in leaving.shown
        }
        shown = [span._replace(origin=names[span.origin]) for span in leaving.shown]
        yield session_line(replace(leaving, shown=shown))
        pieces = self._coverage.missing(shown)
        self._coverage.add(pieces)
        origins = {name: origin for origin, name in names.items()}
        stored = [piece._replace(origin=origins[piece.origin]) for piece in pieces]
        for origin, record in self._parts.sessions.records(stored, leaving.session.max_record_bytes):
            yield record_line(names[origin], record)

    def _lost_name(self, origin: str) -> str:
        return self._lost.setdefault(origin, lost_name(len(self._lost) + 1))

    def _diagnoses(self, conversation_id: str | None) -> Iterator[Line]:
        for told in self._parts.diagnoses.all(conversation_id):
            yield telemetry_line("diagnosis", told.diagnosis)
            for kind, rows in (("step", told.steps), ("tool", told.tools), ("feedback", told.feedback)):
                for row in rows:
                    yield telemetry_line(kind, row)
