"""Iterators follow the pages to their end, ask for no more than they need, and keep one page in memory."""

import gc
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from google.protobuf.message import Message

import ramet
from ramet import Client, Orchestrator, Record
from ramet.session.v1 import session_pb2 as pb
from ramet.tree.v1 import tree_pb2
from tests.sdk.scripted import Answer, scripted

NODES = [tree_pb2.Node(id="n1"), tree_pb2.Node(id="n2", parent_id="n1"), tree_pb2.Node(id="n3", parent_id="n2")]
SESSIONS = [pb.Session(id=name, status=pb.SESSION_STATUS_ACTIVE) for name in ("s1", "s2", "s3")]
RECORDS = [pb.Record(seq=seq, role=pb.ROLE_USER) for seq in (1, 2, 3)]
ENTRIES = [tree_pb2.TreeEntry(node=node, status=tree_pb2.SESSION_STATUS_ACTIVE, turn_count=0) for node in NODES]

ITERATORS: list[tuple[str, Callable[[Client], AsyncGenerator[Any, None]], type[Message], str, list[Any]]] = [
    ("ListSessions", lambda c: c.sessions.iter_sessions(), pb.ListSessionsResponse, "sessions", SESSIONS),
    ("ListRecords", lambda c: c.sessions.iter_records("s"), pb.ListRecordsResponse, "records", RECORDS),
    ("ListNodes", lambda c: c.tree.iter_nodes(), tree_pb2.ListNodesResponse, "nodes", NODES),
    ("ListRoots", lambda c: c.tree.iter_roots(), tree_pb2.ListRootsResponse, "nodes", NODES),
    ("ListChildren", lambda c: c.tree.iter_children("n"), tree_pb2.ListChildrenResponse, "nodes", NODES),
    ("GetAncestors", lambda c: c.tree.iter_ancestors("n"), tree_pb2.GetAncestorsResponse, "nodes", NODES),
    ("GetSiblings", lambda c: c.tree.iter_siblings("n"), tree_pb2.GetSiblingsResponse, "nodes", NODES),
    ("ListDescendants", lambda c: c.tree.iter_descendants("n"), tree_pb2.ListDescendantsResponse, "nodes", NODES),
    ("GetTree", lambda c: c.tree.iter_tree("n"), tree_pb2.GetTreeResponse, "entries", ENTRIES),
]


@pytest.mark.parametrize(("rpc", "iterate", "reply", "field", "items"), ITERATORS, ids=[each[0] for each in ITERATORS])
async def test_an_iterator_follows_the_pages_also_over_an_empty_one(
    rpc: str,
    iterate: Callable[[Client], AsyncGenerator[Any, None]],
    reply: Callable[..., Message],
    field: str,
    items: list[Any],
) -> None:
    pages: list[Answer] = [
        reply(**{field: items[:2], "next_page_token": "two"}),
        reply(next_page_token="three"),
        reply(**{field: items[2:]}),
    ]
    answers: dict[str, Any] = {rpc: pages}
    async with scripted(**answers) as server, ramet.connect(server.address) as client:
        assert len([item async for item in iterate(client)]) == 3
        asked = server.heard(rpc)
        assert [request.page_token for request in asked] == ["", "two", "three"]
        for request in asked:
            request.page_token = ""
        assert asked[0] == asked[1] == asked[2]


async def test_a_reader_that_stops_asks_for_no_further_page() -> None:
    pages: list[Answer] = [pb.ListRecordsResponse(records=RECORDS, next_page_token="more")]
    async with scripted(ListRecords=pages) as server, ramet.connect(server.address) as client:
        async for record in client.sessions.iter_records("s"):
            if record.seq == 3:
                break
        assert len(server.heard("ListRecords")) == 1


async def test_a_long_history_is_in_memory_a_page_at_a_time() -> None:
    pages: list[Answer] = [
        pb.ListRecordsResponse(
            records=[pb.Record(seq=page * 1000 + place, role=pb.ROLE_USER) for place in range(1000)],
            next_page_token=str(page + 1) if page < 19 else "",
        )
        for page in range(20)
    ]
    most = 0
    async with scripted(ListRecords=pages) as server, ramet.connect(server.address) as client:
        async for record in client.sessions.iter_records("s"):
            if record.seq % 1000 == 1:
                most = max(most, sum(isinstance(each, Record) for each in gc.get_objects()))
        assert record.seq == 19_999
    assert most <= 2_001


async def test_digests_are_two_calls_a_page() -> None:
    pages: list[Answer] = [
        tree_pb2.GetTreeResponse(entries=ENTRIES[:2], next_page_token="two"),
        tree_pb2.GetTreeResponse(entries=ENTRIES[2:]),
    ]
    slots: list[Answer] = [
        pb.BatchGetSlotsResponse(sessions=[_slots("n1"), _slots("n2")]),
        pb.BatchGetSlotsResponse(sessions=[_slots("n3")]),
    ]
    async with scripted(GetTree=pages, BatchGetSlots=slots) as server, ramet.connect(server.address) as client:
        digests = await Orchestrator(client).list_digests()
        assert [(digest.id, digest.memory, digest.insight) for digest in digests] == [
            ("n1", "m", None),
            ("n2", "m", None),
            ("n3", "m", None),
        ]
        assert {request.page_size for request in server.heard("GetTree")} == {1000}
        assert [list(request.session_ids) for request in server.heard("BatchGetSlots")] == [["n1", "n2"], ["n3"]]
        assert len(server.requests) == 4


def _slots(session_id: str) -> pb.SessionSlots:
    return pb.SessionSlots(session_id=session_id, insight=pb.Slot(), memory=pb.Slot(content="m", version=1))
