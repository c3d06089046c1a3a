"""Everything at once, through two servers: each call ends as the contract says, and what is left is whole."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import sqlalchemy as sa

from ramet.session.v1 import session_pb2
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1 import tree_pb2
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from ramet_server.database.tables.session import broken_group, history_span, record, released_span, session
from tests.cases.bulk import engine_of
from tests.cases.conftest import Connect, Start
from tests.conformance.refusing import reason_of
from tests.conformance.session import making as storing
from tests.conformance.tree import making as growing
from tests.harness.server import ServerProcess

WRITERS, STEPS = 10, 25
SESSIONS = [f"s{number}" for number in range(10)]
NODES = [f"n{number}" for number in range(16)]


def change_a_session(storage: SessionStorageStub, choice: random.Random, request_id: str) -> object:
    """One change of one of a few sessions, most of them forks of each other."""
    one, other = choice.choices(SESSIONS, k=2)
    kind = choice.choice(["append", "append", "append", "fork", "fork", "trim", "rewind", "delete", "put", "erase"])
    match kind:
        case "append":
            tail = choice.choice(
                [storing.users(2), [storing.calling("c"), storing.answering("c")], [storing.calling("d")]]
            )
            return storing.append(storage, one, *tail, request_id=request_id)
        case "fork":
            return storing.fork(storage, one, other, last=choice.choice([None, 3]))
        case "trim":
            return storing.trim(storage, one, choice.randint(0, 6))
        case "rewind":
            seen = storing.get(storage, one)
            return storing.rewind(storage, one, choice.randint(seen.floor_seq, seen.head_seq))
        case "delete":
            storing.delete(storage, one)
            return None
        case "put":
            return storing.put(storage, one, label=request_id, tags=["t"])
    seqs = [0, *storing.seqs(storage, one)]
    return storage.EraseRecord(session_pb2.EraseRecordRequest(session_id=one, seq=choice.choice(seqs)))


def change_the_forest(tree: SessionTreeStub, choice: random.Random, request_id: str) -> object:
    """One change of the forest."""
    one, other = choice.choices(NODES, k=2)
    match choice.choice(["create", "create", "move", "move", "delete", "add", "remove"]):
        case "create":
            return growing.create(tree, one, choice.choice([None, other]), request_id=request_id)
        case "move":
            return growing.move(tree, one, choice.choice([None, other, other]), choice.choice([None, 0, 1, 2]))
        case "delete":
            return growing.delete(tree, one, choice.choice([growing.REFUSE, growing.CASCADE, growing.REPARENT]))
        case "add":
            return growing.add_ref(tree, one, other)
    return tree.RemoveRef(tree_pb2.RemoveRefRequest(node_id=one, target_id=other))


def at_once(change: Callable[[int, random.Random, str], object]) -> set[str | None]:
    """Let many writers make changes, each by its own dice; the reasons of all refusals."""

    def write(writer: int) -> set[str | None]:
        choice = random.Random(writer)
        return {reason_of(partial(change, writer, choice, f"{writer}-{step}")) for step in range(STEPS)}

    with ThreadPoolExecutor(WRITERS) as pool:
        return set[str | None]().union(*pool.map(write, range(WRITERS)))


def rows_left(url: str) -> dict[str, int]:
    """How many rows the tables of histories hold."""
    engine = engine_of(url)
    with engine.connect() as connection:
        counted = {
            table.name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in (session, record, history_span, broken_group, released_span)
        }
    engine.dispose()
    return counted


def test_sessions_that_share_histories_stay_whole_and_leave_nothing_behind(
    database_url: str, start: Start, connect: Connect
) -> None:
    storages = [SessionStorageStub(connect(server.address)) for server in (start(database_url), start(database_url))]
    storage = storages[0]
    storing.put(storage, SESSIONS[0])
    storing.append(storage, SESSIONS[0], *storing.users(5))
    reasons = at_once(lambda writer, choice, name: change_a_session(storages[writer % 2], choice, name))
    known = {"SESSION_NOT_FOUND", "SESSION_EXISTS", "RECORD_NOT_FOUND", "BELOW_TRIM_FLOOR", "ABOVE_HEAD"}
    assert reasons <= {None, *known, "INVALID_FIELD"}
    for found in storage.ListSessions(session_pb2.ListSessionsRequest()).sessions:
        context = storing.context(storage, found.id)
        assert len(storing.history(storage, found.id)) == len(context.records) + context.incomplete_records
        forked = storing.fork(storage, found.id, f"fork of {found.id}")
        assert storing.history(storage, forked.session.id) == list(context.records)
    for found in storage.ListSessions(session_pb2.ListSessionsRequest()).sessions:
        storing.delete(storage, found.id)
    assert set(rows_left(database_url).values()) == {0}, rows_left(database_url)


def test_a_forest_stays_a_forest_and_its_refs_stay_legal(two_servers: list[ServerProcess], connect: Connect) -> None:
    trees = [SessionTreeStub(connect(server.address)) for server in two_servers]
    reasons = at_once(lambda writer, choice, name: change_the_forest(trees[writer % 2], choice, name))
    known = {"NODE_NOT_FOUND", "NODE_EXISTS", "NODE_HAS_CHILDREN", "MOVE_MAKES_CYCLE", "ILLEGAL_REF"}
    assert reasons <= {None, *known}
    told = growing.outline(trees[0]).replace("(", " ").replace(")", " ").split()
    assert sorted(told) == growing.nodes(trees[1])
    for node in [entry.node for entry in growing.entries(trees[0])]:
        line = {node.id, *growing.ancestors(trees[0], node.id), *growing.descendants(trees[0], node.id)}
        assert not line & set(node.refs)
        assert set(node.refs) <= set(told)
