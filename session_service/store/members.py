"""What one member of a common transaction sees and writes; see ``shared``."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from sqlalchemy import Connection, Executable, insert
from sqlalchemy.dialects import mysql, sqlite

from ramet_server.database.moved import note
from ramet_server.database.prepared import Bound, Prepared, Row
from ramet_server.database.request_log import INSERT_LOGGED, log_row
from ramet_server.database.tables.session import broken_group, session
from ramet_server.domain.clock import Clock
from ramet_server.domain.idempotency import LoggedRequest, Mutation, Outcome
from session_service.rules.values import Record, Session
from session_service.store.marks import SqlMarks
from session_service.store.records import INSERT_RECORDS, SqlRecords, row_of
from session_service.store.remembered import Key
from session_service.store.sessions import COLUMNS, HISTORY, SqlSessions
from session_service.store.slots import SqlSlots
from session_service.store.spans import SqlSpans

_MOVING = ("head_seq", "turn_count", "max_record_bytes", "open_groups", "last_active_at")
"""The fields of a session that members may change."""

_STORED = [name for name in COLUMNS if name != "metadata_json"]
"""What an upsert sends of a session: all that may not be NULL, and what moves."""

_stored_values = attrgetter(*_STORED)

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


_SAVE_SESSIONS = Prepared(_save, columns=["space_id", *(COLUMNS[name].name for name in _STORED)])


class OwnUnitNeeded(Exception):
    """Says that a member does what needs a transaction of its own; it never reaches a client."""


class OpenUnitNeeded(Exception):
    """Says that a member reads or writes at once, while no transaction is open yet; it never reaches a client."""


@dataclass(slots=True)
class Changes:
    """What members wrote and the last trip will store."""

    records: list[Row] = field(default_factory=list)
    marks: list[Row] = field(default_factory=list)
    sessions: dict[Key, Session] = field(default_factory=dict)
    logged: list[Row] = field(default_factory=list)

    def take(self, other: "Changes") -> None:
        """Takes in what a member wrote."""
        self.records += other.records
        self.marks += other.marks
        self.sessions |= other.sessions
        self.logged += other.logged

    def clear(self) -> None:
        """Forgets it all."""
        self.records.clear()
        self.marks.clear()
        self.sessions.clear()
        self.logged.clear()

    def bound(self, connection: Connection) -> list[Bound]:
        """Returns the statements that store it, and notes what they move.

        The log comes last, so that its keys are held for a short time.
        """
        note(connection, HISTORY, *[after.origin for after in self.sessions.values()])
        sessions = [(key[0], *_stored_values(after)) for key, after in sorted(self.sessions.items())]
        tables: list[tuple[Prepared, Sequence[Row]]] = [
            (INSERT_RECORDS, self.records),
            (_INSERT_MARKS, self.marks),
            (_SAVE_SESSIONS, sessions),
            (INSERT_LOGGED, self.logged),
        ]
        return [statement.bind_rows(connection, rows) for statement, rows in tables if rows]


class _Sessions(SqlSessions):
    """The sessions that were locked by the first trip; whatever else is read is as the members found it."""

    def __init__(self, connection: Connection, space: str, held: Mapping[Key, Session], changes: Changes) -> None:
        super().__init__(connection, space)
        self._held = held
        self._changes = changes

    def lock(self, session_id: str) -> Session | None:
        """Returns the session as the members before have left it."""
        return self._held.get((self._space, session_id))

    def tags(self, session_id: str) -> tuple[str, ...]:
        """Returns the tags that were read."""
        return self._held[self._space, session_id].tags

    def save(self, before: Session, after: Session) -> None:
        """Keeps the session for the last trip."""
        self._changes.sessions[self._space, before.session_id] = after


class _Records(SqlRecords):
    """Records that are kept for the last trip; to read some takes spans, which no member has."""

    def __init__(self, connection: Connection, changes: Changes) -> None:
        super().__init__(connection)
        self._changes = changes

    def insert(self, origin: str, records: Sequence[Record]) -> None:
        """Keeps records for the last trip."""
        self._changes.records += [row_of(origin, each) for each in records]


class _Marks(SqlMarks):
    """Marks that are kept for the last trip."""

    def __init__(self, connection: Connection, changes: Changes) -> None:
        super().__init__(connection)
        self._changes = changes

    def add(self, owner: str, seqs: Iterable[int]) -> None:
        """Keeps marks for the last trip."""
        self._changes.marks += [(owner, seq) for seq in seqs]


class _Log:
    """The log of one member."""

    def __init__(self, space: str, service: str, clock: Clock, changes: Changes) -> None:
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
            self._changes.logged.append(tuple(row.values()))


class MemberUnit:
    """A member's unit of work; implements ``rules.ports.UnitOfWork`` as far as members need it.

    The members of a space use one after another, since to make one for each took as long as its append.
    """

    def __init__(
        self,
        connection: Connection,
        space: str,
        held: Mapping[Key, Session],
        service: str,
        clock: Clock,
        *,
        is_open: bool,
    ) -> None:
        """Takes the sessions, and whether the connection is in a transaction yet."""
        self._connection = connection
        self._space = space
        self._is_open = is_open
        self.changes = Changes()
        self.wrote_at_once = False
        """Whether it may have changed something before the last trip, which only a rollback undoes."""
        self.sessions = _Sessions(connection, space, held, self.changes)
        self.records = _Records(connection, self.changes)
        self.marks = _Marks(connection, self.changes)
        self.requests = _Log(space, service, clock, self.changes)

    def begin(self) -> None:
        """Forgets the member before, and what it wrote if it failed."""
        self.changes.clear()
        self.wrote_at_once = False

    @property
    def slots(self) -> SqlSlots:
        """The slots, as they are in the transaction; raises OpenUnitNeeded where there is none yet."""
        if not self._is_open:
            raise OpenUnitNeeded
        self.wrote_at_once = True
        return SqlSlots(self._connection, self._space)

    @property
    def spans(self) -> SqlSpans:
        """Are not for members: a history that is read would lack what the members before keep back."""
        raise OwnUnitNeeded
