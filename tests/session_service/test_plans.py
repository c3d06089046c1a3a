"""How the database answers: by which index, reading how many rows, in how many statements."""

from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy import insert, text

from ramet.session.v1 import session_pb2 as pb
from ramet_server.database.database import Database
from ramet_server.database.tables import session as tables
from ramet_server.domain.call import Call
from ramet_server.domain.ids import new_id
from ramet_server.domain.limits import Limits
from session_service.rules.watching import WatchRules
from session_service.store.unit import SqlStore
from tests.session_service.storage import EVERYTHING, Storage, TurnedClock, statements

SESSIONS = 3000
LONG = 100_000


@pytest.fixture(scope="module")
def crowded(database: Database) -> Storage:
    """A space with thousands of sessions, and one session with a hundred thousand records."""
    storage = Storage(database, f"space-{new_id()}", Limits(), TurnedClock())
    storage.put("long", "u")
    origin, now = storage.origin("long"), storage.clock.now()
    for start in range(2, LONG + 1, 10_000):
        _insert(
            storage,
            tables.record,
            [
                {"origin": origin, "seq": seq, "role": "USER", "content": "", "size_bytes": 0, "created_at": now}
                for seq in range(start, min(start + 10_000, LONG + 1))
            ],
        )
    key = (tables.session.c.space_id == storage.space) & (tables.session.c.session_id == "long")
    storage.database.write(
        storage.call, lambda connection: connection.execute(tables.session.update().where(key).values(head_seq=LONG))
    )
    _many_sessions(storage)
    return storage


def _many_sessions(storage: Storage) -> None:
    now = storage.clock.now()
    names = [(f"session-{number:05}", new_id()) for number in range(SESSIONS)]
    row = dict.fromkeys(("turn_count", "head_seq", "floor_seq", "max_record_bytes"), 0) | {
        "space_id": storage.space,
        "label": "",
        "status": "ACTIVE",
        "version": 1,
        "created_at": now,
        "updated_at": now,
        "last_active_at": now,
    }
    _insert(storage, tables.session, [row | {"session_id": name, "origin": origin} for name, origin in names])
    _insert(
        storage,
        tables.session_tag,
        [
            {"space_id": storage.space, "session_id": name, "tag": tag}
            for number, (name, _) in enumerate(names)
            for tag in ("all", f"tag-{number % 100}")
        ],
    )
    _insert(
        storage,
        tables.history_span,
        [
            {"owner_origin": origin, "first_seq": 1, "origin": origin, "last_seq": tables.OPEN_END}
            for _, origin in names
        ],
    )
    _insert(
        storage,
        tables.context_slot,
        [
            {
                "space_id": storage.space,
                "session_id": name,
                "slot": slot,
                "content": "text",
                "version": 1,
                "updated_at": now,
            }
            for name, _ in names
            for slot in ("insight", "memory")
        ],
    )
    _insert(storage, tables.broken_group, [{"origin": origin, "seq": 1} for _, origin in names])
    if storage.database.engine.dialect.name == "mysql":
        every = ", ".join(table.name for table in (tables.session, tables.session_tag, tables.record))
        storage.database.read(storage.call, lambda connection: connection.execute(text(f"ANALYZE TABLE {every}")).all())


def _insert(storage: Storage, table: Any, rows: list[dict[str, Any]]) -> None:
    storage.database.write(storage.call, lambda connection: connection.execute(insert(table), rows))


def every_call(storage: Storage) -> None:
    """Makes each kind of call once, all kinds of lists included."""
    service, call = storage.service, storage.call
    service.GetSession(pb.GetSessionRequest(session_id="long"), call)
    ids = [f"session-{number:05}" for number in range(1000)]
    service.BatchGetSessions(pb.BatchGetSessionsRequest(session_ids=ids), call)
    for order in pb.SessionOrder.values():
        for descending in (False, True):
            for admits in (
                pb.SessionFilter(),
                pb.SessionFilter(tags=["all", "tag-7"]),
                pb.SessionFilter(label_prefix="x", status=pb.SESSION_STATUS_ACTIVE),
                pb.SessionFilter(
                    created_from=Timestamp(seconds=1), last_active_before=Timestamp(seconds=4_000_000_000)
                ),
            ):
                request = pb.ListSessionsRequest(order=order, descending=descending, filter=admits, page_size=10)
                request.page_token = service.ListSessions(request, call).next_page_token
                service.ListSessions(request, call)
    storage.put("new", "u a(x) t(x) u a(y)", tags=["all"], label="new")
    storage.put("new", label="newer", tags=["other"], system_prompt="text", request_id=new_id())
    storage.put_insight("new", "look")
    storage.append("new", "u", consume_insight_version=1, request_id=new_id())
    storage.fork("new", "newer")
    storage.fork("new", "newest", up_to_seq=3)
    storage.fork("newer", "last", last=2)
    storage.trim("newer", 1)
    storage.truncate("newest", 1)
    storage.erase("new", 1)
    for fields in ({}, {"roles": [pb.ROLE_USER], "offset": 2}, {"after_seq": 50_000}, {"before_seq": 50_000}):
        storage.page("long", **fields)
        storage.page("long", order=pb.RECORD_ORDER_DESCENDING, **fields)
    storage.context("long", max_records=500)
    list(service.BatchGetSlots(pb.BatchGetSlotsRequest(session_ids=ids), call))
    service.DiffSessions(pb.DiffSessionsRequest(left_session_id="new", right_session_id="last"), call)
    watches = WatchRules(SqlStore(storage.database, storage.clock, 24))
    for name, after in (("long", 50_000), ("newest", 3), ("newest", None)):
        position = watches.begin(call, name, after)
        watches.news(call, position)
        assert watches.stands(call, [position.origin])
    storage.archive("new")
    storage.delete("new")
    storage.delete("newer")
    storage.append("last", "u")
    storage.fork("last", "chain-0")
    for depth in range(1, 13):
        storage.append(f"chain-{depth - 1}", "u")
        storage.fork(f"chain-{depth - 1}", f"chain-{depth}")
    storage.page("chain-12", roles=[pb.ROLE_USER])
    storage.page("chain-12")
    storage.delete("chain-12")
    storage.sweep.erase_released(Call("of-no-meaning"), 10)


def faults(database: Database, statement: str, parameters: Any) -> list[str]:
    """Returns what of a statement's plan reads a whole table or index, or a whole space to sort it."""
    if isinstance(parameters, list):
        parameters = parameters[0]
    explain = "EXPLAIN QUERY PLAN" if database.engine.dialect.name == "sqlite" else "EXPLAIN"

    def read(connection: Any) -> list[Any]:
        return list(connection.exec_driver_sql(f"{explain} {statement}", parameters).mappings())

    rows = database.read(Call("default"), read)
    if explain == "EXPLAIN":
        return [
            str(dict(row))
            for row in rows
            if (row["type"] in ("ALL", "index") or ("filesort" in row["Extra"] and row["type"] != "const"))
            and row["table"]
            and not row["table"].startswith("<")
            # Places that the statement itself names, as it does on SQLite below.
            and row["table"] != "place"
        ]
    # Queries within queries have names that SQLAlchemy made up, or the one that lists give theirs.
    inner = ("SCAN anon_", "SCAN stretch", "SCAN (subquery", "SCAN place VIRTUAL TABLE")
    return [row["detail"] for row in rows if row["detail"].startswith("SCAN") and not row["detail"].startswith(inner)]


def test_no_call_reads_a_whole_table(crowded: Storage) -> None:
    with statements(crowded.database) as seen:
        every_call(crowded)
    found = {}
    for statement, parameters in seen:
        if statement.startswith(("SELECT", "UPDATE", "DELETE")):
            found[statement] = faults(crowded.database, statement, parameters)
    assert len(found) > 30
    bad = {statement: plan for statement, plan in found.items() if plan}
    # What waits for the sweep is read by age and never many: whether by index is the database's choice.
    assert not {statement: plan for statement, plan in bad.items() if "FROM released_span ORDER BY" not in statement}


def rows_read(storage: Storage, work: Any) -> int:
    """Counts the rows that MariaDB's engine touches while something runs alone."""

    def handlers() -> int:
        def read(connection: Any) -> int:
            rows = connection.execute(text("SHOW GLOBAL STATUS LIKE 'Handler_read%'")).all()
            return sum(int(value) for name, value in rows if name != "Handler_read_rnd_deleted")

        return storage.database.read(storage.call, read)

    handlers()
    before = handlers()
    idle = handlers() - before
    before = handlers()
    work()
    return handlers() - before - idle


def test_a_short_view_of_a_long_source_reads_only_what_it_shows(crowded: Storage) -> None:
    crowded.fork("long", "short", last=30)
    with statements(crowded.database) as seen:
        assert len(crowded.page("short").records) == 30
    assert len(seen) == 2
    if crowded.database.engine.dialect.name == "mysql":
        assert rows_read(crowded, lambda: crowded.page("short")) < 60
        assert rows_read(crowded, lambda: crowded.context("short")) < 80
    crowded.delete("short")


def test_deleting_one_of_many_forks_looks_at_few_of_the_others(crowded: Storage) -> None:
    origin = crowded.origin("long")
    _insert(
        crowded,
        tables.history_span,
        [{"owner_origin": new_id(), "first_seq": 1, "origin": origin, "last_seq": 50_000} for _ in range(3000)],
    )
    crowded.fork("long", "one-of-many", up_to_seq=40_000)
    if crowded.database.engine.dialect.name == "mysql":
        assert rows_read(crowded, lambda: crowded.delete("one-of-many")) < 100
    else:
        crowded.delete("one-of-many")
    assert len(crowded.page("long").records) == 100


def test_a_thousand_records_are_one_query_of_records(crowded: Storage) -> None:
    with statements(crowded.database) as seen:
        assert len(crowded.page("long", page_size=1000, after_seq=70_000).records) == 1000
    assert len([statement for statement, _ in seen if "FROM record" in statement]) == 1
    assert len(seen) == 2


def test_an_offset_is_counted_not_read(crowded: Storage) -> None:
    with statements(crowded.database) as seen:
        assert crowded.page("long", offset=90_000, page_size=1).records[0].seq == 90_001
    assert len(seen) == 2
    if crowded.database.engine.dialect.name == "mysql":
        assert rows_read(crowded, lambda: crowded.page("long", offset=90_000, page_size=1)) < 20


def test_a_page_of_sessions_looks_at_its_stretch_only(crowded: Storage) -> None:
    request = pb.ListSessionsRequest(page_size=10)
    common = pb.ListSessionsRequest(page_size=10, filter=pb.SessionFilter(tags=["all"]))
    rare = pb.ListSessionsRequest(page_size=10, filter=pb.SessionFilter(tags=["tag-7"]))
    none = pb.ListSessionsRequest(page_size=10, filter=pb.SessionFilter(label_prefix="nobody"))
    with statements(crowded.database) as seen:
        for each in (request, common, rare, none):
            crowded.service.ListSessions(each, crowded.call)
    # Nothing found: no sessions to read.
    assert len(seen) == 2 + 2 + 2 + 1
    if crowded.database.engine.dialect.name == "mysql":
        service, call = crowded.service, crowded.call
        assert rows_read(crowded, lambda: service.ListSessions(request, call)) < 100
        # The index of tags tells who bears one, so no more is looked at than shown.
        assert rows_read(crowded, lambda: service.ListSessions(common, call)) < 100
        assert rows_read(crowded, lambda: service.ListSessions(rare, call)) < 100
        assert rows_read(crowded, lambda: service.ListSessions(none, call)) < 6000


def test_an_append_is_few_statements(crowded: Storage) -> None:
    crowded.put("few", "u")
    with statements(crowded.database) as seen:
        crowded.append("few", "u a")
    # Begin, lock, records, session, tags; the commit is not a statement of a cursor.
    assert len(seen) == 5
    with statements(crowded.database) as seen:
        crowded.append("few", "u a", request_id=new_id(), consume_insight_version=0)
    assert len(seen) == 8


def test_digests_of_a_thousand_sessions_are_two_queries(crowded: Storage) -> None:
    ids = [f"session-{number:05}" for number in range(1000)]
    with statements(crowded.database) as seen:
        request = pb.BatchGetSlotsRequest(session_ids=ids)
        replies = list(crowded.service.BatchGetSlots(request, crowded.call))
    assert [slots.memory.content for reply in replies for slots in reply.sessions] == ["text"] * 1000
    assert len(seen) == 2


def test_a_page_of_sessions_is_two_queries_however_many_there_are(crowded: Storage) -> None:
    with statements(crowded.database) as seen:
        request = pb.ListSessionsRequest(page_size=1000, filter=pb.SessionFilter(tags=["all"]))
        reply = crowded.service.ListSessions(request, crowded.call)
    assert len(reply.sessions) == 1000
    assert len(seen) == 2


def test_a_fork_of_everything_reads_no_record_where_the_state_is_known(crowded: Storage) -> None:
    with statements(crowded.database) as seen:
        crowded.fork("long", "whole", all=EVERYTHING)
    assert not [statement for statement, _ in seen if "FROM record" in statement]
    crowded.delete("whole")
