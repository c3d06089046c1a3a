"""Watches over two servers of one database: cut anywhere and resumed at either, beside writers at both."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from ramet.session.v1 import session_pb2
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from ramet_server.serving.settings import Settings
from tests.conformance.calling import within
from tests.conformance.session import making as storing
from tests.conformance.session.watches import watched as watched_records
from tests.conformance.tree import making as growing
from tests.conformance.tree.watches import told
from tests.conformance.tree.watches import watched as watched_tree
from tests.harness.server import running_server

WRITERS = 8
WRITES = 12


@dataclass(frozen=True)
class Server:
    """The contracts at one server."""

    storage: SessionStorageStub
    tree: SessionTreeStub


@pytest.fixture
def connect() -> Iterator[Callable[[str], Server]]:
    """Connects to a server."""
    with ExitStack() as stack:

        def connect_to(address: str) -> Server:
            channel = within(stack.enter_context(grpc.insecure_channel(address)), "watched")
            return Server(SessionStorageStub(channel), SessionTreeStub(channel))

        yield connect_to


@pytest.fixture
def servers(database_url: str, connect: Callable[[str], Server]) -> Iterator[Sequence[Server]]:
    """Two servers over one database, on each backend."""
    with running_server(database_url) as one, running_server(database_url) as other:
        yield [connect(one), connect(other)]


def read_in_pieces(servers: Sequence[Server], open_at: Callable[[Server, int], Any], through: int) -> list[Any]:
    """Reads by watches that are left after a few messages, each resumed at any server, until all was told."""
    chance = random.Random(20)
    messages: list[Any] = []
    position = 0
    while position < through:
        with open_at(chance.choice(servers), position) as watch:
            for _ in range(chance.randint(1, 4)):
                message = watch.read()
                messages.append(message)
                position = message.through_seq if hasattr(message, "through_seq") else message.through_position
                if position >= through:
                    break
    return messages


def test_records_are_told_once_and_in_order_however_a_watch_is_cut(servers: Sequence[Server]) -> None:
    storing.put(servers[0].storage, "main")

    def write(writer: int) -> None:
        for number in range(WRITES):
            storing.append(servers[number % 2].storage, "main", storing.user(f"{writer}-{number}"))

    with ThreadPoolExecutor(WRITERS) as pool:
        writing = [pool.submit(write, writer) for writer in range(WRITERS)]
        messages = read_in_pieces(
            servers, lambda server, after: watched_records(server.storage, "main", after), WRITERS * WRITES
        )
        for each in writing:
            each.result()
    records = [record for message in messages for record in message.records]
    assert [record.seq for record in records] == list(range(1, WRITERS * WRITES + 1))
    assert records == storing.history(servers[1].storage, "main")


def test_changes_of_the_forest_are_told_once_and_in_order_however_a_watch_is_cut(servers: Sequence[Server]) -> None:
    growing.create(servers[0].tree, "top")

    def write(writer: int) -> None:
        for number in range(WRITES // 2):
            server, name = servers[(writer + number) % 2], f"{writer}-{number}"
            growing.create(server.tree, name, "top", awaits_content=number % 2 == 0)
            storing.put(server.storage, name)
            growing.move(server.tree, name, "top", 0)
            if number == 1:
                growing.delete(server.tree, name)

    # One at the start; each node comes and moves, and some go.
    all_changes = 1 + WRITERS * WRITES + WRITERS
    with ThreadPoolExecutor(WRITERS) as pool:
        writing = [pool.submit(write, writer) for writer in range(WRITERS)]
        messages = read_in_pieces(servers, lambda server, after: watched_tree(server.tree, after), all_changes)
        for each in writing:
            each.result()
    changes = [change for message in messages for change in message.changes]
    assert [change.position for change in changes] == list(range(1, all_changes + 1))
    with watched_tree(servers[1].tree, 0) as watch:
        again = watch.read_until(lambda message: message.through_position == all_changes)
    assert told(messages) == told(again)
    created = [word for word in told(messages).split() if word.startswith("+")]
    assert len(set(created)) == len(created) == 1 + WRITERS * WRITES // 2


def test_what_a_server_commits_itself_is_told_without_waiting_for_a_look(
    database_url: str, connect: Callable[[str], Server]
) -> None:
    with running_server(database_url, settings=Settings(watch_poll_seconds=3600, log_level="warning")) as address:
        server = connect(address)
        storage, tree = server.storage, server.tree
        storing.put(storage, "main")
        growing.create(tree, "a")
        with watched_records(storage, "main") as records, watched_tree(tree) as changes:
            records.read()
            changes.read()
            for number in range(5):
                storing.append(storage, "main", storing.user(f"r{number}"))
                assert records.read().records[0].content == f"r{number}"
            begin = session_pb2.TransactBegin(request_id="t")
            append = session_pb2.AppendRecordsRequest(session_id="main", records=[storing.user("by transaction")])
            steps = [{"begin": begin}, {"append_records": append}, {"commit": session_pb2.TransactCommit()}]
            list(storage.Transact(iter([session_pb2.TransactRequest(**step) for step in steps])))  # type: ignore[arg-type]  # each has one step
            assert records.read().records[0].content == "by transaction"
            storing.rewind(storage, "main", 2)
            assert records.read().rewound_to_seq == 2
            growing.create(tree, "b", "a")
            growing.move(tree, "b")
            growing.delete(tree, "b")
            assert told(changes.read_until(lambda message: message.through_position == 4)) == "+b >b -b"
            storing.delete(storage, "main")
            assert records.end().reason == "SESSION_NOT_FOUND"
