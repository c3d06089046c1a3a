"""Transact under a request_id that was used before: committed once, found, or refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import refused, reused_request_id
from tests.conformance.session.making import append, put_memory, texts, user
from tests.conformance.session.transacting import Transaction


def said(storage: SessionStorageStub, request_id: str, *words: str) -> tuple[str, str]:
    """Append records in a transaction, one by one; its id, and that of the one whose writes are applied."""
    with Transaction(storage, request_id) as transaction:
        for word in words:
            transaction.append("main", user(word))
        return transaction.begun.transaction_id, transaction.commit()


class TestTransactionRepeats:
    def test_a_commit_is_found_by_the_next_begin(self, storage: SessionStorageStub, session: str) -> None:
        own, committed = said(storage, "once", "word")
        assert own == committed
        with Transaction(storage, "once") as again:
            assert again.already_committed == committed
            assert again.begun.transaction_id not in ("", committed)
            # Reads go on, over what is committed.
            assert again.texts(session) == ["word"]
            again.commit()

    def test_the_same_writes_again_change_nothing(self, storage: SessionStorageStub, session: str) -> None:
        _, first = said(storage, "once", "one", "two")
        _, second = said(storage, "once", "one", "two")
        assert second == first
        assert texts(storage, session) == ["one", "two"]

    def test_other_writes_are_refused(self, storage: SessionStorageStub, session: str) -> None:
        said(storage, "once", "one", "two")
        for words in (("one",), ("one", "two", "three"), ("two", "one"), ("onetwo",)):
            with reused_request_id():
                said(storage, "once", *words)
        assert texts(storage, session) == ["one", "two"]

    def test_other_reads_are_no_other_writes(self, storage: SessionStorageStub, session: str) -> None:
        _, committed = said(storage, "once", "one")
        with Transaction(storage, "once") as again:
            again.get_memory(session)
            again.append(session, user("one"))
            assert again.commit() == committed
        assert texts(storage, session) == ["one"]

    def test_a_transaction_that_failed_is_not_remembered(self, storage: SessionStorageStub, session: str) -> None:
        with Transaction(storage, "tried") as transaction:
            transaction.put_memory(session, "mine")
            put_memory(storage, session, "theirs")
            with refused(grpc.StatusCode.ABORTED, "TRANSACTION_CONFLICT"):
                transaction.commit()
        own, committed = said(storage, "tried", "now")
        assert own == committed
        assert texts(storage, session) == ["now"]

    def test_a_transaction_that_only_read_is_not_remembered(self, storage: SessionStorageStub, session: str) -> None:
        with Transaction(storage, "read") as transaction:
            transaction.get_session(session)
            transaction.commit()
        with Transaction(storage, "read") as again:
            assert not again.already_committed

    def test_the_id_of_another_call_is_refused_at_once(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("one"), request_id="taken")
        with reused_request_id() as refusal:
            Transaction(storage, "taken")
        assert refusal.fields == ["begin.request_id"]

    def test_the_id_of_a_transaction_is_refused_to_another_call(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        said(storage, "taken", "one")
        with reused_request_id():
            append(storage, session, user("two"), request_id="taken")

    def test_twins_that_commit_at_once_take_effect_once(self, storage: SessionStorageStub, session: str) -> None:
        transactions = [Transaction(storage, "twins") for _ in range(6)]
        made = []
        for transaction in transactions:
            put = pb.PutSessionRequest(session=pb.Session(label="twin"))
            made.append(transaction.step(put_session=put).session.id)
            transaction.append(session, user("once"))
        with ThreadPoolExecutor(len(transactions)) as threads:
            (committed,) = set(threads.map(lambda transaction: transaction.commit(), transactions))
        assert texts(storage, session) == ["once"]
        # The answers of the one that was committed hold.
        place = [transaction.begun.transaction_id for transaction in transactions].index(committed)
        found = storage.BatchGetSessions(pb.BatchGetSessionsRequest(session_ids=made))
        assert [each.id for each in found.sessions] == [made[place]]
