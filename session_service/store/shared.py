"""Units of work of many callers in one transaction of two trips.

The first trip locks all their sessions, waiting for none, and reads them. Every member then runs over
what was read, and what it writes is kept back. The second trip stores what all of them wrote, a
statement per table, and commits. A member that fails has therefore written nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable, bindparam, insert, select
from sqlalchemy.dialects import mysql, sqlite
from sqlalchemy.exc import DBAPIError

from ramet_server.database.database import Database, KeyTaken, RowsHeld
from ramet_server.database.faults import Fault, classify
from ramet_server.database.moved import note
from ramet_server.database.prepared import Bound, Prepared, Row
from ramet_server.database.request_log import INSERT_LOGGED, log_row, logged_ids
from ramet_server.database.tables.session import broken_group, record, session, session_tag
from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import RametError, WriteConflict
from ramet_server.domain.idempotency import LoggedRequest, Mutation, Outcome
from ramet_server.domain.sharing import ALONE, Alone, Member
from session_service.rules.ports import UnitOfWork
from session_service.rules.values import Record, Session, Status
from session_service.store import ranges
from session_service.store.marks import SqlMarks
from session_service.store.records import SqlRecords, values_of
from session_service.store.sessions import COLUMNS, HISTORY, SqlSessions
from session_service.store.slots import SqlSlots
from session_service.store.spans import SqlSpans

T = TypeVar("T")

Key = tuple[str, str]
"""Space and id of a session."""

_MOVING = ("head_seq", "turn_count", "max_record_bytes", "open_groups", "last_active_at")
"""The fields of a session that members may change."""

_STORED = {name: column for name, column in COLUMNS.items() if name != "metadata_json"}
"""What an upsert sends of a session: all that may not be NULL, and what moves."""

_STATUS = list(COLUMNS).index("status")

_INSERT_RECORDS = Prepared(insert(record), columns=[column.name for column in record.columns])
_INSERT_MARKS = Prepared(insert(broken_group), columns=[column.name for column in broken_group.columns])


def _save(dialect: str) -> Executable:
    """Writes what moved of sessions that are locked, and so exist: an update of many rows by one statement."""
    moving = [COLUMNS[name].name for name in _MOVING]
    if dialect == "mysql":
        on_mysql = mysql.insert(session)
        return on_mysql.on_duplicate_key_update({name: on_mysql.inserted[name] for name in moving})
    on_sqlite = sqlite.insert(session)
    return on_sqlite.on_conflict_do_update(
        index_elements=[session.c.space_id, session.c.session_id],
        set_={name: on_sqlite.excluded[name] for name in moving},
    )


_SAVE_SESSIONS = Prepared(_save, columns=["space_id", *(column.name for column in _STORED.values())])


@cache
def _lock(count: int) -> Prepared:
    return Prepared(
        select(session.c.space_id, *COLUMNS.values())
        .where(session.c.space_id == _space(), session.c.session_id.in_(_ids(count)))
        # In the order of their ids. A scan of the table instead would meet rows that nobody here asked for.
        .order_by(session.c.session_id)
        .with_hint(session, "FORCE INDEX (PRIMARY)", "mysql")
        .with_for_update(nowait=True)
    )


@cache
def _tags(count: int) -> Prepared:
    return Prepared(
        select(session_tag.c.space_id, session_tag.c.session_id, session_tag.c.tag).where(
            session_tag.c.space_id == _space(), session_tag.c.session_id.in_(_ids(count))
        )
    )


def _space() -> Any:
    return bindparam("in_space", type_=session.c.space_id.type)


def _ids(count: int) -> list[Any]:
    return [bindparam(f"session{place}", type_=session.c.session_id.type) for place in range(count)]


class OwnUnitNeeded(Exception):
    """Says that a member does what needs a transaction of its own; it never reaches a client."""


@dataclass(slots=True)
class _Held:
    """A locked session as the members so far have left it."""

    session: Session
    tags: tuple[str, ...]


@dataclass(slots=True)
class _Changes:
    """What members wrote and the last trip will store."""

    records: list[Mapping[str, Any]] = field(default_factory=list)
    marks: list[Mapping[str, Any]] = field(default_factory=list)
    sessions: dict[Key, Session] = field(default_factory=dict)
    logged: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, other: "_Changes") -> None:
        self.records += other.records
        self.marks += other.marks
        self.sessions |= other.sessions
        self.logged += other.logged

    def bound(self, connection: Connection) -> list[Bound]:
        """Returns the statements that store it, and notes what they move.

        The log comes last, so that its keys are held for a short time.
        """
        for after in self.sessions.values():
            note(connection, HISTORY, after.origin)
        sessions = [
            {"space_id": key[0]} | {column.name: getattr(after, name) for name, column in _STORED.items()}
            for key, after in sorted(self.sessions.items())
        ]
        tables: list[tuple[Prepared, Sequence[Mapping[str, Any]]]] = [
            (_INSERT_RECORDS, self.records),
            (_INSERT_MARKS, self.marks),
            (_SAVE_SESSIONS, sessions),
            (INSERT_LOGGED, self.logged),
        ]
        return [statement.bind_rows(connection, rows) for statement, rows in tables if rows]


class _Sessions(SqlSessions):
    """The sessions that were locked by the first trip; whatever else is read is as the members found it."""

    def __init__(self, connection: Connection, space: str, held: Mapping[Key, _Held], changes: _Changes) -> None:
        super().__init__(connection, space)
        self._held = held
        self._changes = changes

    def lock(self, session_id: str) -> Session | None:
        """Returns the session as the members before have left it."""
        found = self._held.get((self._space, session_id))
        return None if found is None else found.session

    def tags(self, session_id: str) -> tuple[str, ...]:
        """Returns the tags that were read."""
        return self._held[self._space, session_id].tags

    def save(self, before: Session, after: Session) -> None:
        """Keeps the session for the last trip."""
        self._changes.sessions[self._space, before.session_id] = after


class _Records(SqlRecords):
    """Records that are kept for the last trip; to read some takes spans, which no member has."""

    def __init__(self, connection: Connection, changes: _Changes) -> None:
        super().__init__(connection)
        self._changes = changes

    def insert(self, origin: str, records: Sequence[Record]) -> None:
        """Keeps records for the last trip."""
        self._changes.records += [{"origin": origin, **values_of(each)} for each in records]


class _Marks(SqlMarks):
    """Marks that are kept for the last trip."""

    def __init__(self, connection: Connection, changes: _Changes) -> None:
        super().__init__(connection)
        self._changes = changes

    def add(self, owner: str, seqs: Iterable[int]) -> None:
        """Keeps marks for the last trip."""
        self._changes.marks += [{"origin": owner, "seq": seq} for seq in seqs]


class _Log:
    """The log of one member."""

    def __init__(self, space: str, service: str, clock: Clock, changes: _Changes) -> None:
        self._space = space
        self._service = service
        self._clock = clock
        self._changes = changes

    def find(self, request_id: str) -> LoggedRequest | None:
        """Finds nothing: who may have been here before is told by the key of the last trip."""
        raise OwnUnitNeeded(request_id)

    def put(self, mutation: Mutation, outcome: Outcome) -> None:
        """Keeps the mutation for the last trip."""
        if mutation.request_id is not None:
            row = log_row(self._space, self._service, mutation, outcome, self._clock.now())
            self._changes.logged.append(row)


class _Unit:
    """A member's unit of work; implements ``rules.ports.UnitOfWork`` as far as members need it."""

    def __init__(self, connection: Connection, space: str, held: Mapping[Key, _Held], log: "_Logs") -> None:
        self._connection = connection
        self._space = space
        self.changes = _Changes()
        self.wrote_at_once = False
        """Whether it may have changed something before the last trip, which only a rollback undoes."""
        self.sessions = _Sessions(connection, space, held, self.changes)
        self.records = _Records(connection, self.changes)
        self.marks = _Marks(connection, self.changes)
        self.requests = _Log(space, log.service, log.clock, self.changes)

    @property
    def slots(self) -> SqlSlots:
        """The slots, as they are in the transaction."""
        self.wrote_at_once = True
        return SqlSlots(self._connection, self._space)

    @property
    def spans(self) -> SqlSpans:
        """Are not for members: a history that is read would lack what the members before keep back."""
        raise OwnUnitNeeded


@dataclass(frozen=True, slots=True)
class _Logs:
    service: str
    clock: Clock


class SharedUnits:
    """Runs members in one transaction; implements ``domain.sharing.SharingStore``."""

    def __init__(self, database: Database, clock: Clock, service: str) -> None:
        self._database = database
        self._log = _Logs(service, clock)

    def write_together(self, members: Sequence[Member[UnitOfWork, T]]) -> list[T | RametError | Alone]:
        """Runs the work of all in order and commits; returns for each its result, or why it took no part."""
        left = list(range(len(members)))
        answers: list[T | RametError | Alone] = [ALONE for _ in members]
        for _ in range(2):
            part = [members[place] for place in left]
            try:
                told = self._run(part)
            except KeyTaken:
                # Somebody's request took effect before: those run alone, who can tell the answer.
                known = self._known(part)
                rest = [place for place in left if _logged_key(members[place]) not in known]
                if len(rest) == len(left):
                    break
                left = rest
            else:
                for place, answer in zip(left, told, strict=True):
                    answers[place] = answer
                break
        return answers

    def _run(self, members: Sequence[Member[UnitOfWork, T]]) -> list[T | RametError | Alone]:
        # The call of nobody: a member that is late or gone must not stop the others.
        call = Call(space="")
        keys = _keys(members)
        try:
            return self._database.write_in_two_trips(call, partial(_reads, keys), partial(self._then, members))
        except RowsHeld:
            return self._database.write_in_two_trips(call, lambda _: (), partial(self._one_by_one, members, keys))

    def _then(
        self,
        members: Sequence[Member[UnitOfWork, T]],
        connection: Connection,
        rows: Sequence[Sequence[Row]],
    ) -> tuple[list[T | RametError | Alone], Sequence[Bound]]:
        return self._work(connection, members, _held(rows), set())

    def _one_by_one(
        self,
        members: Sequence[Member[UnitOfWork, T]],
        keys: Mapping[str, Sequence[str]],
        connection: Connection,
        _: Sequence[Sequence[Row]],
    ) -> tuple[list[T | RametError | Alone], Sequence[Bound]]:
        """Finds out which sessions others hold: their members take no part."""
        held: dict[Key, _Held] = {}
        missed: set[Key] = set()
        for space in sorted(keys):
            for session_id in keys[space]:
                try:
                    rows = [each.read(_plain(connection, each)) for each in _reads({space: [session_id]}, connection)]
                except DBAPIError as error:
                    if classify(error) is not Fault.RACE:
                        raise
                    missed.add((space, session_id))
                else:
                    held |= _held(rows)
        return self._work(connection, members, held, missed)

    def _work(
        self,
        connection: Connection,
        members: Sequence[Member[UnitOfWork, T]],
        held: Mapping[Key, _Held],
        missed: set[Key],
    ) -> tuple[list[T | RametError | Alone], Sequence[Bound]]:
        changes = _Changes()
        seen: set[tuple[str, str | None]] = set()
        answers: list[T | RametError | Alone] = []
        for member in members:
            key = _logged_key(member)
            if (member.call.space, member.row) in missed or key in seen:
                answers.append(ALONE)
                continue
            if key is not None:
                seen.add(key)
            answers.append(self._run_member(connection, member, held, changes))
        return answers, changes.bound(connection)

    def _run_member(
        self,
        connection: Connection,
        member: Member[UnitOfWork, Any],
        held: Mapping[Key, _Held],
        changes: _Changes,
    ) -> Any:
        unit = _Unit(connection, member.call.space, held, self._log)
        try:
            member.call.check()
            result, outcome = member.work(unit)
            unit.requests.put(member.mutation, outcome)
        except (RametError, OwnUnitNeeded) as error:
            if unit.wrote_at_once:
                raise WriteConflict("A member failed after it had written.") from error
            return error if isinstance(error, RametError) else ALONE
        for key, after in unit.changes.sessions.items():
            held[key].session = after
        changes.add(unit.changes)
        return result

    def _known(self, members: Sequence[Member[UnitOfWork, Any]]) -> set[tuple[str, str | None]]:
        """Returns space and request_id of those whose id has a row in the log."""
        ids: dict[str, set[str]] = {}
        for member in members:
            if member.mutation.request_id is not None:
                ids.setdefault(member.call.space, set()).add(member.mutation.request_id)

        def read(connection: Connection) -> set[tuple[str, str | None]]:
            return {
                (space, request_id)
                for space, wanted in ids.items()
                for request_id in logged_ids(connection, space, self._log.service, wanted)
            }

        return self._database.read(Call(space=""), read)


def _keys(members: Sequence[Member[UnitOfWork, Any]]) -> dict[str, list[str]]:
    """Returns the ids of all sessions by space, sorted."""
    keys: dict[str, set[str]] = {}
    for member in members:
        keys.setdefault(member.call.space, set()).add(member.row)
    return {space: sorted(ids) for space, ids in sorted(keys.items())}


def _logged_key(member: Member[UnitOfWork, Any]) -> tuple[str, str | None] | None:
    request_id = member.mutation.request_id
    return None if request_id is None else (member.call.space, request_id)


def _reads(keys: Mapping[str, Sequence[str]], connection: Connection) -> list[Bound]:
    """Returns the statements that lock sessions and read them, first the sessions and then the tags of each space."""
    reads: list[Bound] = []
    for space, ids in keys.items():
        count = ranges.rounded(len(ids))
        # What is too many is filled with an id that is there already.
        values = {f"session{place}": ids[min(place, len(ids) - 1)] for place in range(count)}
        values["in_space"] = space
        reads += [_lock(count).bind(connection, values), _tags(count).bind(connection, values)]
    return reads


def _plain(connection: Connection, bound: Bound) -> Sequence[Row]:
    # By SQLAlchemy, so that a lock that is missed does not end the transaction.
    return [tuple(row) for row in connection.exec_driver_sql(bound.text, bound.parameters[0])]


def _held(rows: Sequence[Sequence[Row]]) -> dict[Key, _Held]:
    held: dict[Key, _Held] = {}
    for found, tags in zip(rows[::2], rows[1::2], strict=True):
        tags_of: dict[Key, list[str]] = {}
        for space, session_id, tag in tags:
            tags_of.setdefault((space, session_id), []).append(tag)
        for space, *values in found:
            values[_STATUS] = Status(values[_STATUS])
            one = Session(*values)
            key = (space, one.session_id)
            held[key] = _Held(one, tuple(sorted(tags_of.get(key, ()))))
    return held
