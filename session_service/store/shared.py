"""Units of work of many callers in one transaction of one trip, or of two.

Where all their sessions are remembered from before, every member runs over what is remembered, and what
it writes is kept back. The one trip locks the sessions, waiting for none, goes on if all are as
remembered, stores what all members wrote, a statement per table, and commits.

Else a trip before it locks the sessions and reads them, and the members run over what was read. Either
way a member that fails has written nothing.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, TypeVar

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.exc import DBAPIError

from ramet_server.database.backend import RowsHeld, RowsMoved
from ramet_server.database.database import Database, KeyTaken
from ramet_server.database.faults import Fault, classify
from ramet_server.database.prepared import Bound, Guard, Prepared, Row
from ramet_server.database.request_log import logged_ids
from ramet_server.database.tables.session import session, session_tag
from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import RametError, WriteConflict
from ramet_server.domain.sharing import ALONE, Alone, Member
from session_service.rules.ports import UnitOfWork
from session_service.rules.values import Session, Status
from session_service.store import ranges
from session_service.store.members import Changes, MemberUnit, OpenUnitNeeded, OwnUnitNeeded
from session_service.store.remembered import Key, Remembered, guards
from session_service.store.sessions import COLUMNS, ROW, key_of_row

T = TypeVar("T")

_SESSION_ID, _STATUS = list(COLUMNS).index("session_id"), list(COLUMNS).index("status")


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


class SharedUnits:
    """Runs members in one transaction; implements ``domain.sharing.SharingStore``."""

    def __init__(self, database: Database, clock: Clock, service: str) -> None:
        self._database = database
        self._clock = clock
        self._service = service
        self._remembered = Remembered()
        database.moved.listen(ROW, lambda row: self._remembered.forget(key_of_row(row)))

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
        held: dict[Key, Session] = {}
        answers = self._run_over(call, members, keys, held)
        self._remembered.keep(held)
        return answers

    def _run_over(
        self,
        call: Call,
        members: Sequence[Member[UnitOfWork, T]],
        keys: Mapping[str, Sequence[str]],
        held: dict[Key, Session],
    ) -> list[T | RametError | Alone]:
        """Runs the members; ``held`` is filled with their sessions as they are committed."""
        remembered = self._remembered.all_of((space, each) for space, ids in keys.items() for each in ids)
        try:
            if remembered is not None:
                with suppress(RowsMoved, OpenUnitNeeded):
                    over = partial(self._over_remembered, members, remembered, held)
                    return self._database.write_in_one_trip(call, over)
            return self._database.write_in_two_trips(
                call, partial(_reads, keys), partial(self._over_read, members, held)
            )
        except RowsHeld:
            return self._database.write_in_two_trips(call, lambda _: (), partial(self._one_by_one, members, keys, held))

    def _over_remembered(
        self,
        members: Sequence[Member[UnitOfWork, T]],
        remembered: Mapping[Key, Session],
        held: dict[Key, Session],
        connection: Connection,
    ) -> tuple[list[T | RametError | Alone], Sequence[Guard], Sequence[Bound]]:
        guarded = guards(connection, remembered)
        _refill(held, remembered)
        answers, changes = self._work(connection, members, held, set(), is_open=False)
        if not changes:
            # Errors alone would be told of what is only remembered.
            raise OpenUnitNeeded
        return answers, guarded, changes

    def _over_read(
        self,
        members: Sequence[Member[UnitOfWork, T]],
        held: dict[Key, Session],
        connection: Connection,
        rows: Sequence[Sequence[Row]],
    ) -> tuple[list[T | RametError | Alone], Sequence[Bound]]:
        _refill(held, _held(rows))
        return self._work(connection, members, held, set(), is_open=True)

    def _one_by_one(
        self,
        members: Sequence[Member[UnitOfWork, T]],
        keys: Mapping[str, Sequence[str]],
        held: dict[Key, Session],
        connection: Connection,
        _: Sequence[Sequence[Row]],
    ) -> tuple[list[T | RametError | Alone], Sequence[Bound]]:
        """Finds out which sessions others hold: their members take no part."""
        _refill(held, {})
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
        return self._work(connection, members, held, missed, is_open=True)

    def _work(
        self,
        connection: Connection,
        members: Sequence[Member[UnitOfWork, T]],
        held: dict[Key, Session],
        missed: set[Key],
        *,
        is_open: bool,
    ) -> tuple[list[T | RametError | Alone], Sequence[Bound]]:
        changes = Changes()
        seen: set[tuple[str, str | None]] = set()
        units: dict[str, MemberUnit] = {}
        answers: list[T | RametError | Alone] = []
        for member in members:
            key = _logged_key(member)
            if (member.call.space, member.row) in missed or key in seen:
                answers.append(ALONE)
                continue
            if key is not None:
                seen.add(key)
            unit = units.get(member.call.space)
            if unit is None:
                unit = MemberUnit(connection, member.call.space, held, self._service, self._clock, is_open=is_open)
                units[member.call.space] = unit
            answers.append(_run_member(unit, member, held, changes))
        return answers, changes.bound(connection)

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
                for request_id in logged_ids(connection, space, self._service, wanted)
            }

        return self._database.read(Call(space=""), read)


def _run_member(unit: MemberUnit, member: Member[UnitOfWork, Any], held: dict[Key, Session], changes: Changes) -> Any:
    try:
        member.call.check()
        unit.begin()
        result, outcome = member.work(unit)
        unit.requests.put(member.mutation, outcome)
    except (RametError, OwnUnitNeeded) as error:
        if unit.wrote_at_once:
            raise WriteConflict("A member failed after it had written.") from error
        return error if isinstance(error, RametError) else ALONE
    held.update(unit.changes.sessions)
    changes.take(unit.changes)
    return result


def _refill(held: dict[Key, Session], found: Mapping[Key, Session]) -> None:
    # A transaction may run more than once, and only its last run counts.
    held.clear()
    held |= found


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
        values = ranges.padded("session", ids) | {"in_space": space}
        reads += [_lock(count).bind(connection, values), _tags(count).bind(connection, values)]
    return reads


def _plain(connection: Connection, bound: Bound) -> Sequence[Row]:
    # By SQLAlchemy, so that a lock that is missed does not end the transaction.
    return [tuple(row) for row in connection.exec_driver_sql(bound.text, bound.parameters[0])]


def _held(rows: Sequence[Sequence[Row]]) -> dict[Key, Session]:
    held: dict[Key, Session] = {}
    for found, tags in zip(rows[::2], rows[1::2], strict=True):
        tags_of: dict[Key, list[str]] = {}
        for space, session_id, tag in tags:
            tags_of.setdefault((space, session_id), []).append(tag)
        for space, *values in found:
            values[_STATUS] = Status(values[_STATUS])
            key = (space, values[_SESSION_ID])
            values.append(tuple(sorted(tags_of.get(key, ()))))
            held[key] = Session(*values)
    return held
