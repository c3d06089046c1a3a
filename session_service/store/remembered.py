"""Sessions as this process left them, so that the next append need not read them first."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import cache, reduce
from operator import attrgetter

from sqlalchemy import ColumnElement, Connection, Text, bindparam, cast, func, literal_column, select

from ramet_server.database.prepared import Guard, Prepared
from ramet_server.database.tables.session import session
from session_service.rules.values import Session
from session_service.store import ranges
from session_service.store.sessions import COLUMNS

Key = tuple[str, str]
"""Space and id of a session."""

_MOST_SESSIONS = 4096
_MOST_CHARACTERS = 2048
_MOST_TAGS = 32

_STATE = ("origin", "version", "head_seq", "floor_seq", "max_record_bytes", "open_groups")
"""The fields that tell whether a session is still as remembered.

``origin`` is another one in each incarnation, ``version`` moves with all metadata, and head or floor with
the history; the last two are what a repair may change by itself.
"""

_state_values = attrgetter(*_STATE)


class Remembered:
    """The sessions that were appended to last; any thread may ask.

    What is remembered may be out of date, since other processes write, too: whoever uses it commits under
    the guards of ``guards``. With them an append is one trip to MariaDB in place of two.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: OrderedDict[Key, Session] = OrderedDict()

    def all_of(self, keys: Iterable[Key]) -> dict[Key, Session] | None:
        """Returns these sessions with their tags, or None where one of them is not known."""
        found: dict[Key, Session] = {}
        with self._lock:
            for key in keys:
                known = self._sessions.get(key)
                if known is None:
                    return None
                self._sessions.move_to_end(key)
                found[key] = known
        return found

    def keep(self, held: Mapping[Key, Session]) -> None:
        """Remembers sessions as they were committed, but for those that are large."""
        with self._lock:
            for key, each in held.items():
                if _is_small(each):
                    self._sessions[key] = each
                    self._sessions.move_to_end(key)
            while len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)

    def forget(self, key: Key) -> None:
        """Forgets a session that somebody else changed, so that nobody tries in vain."""
        with self._lock:
            self._sessions.pop(key, None)


def _is_small(each: Session) -> bool:
    characters = len(each.metadata_json or "") + len(each.open_groups or "")
    return characters <= _MOST_CHARACTERS and len(each.tags) <= _MOST_TAGS


def guards(connection: Connection, sessions: Mapping[Key, Session]) -> list[Guard]:
    """Returns, for each space, what locks its sessions, waiting for none, and tells that all are as given."""
    of_space: dict[str, list[Session]] = {}
    for (space, _), each in sorted(sessions.items()):
        of_space.setdefault(space, []).append(each)
    made = []
    for space, several in of_space.items():
        count = ranges.rounded(len(several))
        values = {"in_space": space}
        for place in range(count):
            # What is too many is filled with a session that is there already.
            each = several[min(place, len(several) - 1)]
            values |= {f"session{place}": each.session_id, f"state{place}": _state_of(each)}
        made.append(Guard(_unmoved(count).bind(connection, values), len(several)))
    return made


@cache
def _unmoved(count: int) -> Prepared:
    ids = [bindparam(f"session{place}", type_=session.c.session_id.type) for place in range(count)]
    states = [bindparam(f"state{place}", type_=Text()) for place in range(count)]
    return Prepared(
        select(func.count())
        .select_from(session)
        # By their ids first: a scan of the table would meet rows that nobody here asked for.
        .where(session.c.space_id == bindparam("in_space", type_=session.c.space_id.type))
        .where(session.c.session_id.in_(ids))
        # One text of each row, because a text is found in a list, while conditions are tried one by one: a group
        # of 64 appends took 24 ms with them, and 15 so.
        .where(_state().in_(states))
        .with_hint(session, "FORCE INDEX (PRIMARY)", "mysql")
        .with_for_update(nowait=True)
    )


def _state() -> ColumnElement[str]:
    space, nothing = literal_column("' '", Text()), literal_column("''", Text())
    parts = [cast(COLUMNS[name], Text()) for name in _STATE]
    return reduce(lambda text, part: text + space + func.coalesce(part, nothing), parts[1:], parts[0])


def _state_of(each: Session) -> str:
    return " ".join(["" if value is None else str(value) for value in _state_values(each)])
