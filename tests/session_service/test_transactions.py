"""Open transactions: what they may take, how long they may stay, and that nothing is left of one that ends."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet_server.serving.settings import Settings
from tests.conformance.refusing import reason_of, refused, too_large
from tests.conformance.session.making import append, calling, get, put, texts, user, users
from tests.conformance.session.transacting import Transaction, requests
from tests.harness.muffle import Muffle
from tests.harness.server import ServerProcess, running_server
from tests.harness.waiting import wait_until

_MIB = 1024 * 1024


@contextmanager
def serving(url: str, **settings: Any) -> Iterator[SessionStorageStub]:
    """A server under these settings, with a session in it."""
    with (
        running_server(url, settings=Settings(log_level="error", **settings)) as address,
        grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", 32 * _MIB)]) as channel,
    ):
        storage = SessionStorageStub(channel)
        put(storage, "main")
        yield storage


def test_a_transaction_that_its_client_leaves_open_is_ended_with_the_limit(database_url: str) -> None:
    with serving(database_url, transaction_seconds=0.2) as storage:
        # One that never begins is no better than one that never commits.
        for request_id in ("left-open", None):
            with (
                refused(grpc.StatusCode.ABORTED, "TRANSACTION_EXPIRED") as refusal,
                Transaction(storage, request_id) as transaction,
            ):
                if request_id:
                    transaction.append("main", user())
                transaction.answer()
            assert refusal.metadata == {"limit": "0.2", "unit": "seconds"}
        assert texts(storage, "main") == []
        append(storage, "main", user("at once"))


def test_a_client_that_does_not_read_is_ended_too(database_url: str) -> None:
    with serving(database_url, transaction_seconds=2.0, open_transaction_bytes=24 * 1024) as storage:
        append(storage, "main", *(user("x" * _MIB) for _ in range(4)))
        with Transaction(storage) as deaf:
            for _ in range(20):
                deaf.send(list_records=pb.ListRecordsRequest(session_id="main"))
            # There is room for one transaction only.
            wait_until(lambda: reason_of(lambda: Transaction(storage)) is None, "the deaf client's transaction is over")
            assert reason_of(deaf.rest) == "TRANSACTION_EXPIRED"


def test_operations_are_limited(database_url: str) -> None:
    with serving(database_url, transaction_operations=3) as storage:
        with Transaction(storage) as transaction:
            for _ in range(3):
                transaction.get_memory("main")
            transaction.commit()
        with Transaction(storage) as transaction:
            for _ in range(3):
                transaction.append("main", user())
            with too_large(3) as refusal:
                transaction.get_memory("main")
        assert refusal.metadata == {"limit": "3", "unit": "operations", "step": "4"}
        assert texts(storage, "main") == []


def test_bytes_are_limited(database_url: str) -> None:
    limit = 64 * 1024
    with serving(database_url, transaction_bytes=limit) as storage:
        with Transaction(storage) as transaction:
            transaction.put_memory("main", "x" * 32 * 1024)
            transaction.put_memory("main", "x" * 31 * 1024)
            transaction.commit()
        with Transaction(storage) as transaction:
            transaction.put_memory("main", "y" * 32 * 1024)
            with too_large(limit) as refusal:
                transaction.put_memory("main", "y" * 33 * 1024)
            assert refusal.metadata["unit"] == "bytes"
        # What is small on the wire is not in memory: each record and each call counts.
        with Transaction(storage) as transaction, too_large(limit):
            transaction.append("main", *users(256))
        with Transaction(storage) as transaction, too_large(limit):
            transaction.append("main", *(calling(*"abcdefgh") for _ in range(30)))
        assert texts(storage, "main") == []


def test_all_open_transactions_together_are_limited(database_url: str) -> None:
    with serving(database_url, open_transaction_bytes=100 * 1024) as storage:
        with Transaction(storage) as large:
            large.put_memory("main", "x" * 70 * 1024)
            with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED") as refusal:
                Transaction(storage)
            assert refusal.retry_after_s == 1.0
            large.commit()
        with Transaction(storage) as transaction:
            transaction.put_memory("main", "y" * 70 * 1024)
            transaction.end()
        with Transaction(storage) as transaction:
            transaction.append("main", *users(200))
            # A refused step gives its room back as well.
            assert reason_of(lambda: transaction.append("nobody", user())) == "SESSION_NOT_FOUND"
        with Transaction(storage) as transaction:
            transaction.put_memory("main", "z" * 70 * 1024)
            transaction.call.cancel()
        wait_until(lambda: reason_of(lambda: Transaction(storage)) is None, "what the cancelled one took is given back")


def test_open_transactions_hold_neither_thread_nor_connection_nor_lock(database_url: str) -> None:
    with serving(database_url, pool_size=1) as storage, ExitStack() as stack:
        opened = [stack.enter_context(Transaction(storage)) for _ in range(20)]
        for number, transaction in enumerate(opened):
            transaction.get_session("main")
            transaction.append("main", user("never"))
            transaction.put_session(f"other-{number}", expected_version=0)
        # All of them are open, and whoever writes the same goes on at once.
        append(storage, "main", user("at once"))
        put(storage, "other-1", expected_version=0)
        for transaction in opened:
            assert reason_of(transaction.commit) == "TRANSACTION_CONFLICT"
        assert texts(storage, "main") == ["at once"]


def test_a_client_that_is_gone_leaves_nothing(sqlite_url: str) -> None:
    settings = Settings(log_level="error", open_transaction_bytes=100 * 1024)
    with (
        running_server(sqlite_url, settings=settings) as address,
        Muffle(address) as network,
        grpc.insecure_channel(network.address) as far,
        grpc.insecure_channel(address) as near,
    ):
        storage = SessionStorageStub(near)
        put(storage, "main")
        with Transaction(SessionStorageStub(far)) as transaction:
            transaction.put_memory("main", "x" * 70 * 1024)
            network.cut()
            # Without an end of the stream, as when its process is killed.
            wait_until(lambda: reason_of(lambda: Transaction(storage)) is None, "its room is given back")
        with Transaction(storage) as transaction:
            assert transaction.get_memory("main").version == 0
            transaction.put_memory("main", "y" * 70 * 1024)
            transaction.commit()


def test_each_of_many_writes_is_answered_over_those_before_it(database_url: str) -> None:
    steps = [
        pb.TransactRequest(append_records=pb.AppendRecordsRequest(session_id="main", records=[user(str(n))]))
        for n in range(199)
    ]
    read = pb.TransactRequest(list_records=pb.ListRecordsRequest(session_id="main", page_size=200))
    with serving(database_url) as storage:
        answers = list(storage.Transact(requests(*steps, read, request_id="long")))
        assert [record.content for record in answers[-2].list_records.records] == [str(n) for n in range(199)]
        assert get(storage, "main").head_seq == 199


def test_a_drain_lets_an_open_transaction_finish_and_refuses_new_ones(tmp_path: Path, sqlite_url: str) -> None:
    server = ServerProcess(tmp_path, {"RAMET_DATABASE_URL": sqlite_url})
    with server, grpc.insecure_channel(server.address) as channel:
        storage = SessionStorageStub(channel)
        put(storage, "main")
        with Transaction(storage) as transaction:
            transaction.append("main", user("first"))
            server.process.terminate()
            wait_until(lambda: reason_of(lambda: Transaction(storage)) == "DRAINING", "new transactions are refused")
            transaction.append("main", user("second"))
            transaction.commit()
        assert server.wait() == 0
    with serving(sqlite_url) as storage:
        assert texts(storage, "main") == ["first", "second"]


def test_a_transaction_that_outlives_the_grace_leaves_nothing(tmp_path: Path, sqlite_url: str) -> None:
    server = ServerProcess(tmp_path, {"RAMET_DATABASE_URL": sqlite_url, "RAMET_GRACE_SECONDS": "0.2"})
    with server, grpc.insecure_channel(server.address) as channel:
        storage = SessionStorageStub(channel)
        put(storage, "main")
        with Transaction(storage) as transaction:
            transaction.append("main", user("never"))
            assert server.terminate() == 0
    with serving(sqlite_url) as storage:
        assert texts(storage, "main") == []
