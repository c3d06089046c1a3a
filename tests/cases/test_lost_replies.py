"""The reply is lost after the commit: a retry with the same request_id changes nothing more.

langgraph-checkpoint-mysql#90: cut after COMMIT before the reply; retry with the same key -> one record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
import pytest

from ramet.session.v1 import session_pb2
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1 import tree_pb2
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.cases.conftest import Connect, Start
from tests.conformance.refusing import reason_of, refused
from tests.conformance.session import making as storing
from tests.conformance.session.transacting import requests
from tests.conformance.tree import making as growing
from tests.harness.mariadb import MariaDb
from tests.harness.muffle import Muffle
from tests.harness.proxy import Cut, Proxy
from tests.harness.server import ServerProcess, running_server
from tests.harness.waiting import wait_until

ONCE = "op-1"


@dataclass
class Stubs:
    """Both services over one channel."""

    storage: SessionStorageStub
    tree: SessionTreeStub


def stubs(channel: grpc.Channel) -> Stubs:
    """Both services over this channel."""
    return Stubs(SessionStorageStub(channel), SessionTreeStub(channel))


def unavailable(call: Callable[[], object]) -> bool:
    """Whether the call fails as a lost connection does."""
    try:
        call()
    except grpc.RpcError as error:
        # What grpc raises is also a grpc.Call; the types do not say so.
        told: Any = error
        return bool(told.code() is grpc.StatusCode.UNAVAILABLE)
    return False


def append(to: Stubs) -> object:
    """Append two records, once."""
    return storing.append(to.storage, "main", *storing.users(2), turn_delta=1, request_id=ONCE)


def create(to: Stubs) -> object:
    """Create a session, once and only."""
    return storing.put(to.storage, "fresh", label="L", expected_version=0, request_id=ONCE)


def fork(to: Stubs) -> object:
    """Fork a session under an id that the server makes, once."""
    request = session_pb2.ForkSessionRequest(source_session_id="main", opening_prompt="hello", request_id=ONCE)
    request.all.SetInParent()
    return to.storage.ForkSession(request)


def delete(to: Stubs) -> object:
    """Delete a session, once."""
    return to.storage.DeleteSession(session_pb2.DeleteSessionRequest(session_id="main", request_id=ONCE))


def plant(to: Stubs) -> object:
    """Create a node under an id that the server makes, once."""
    return growing.create(to.tree, parent="root", request_id=ONCE)


def move(to: Stubs) -> object:
    """Move a node to the front, once."""
    return to.tree.MoveNode(tree_pb2.MoveNodeRequest(node_id="other", index=0, request_id=ONCE))


def transact(to: Stubs) -> object:
    """Write in a transaction, once; the client does not look at the answers in between."""
    steps = [
        session_pb2.TransactRequest(
            append_records=session_pb2.AppendRecordsRequest(session_id="main", records=storing.users(2))
        ),
        session_pb2.TransactRequest(put_session=session_pb2.PutSessionRequest(session=session_pb2.Session(id="made"))),
    ]
    return list(to.storage.Transact(requests(*steps, request_id=ONCE)))[-1].WhichOneof("result")


WRITES = [append, create, fork, delete, plant, move, transact]


def seed(to: Stubs) -> None:
    """What the writes write to."""
    storing.put(to.storage, "main")
    storing.append(to.storage, "main", storing.user("first"))
    growing.grow(to.tree, "root other")


def read_into(records: list[object], storage: SessionStorageStub, session_id: str) -> None:
    """Read a whole history into a list."""
    records += storing.history(storage, session_id)


def everything(to: Stubs) -> list[object]:
    """All that the space shows."""
    found: list[object] = list(growing.entries(to.tree))
    for session in to.storage.ListSessions(session_pb2.ListSessionsRequest()).sessions:
        records: list[object] = []
        # It may be deleted between the list and the read.
        gone = reason_of(partial(read_into, records, to.storage, session.id))
        found += [session, *records, gone]
    return found


@pytest.mark.parametrize("write", WRITES)
def test_a_reply_lost_between_server_and_client_is_found_by_a_retry(
    two_servers: list[ServerProcess], connect: Connect, write: Callable[[Stubs], object]
) -> None:
    with Muffle(two_servers[0].address) as muffle:
        direct, through = stubs(connect(two_servers[1].address)), stubs(connect(muffle.address))
        seed(through)
        before = everything(direct)
        muffle.silence()
        with ThreadPoolExecutor(1) as pool:
            lost = pool.submit(unavailable, partial(write, through))
            wait_until(lambda: everything(direct) != before, "the write is committed")
            muffle.cut()
            assert lost.result()
        after = everything(direct)
        first = write(through)
        assert write(direct) == first
        assert everything(direct) == after


@pytest.mark.parametrize("write", [append, fork, plant, transact])
def test_a_reply_lost_with_the_server_is_found_on_the_next_one(
    two_servers: list[ServerProcess],
    shared_url: str,
    start: Start,
    connect: Connect,
    write: Callable[[Stubs], object],
) -> None:
    dying, other = start(shared_url), two_servers[1]
    with Muffle(dying.address) as muffle:
        direct, through = stubs(connect(other.address)), stubs(connect(muffle.address))
        seed(through)
        before = everything(direct)
        muffle.silence()
        with ThreadPoolExecutor(1) as pool:
            lost = pool.submit(unavailable, partial(write, through))
            wait_until(lambda: everything(direct) != before, "the write is committed")
            dying.kill()
            muffle.cut()
            assert lost.result()
        after = everything(direct)
        assert write(direct) == write(direct)
        assert everything(direct) == after


@pytest.fixture(scope="module")
def proxied(mariadb_server: MariaDb) -> Iterator[tuple[Proxy, str]]:
    """A server in this process with a door between it and MariaDB, and its address."""
    url = mariadb_server.new_database()
    with (
        Proxy(mariadb_server.port) as proxy,
        running_server(url.replace(f":{mariadb_server.port}/", f":{proxy.port}/")) as address,
    ):
        yield proxy, address
    mariadb_server.drop_database(url)


@pytest.mark.mariadb
@pytest.mark.parametrize("cut", [Cut.BEFORE_COMMIT, Cut.AFTER_COMMIT])
@pytest.mark.parametrize("write", WRITES)
def test_a_connection_to_the_database_lost_in_commit_is_settled_by_the_request_id(
    proxied: tuple[Proxy, str], connect: Connect, write: Callable[[Stubs], object], cut: Cut
) -> None:
    proxy, address = proxied
    through = stubs(connect(address))
    seed(through)
    cuts = proxy.cuts
    proxy.cut = cut
    first = write(through)
    assert proxy.cuts == cuts + 1
    after = everything(through)
    assert write(through) == first
    assert everything(through) == after


@pytest.mark.mariadb
def test_without_a_request_id_the_caller_is_told_that_the_outcome_is_unknown(
    proxied: tuple[Proxy, str], connect: Connect
) -> None:
    proxy, address = proxied
    through = stubs(connect(address))
    seed(through)
    proxy.cut = Cut.AFTER_COMMIT
    with refused(grpc.StatusCode.UNAVAILABLE, "OUTCOME_UNKNOWN"):
        storing.append(through.storage, "main", storing.user("second"))
    assert storing.texts(through.storage, "main") == ["first", "second"]
