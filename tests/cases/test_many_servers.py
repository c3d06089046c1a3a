"""Several servers over one database: started at once, written through at once, killed in the midst."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ramet.session.v1 import session_pb2
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.cases.conftest import Connect, Start
from tests.conformance.refusing import reason_of
from tests.conformance.session import making as storing
from tests.conformance.tree import making as growing
from tests.harness.server import ServerProcess
from tests.harness.waiting import wait_until

SERVICES = ["", "ramet.session.v1.SessionStorage", "ramet.tree.v1.SessionTree"]


def is_serving(channel: grpc.Channel, service: str) -> bool:
    """Whether the server says that this service is healthy."""
    # The stub sets its methods when it is made; its types do not know them.
    health: Any = health_pb2_grpc.HealthStub(channel)
    answer = health.Check(health_pb2.HealthCheckRequest(service=service))
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


@pytest.fixture
def storages(two_servers: list[ServerProcess], connect: Connect) -> Sequence[SessionStorageStub]:
    """The SessionStorage of two servers over one database."""
    return [SessionStorageStub(connect(server.address)) for server in two_servers]


@pytest.fixture
def trees(two_servers: list[ServerProcess], connect: Connect) -> Sequence[SessionTreeStub]:
    """The SessionTree of two servers over one database."""
    return [SessionTreeStub(connect(server.address)) for server in two_servers]


def test_five_servers_started_at_once_on_an_empty_database_are_all_healthy(
    database_url: str, start: Start, connect: Connect
) -> None:
    """kubeflow#2471: five servers start at once on an empty database -> all healthy, and all on one schema."""
    with ThreadPoolExecutor(5) as pool:
        servers: list[ServerProcess] = list(pool.map(start, [database_url] * 5))
    channels = [connect(server.address) for server in servers]
    for channel in channels:
        for service in SERVICES:
            wait_until(partial(is_serving, channel, service), f"{service or 'the server'} is healthy")
    storing.put(SessionStorageStub(channels[0]), "main")
    for channel in channels:
        storing.append(SessionStorageStub(channel), "main", storing.user())
    assert storing.seqs(SessionStorageStub(channels[0]), "main") == [1, 2, 3, 4, 5]
    revisions = {
        SessionStorageStub(channel).GetServerInfo(session_pb2.GetServerInfoRequest()).schema_revision
        for channel in channels
    }
    assert len(revisions) == 1


def test_appends_through_two_servers_share_one_order(storages: Sequence[SessionStorageStub]) -> None:
    """openai-agents-python#2722: parallel appends, here through two servers; none lost, none refused."""
    storing.put(storages[0], "main")
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda n: storing.append(storages[n % 2], "main", storing.user(f"r{n}")), range(60)))
    given = {reply.seqs[0]: f"r{number}" for number, reply in enumerate(replies)}
    assert sorted(given) == list(range(1, 61))
    assert {record.seq: record.content for record in storing.history(storages[1], "main")} == given


def test_of_two_appends_at_one_head_through_two_servers_one_is_aborted(
    storages: Sequence[SessionStorageStub],
) -> None:
    """langgraph#8796: two appends with the same expected head -> one ABORTED, the winner intact."""
    head = storing.put(storages[0], "main").head_seq
    for _ in range(10):
        appends = [
            partial(storing.append, storage, "main", *storing.users(2), expected_head_seq=head) for storage in storages
        ]
        with ThreadPoolExecutor(2) as pool:
            assert set(pool.map(reason_of, appends)) == {None, "STALE_HEAD"}
        head += 2
    assert storing.seqs(storages[0], "main") == list(range(1, 21))


def test_the_same_request_at_the_same_moment_on_two_servers_is_one(storages: Sequence[SessionStorageStub]) -> None:
    """anthropic-sdk-java#370: same key, same body -> first result, on whichever server."""
    storing.put(storages[0], "main")
    for number in range(10):
        with ThreadPoolExecutor(4) as pool:
            replies = list(
                pool.map(
                    lambda storage, name=f"op-{number}": storing.append(
                        storage, "main", storing.user(name), request_id=name
                    ),
                    [*storages, *storages],
                )
            )
        assert len({tuple(reply.seqs) for reply in replies}) == 1
    assert storing.texts(storages[0], "main") == [f"op-{number}" for number in range(10)]


def test_eight_children_through_two_servers_get_indexes_without_a_gap(trees: Sequence[SessionTreeStub]) -> None:
    """stello: eight parallel children of one parent -> indexes 0..7, none lost."""
    growing.create(trees[0], "a")
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: growing.create(trees[number % 2], f"c{number}", "a"), range(8)))
    assert sorted(node.index for node in made) == list(range(8))
    assert len(growing.children(trees[1], "a")) == 8


def test_opposing_moves_through_two_servers_never_make_a_cycle(trees: Sequence[SessionTreeStub]) -> None:
    """OpenHands#15247: two opposing moves at once -> one refused, no cycle ever."""
    for number in range(10):
        growing.grow(trees[0], f"l{number} r{number}")
        opposing = [
            partial(growing.move, trees[0], f"l{number}", f"r{number}"),
            partial(growing.move, trees[1], f"r{number}", f"l{number}"),
        ]
        with ThreadPoolExecutor(2) as pool:
            assert set(pool.map(reason_of, opposing)) == {None, "MOVE_MAKES_CYCLE"}
    assert len(growing.entries(trees[0])) == 20
    assert growing.outline(trees[0]) == growing.outline(trees[1])


def test_what_was_acknowledged_before_a_kill_is_there_once_and_retries_add_nothing(
    shared_url: str, start: Start, connect: Connect
) -> None:
    """The server dies in the midst of appends: no acknowledged record is lost, no retried one comes twice."""
    server = start(shared_url)
    storage = SessionStorageStub(connect(server.address))
    storing.put(storage, "main")
    numbers = count()
    acknowledged: dict[str, int] = {}
    tried: set[str] = set()

    def write_until_cut(_writer: int) -> None:
        while True:
            name = f"r{next(numbers)}"
            tried.add(name)
            try:
                acknowledged[name] = storing.append(storage, "main", storing.user(name), request_id=name).seqs[0]
            except grpc.RpcError:
                return

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write_until_cut, number) for number in range(4)]
        wait_until(lambda: len(acknowledged) > 40, "some appends are acknowledged")
        server.kill()
        for writer in writers:
            writer.result()
    storage = SessionStorageStub(connect(start(shared_url).address))
    kept = {record.content: record.seq for record in storing.history(storage, "main")}
    assert {name: kept[name] for name in acknowledged} == acknowledged
    assert set(kept) <= tried
    for name in sorted(tried):
        storing.append(storage, "main", storing.user(name), request_id=name)
    stored = storing.history(storage, "main")
    assert sorted(record.content for record in stored) == sorted(tried)
    assert {record.content: record.seq for record in stored}.items() >= kept.items()
    assert len({record.seq for record in stored}) == len(stored)
