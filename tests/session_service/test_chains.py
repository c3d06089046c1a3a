"""Long chains of forks, each with some records of its own, cost a reader about what a plain history costs."""

from typing import Any

import pytest
from sqlalchemy import insert

from ramet.session.v1 import session_pb2 as pb
from ramet_server.database.database import Database
from ramet_server.database.tables import session as tables
from ramet_server.domain.ids import new_id
from ramet_server.domain.limits import Limits
from tests.cases.measuring import work_of
from tests.session_service.storage import Storage, TurnedClock, statements

LENGTHS = [1, 2, 1, 3, 17, 1, 16, 1] * 100
"""Records of each fork: mostly few, and now and then more than are named one by one."""

TOTAL = sum(LENGTHS)
TOOL_EVERY = 10
DESCENDING = pb.RECORD_ORDER_DESCENDING


@pytest.fixture(scope="module")
def chained(database: Database) -> Storage:
    """Two sessions that show the same: the end of a chain of forks, and a plain one."""
    storage = Storage(database, f"space-{new_id()}", Limits(), TurnedClock())
    for name in ("chain", "plain"):
        storage.put(name)
    now, plain, chain = storage.clock.now(), storage.origin("plain"), storage.origin("chain")
    records: list[dict[str, Any]] = []
    spans: list[dict[str, Any]] = []
    seq = 0
    for length in LENGTHS:
        origin, first = new_id(), seq + 1
        for _ in range(length):
            seq += 1
            role = "SYSTEM" if seq % TOOL_EVERY == 0 else "USER"
            row = {"seq": seq, "role": role, "content": f"text {seq}", "size_bytes": 10, "created_at": now}
            records += [row | {"origin": origin}, row | {"origin": plain}]
        # The source of each fork went on alone, so a reader of the whole origin would read too much.
        records += [row | {"origin": origin, "seq": other} for other in range(first + length, first + length + 50)]
        spans.append({"owner_origin": chain, "first_seq": first, "origin": origin, "last_seq": seq})

    def store(connection: Any) -> None:
        connection.execute(insert(tables.record), records)
        t = tables.history_span
        connection.execute(t.update().where(t.c.owner_origin == chain).values(first_seq=seq + 1))
        connection.execute(insert(t), spans)
        t = tables.session
        connection.execute(t.update().where(t.c.origin.in_([plain, chain])).values(head_seq=seq, max_record_bytes=10))

    database.write(storage.call, store)
    return storage


def by_role(storage: Storage, name: str) -> Any:
    return storage.page(name, page_size=50, roles=[pb.ROLE_SYSTEM])


def told(records: Any) -> list[tuple[int, str]]:
    return [(record.seq, record.content) for record in records]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"order": DESCENDING},
        {"after_seq": 700},
        {"before_seq": 33, "order": DESCENDING},
        {"roles": [pb.ROLE_SYSTEM]},
        {"roles": [pb.ROLE_SYSTEM], "order": DESCENDING},
        {"roles": [pb.ROLE_USER], "offset": 901},
        {"offset": 17, "order": DESCENDING},
    ],
)
def test_a_chain_shows_what_a_plain_session_shows(chained: Storage, fields: dict[str, Any]) -> None:
    for size in (7, 1000):
        chain, plain = (chained.page(name, page_size=size, **fields) for name in ("chain", "plain"))
        assert told(chain.records) == told(plain.records) != []
        assert bool(chain.next_page_token) == bool(plain.next_page_token)
    assert told(chained.context("chain", max_records=900).records) == told(
        chained.context("plain", max_records=900).records
    )


@pytest.mark.parametrize(
    "read",
    [
        lambda s, name: s.page(name, page_size=1000),
        lambda s, name: s.page(name, page_size=20, order=DESCENDING),
        by_role,
    ],
    ids=["page", "last", "roles"],
)
def test_reading_a_chain_looks_at_little_more_than_it_shows(chained: Storage, read: Any) -> None:
    cost: dict[str, tuple[int, int]] = {}
    for name in ("plain", "chain"):
        with statements(chained.database) as seen:
            shown = len(read(chained, name).records)
        read_ones = [(text, values) for text, values in seen if text.startswith("SELECT")]

        def work(connection: Any, ran: Any = read_ones) -> int:
            return sum(work_of(connection, text, values) for text, values in ran)

        cost[name] = len(read_ones), chained.database.read(chained.call, work)
    # Spans that are short and spans that are long take a statement each, and a rare role is looked for more than once.
    assert cost["chain"][0] <= cost["plain"][0] + (8 if read is by_role else 1)
    # Rows looked at on MariaDB: a span, a place and a record for each. On SQLite: steps, which names cost more of.
    most = 5 * (shown + 50) if chained.database.engine.dialect.name == "mysql" else 5 * cost["plain"][1] + 5000
    if read is by_role:
        # All spans, since nobody knows which hold the role; and what has no such role, ever more of it at once.
        most += 2 * len(LENGTHS) + 3 * cost["plain"][1]
    assert cost["chain"][1] <= most + cost["plain"][1]
