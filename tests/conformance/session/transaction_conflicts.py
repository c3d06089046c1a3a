"""Transact: what others do between a transaction's answers and its commit."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import reason_of, refused
from tests.conformance.session.making import (
    append,
    archive,
    delete,
    fork,
    get,
    put,
    put_insight,
    put_memory,
    rewind,
    texts,
    trim,
    user,
    users,
)
from tests.conformance.session.transacting import Transaction, conflicting

Told = Callable[[Transaction], object]
Moves = Callable[[SessionStorageStub], object]

# What a transaction is told, then what others do, and what the conflict must name: (moved, read, current).
CONFLICTS: dict[str, tuple[Told, Moves, tuple[str, str, str]]] = {
    "metadata that was read": (
        lambda tx: tx.get_session("main"),
        lambda storage: put(storage, "main", label="moved"),
        ("version", "1", "2"),
    ),
    "a head that was read": (
        lambda tx: tx.get_session("main"),
        lambda storage: append(storage, "main", user()),
        ("head_seq", "4", "5"),
    ),
    "a phantom of a page": (
        lambda tx: tx.page("main"),
        lambda storage: append(storage, "main", user()),
        ("head_seq", "4", "5"),
    ),
    "a phantom of a page by role": (
        lambda tx: tx.page("main", roles=[pb.ROLE_ASSISTANT]),
        lambda storage: append(storage, "main", pb.Record(role=pb.ROLE_ASSISTANT)),
        ("head_seq", "4", "5"),
    ),
    "a trim under a page": (
        lambda tx: tx.page("main", after_seq=2),
        lambda storage: trim(storage, "main", 2),
        ("floor_seq", "0", "2"),
    ),
    "a rewind under a page": (
        lambda tx: tx.page("main", page_size=1),
        lambda storage: rewind(storage, "main", 3),
        ("head_seq", "4", "5"),
    ),
    "a record of a page, erased": (
        lambda tx: tx.page("main", after_seq=1, page_size=2),
        lambda storage: storage.EraseRecord(pb.EraseRecordRequest(session_id="main", seq=3)),
        ("record", "3", "erased"),
    ),
    "a record of a page, erased through a fork": (
        lambda tx: tx.page("main"),
        lambda storage: storage.EraseRecord(pb.EraseRecordRequest(session_id=_forked(storage), seq=1)),
        ("record", "1", "erased"),
    ),
    "the memory": (
        lambda tx: tx.get_memory("main"),
        lambda storage: put_memory(storage, "main", "moved"),
        ("memory", "0", "1"),
    ),
    "the insight, consumed": (
        lambda tx: tx.get_insight("main"),
        lambda storage: append(storage, "main", user(), consume_insight_version=1),
        ("insight", "1", "2"),
    ),
    "the insight that an append consumes": (
        lambda tx: tx.append("main", user(), consume_insight_version=1),
        lambda storage: put_insight(storage, "main", "newer"),
        ("insight", "1", "2"),
    ),
    "the system prompt that was put over": (
        lambda tx: tx.step(put_session=pb.PutSessionRequest(session=pb.Session(id="main"), system_prompt="mine")),
        lambda storage: storage.PutSystemPrompt(pb.PutSystemPromptRequest(session_id="main", content="theirs")),
        ("systemPrompt", "0", "1"),
    ),
    "a slot that was written": (
        lambda tx: tx.put_memory("main", "mine"),
        lambda storage: put_memory(storage, "main", "theirs"),
        ("memory", "0", "1"),
    ),
    "the seqs of an append": (
        lambda tx: tx.append("main", user("mine")),
        lambda storage: append(storage, "main", user("theirs")),
        ("head_seq", "4", "5"),
    ),
    "the status under an append": (
        lambda tx: tx.append("main", user()),
        lambda storage: archive(storage, "main"),
        ("version", "1", "2"),
    ),
    "the status under a slot": (
        lambda tx: tx.put_memory("main", "mine"),
        lambda storage: archive(storage, "main"),
        ("status", "ACTIVE", "ARCHIVED"),
    ),
    "a head under a trim": (
        lambda tx: tx.trim("main", 2),
        lambda storage: append(storage, "main", user()),
        ("head_seq", "4", "5"),
    ),
    "a session, deleted": (
        lambda tx: tx.get_memory("main"),
        lambda storage: delete(storage, "main"),
        ("session", "present", "deleted"),
    ),
    "a session, deleted and made again just like it": (
        lambda tx: tx.get_memory("main"),
        lambda storage: _recreate(storage, "main"),
        ("session", "present", "recreated"),
    ),
    "no session, where one is now": (
        lambda tx: tx.get_session("late"),
        lambda storage: put(storage, "late"),
        ("session", "absent", "created"),
    ),
    "no session, where it makes one": (
        lambda tx: tx.put_session("late", label="mine"),
        lambda storage: put(storage, "late", label="theirs"),
        ("session", "absent", "created"),
    ),
}


def _recreate(storage: SessionStorageStub, session_id: str) -> None:
    delete(storage, session_id)
    put(storage, session_id)


def _forked(storage: SessionStorageStub) -> str:
    return fork(storage, "main").session.id


class TestTransactionConflicts:
    @pytest.fixture(autouse=True)
    def main(self, storage: SessionStorageStub) -> None:
        """A session with four records and an insight, and one that is empty."""
        put(storage, "main")
        append(storage, "main", *users(4))
        put_insight(storage, "main", "hint")
        put(storage, "mine")

    @pytest.mark.parametrize("name", CONFLICTS)
    def test_what_moved_is_named_and_nothing_is_applied(self, storage: SessionStorageStub, name: str) -> None:
        told, moves, expected = CONFLICTS[name]

        def told_and_written(transaction: Transaction) -> None:
            told(transaction)
            transaction.append("mine", user("never"))

        refusal = conflicting(storage, told_and_written, lambda: moves(storage))

        session_id = "late" if "late" in str(refusal.metadata) else "main"
        names = dict(zip(("moved", "read", "current"), expected, strict=True))
        assert refusal.metadata == {"session_id": session_id, **names}
        assert texts(storage, "mine") == []

    def test_a_transaction_that_only_reads_has_seen_one_state(self, storage: SessionStorageStub) -> None:
        def told(transaction: Transaction) -> None:
            transaction.get_memory("main")
            transaction.get_session("mine")

        refusal = conflicting(storage, told, lambda: put_memory(storage, "main", "moved"))
        assert refusal.metadata["moved"] == "memory"

    def test_a_step_on_what_has_moved_meets_the_conflict_already(self, storage: SessionStorageStub) -> None:
        with Transaction(storage) as transaction:
            transaction.append("main", user("mine"))
            append(storage, "main", user("theirs"))
            with refused(grpc.StatusCode.ABORTED, "TRANSACTION_CONFLICT") as refusal:
                transaction.texts("main")
        assert (refusal.metadata["moved"], refusal.metadata["step"]) == ("head_seq", "2")

    def test_a_slot_reads_the_same_throughout(self, storage: SessionStorageStub) -> None:
        with Transaction(storage) as transaction:
            transaction.get_memory("main")
            put_memory(storage, "main", "moved")
            with refused(grpc.StatusCode.ABORTED, "TRANSACTION_CONFLICT") as refusal:
                transaction.get_memory("main")
        assert (refusal.metadata["moved"], refusal.metadata["step"]) == ("memory", "2")

    def test_write_skew_between_two_sessions(self, storage: SessionStorageStub) -> None:
        """Each of two transactions reads what the other writes: one at most may commit."""
        with Transaction(storage) as one, Transaction(storage) as two:
            for transaction, read, written in ((one, "main", "mine"), (two, "mine", "main")):
                transaction.get_memory(read)
                transaction.put_memory(written, "on duty")
            one.commit()
            with refused(grpc.StatusCode.ABORTED, "TRANSACTION_CONFLICT") as refusal:
                two.commit()
        assert (refusal.metadata["session_id"], refusal.metadata["moved"]) == ("mine", "memory")

    @pytest.mark.parametrize("there", [True, False])
    def test_write_skew_at_the_very_same_moment(self, storage: SessionStorageStub, there: bool) -> None:
        """Of each pair that commits at once one does; what they read may be that there is no session."""

        def pair(number: int) -> list[Transaction]:
            names = f"left-{number}", f"right-{number}"
            for name in names if there else ():
                put(storage, name)
            transactions = [Transaction(storage), Transaction(storage)]
            for transaction, read, written in zip(transactions, names, reversed(names), strict=True):
                transaction.get_session(read)
                transaction.put_session(written, label="on duty")
            return transactions

        waiting = [transaction for number in range(10) for transaction in pair(number)]
        with ThreadPoolExecutor(len(waiting)) as threads:
            committed = list(threads.map(_commits, waiting))
        both = [place for place in range(0, len(waiting), 2) if all(committed[place : place + 2])]
        assert (both, any(committed)) == ([], True)

    def test_opposite_orders_do_not_wait_for_each_other(self, storage: SessionStorageStub) -> None:
        """Two transactions that write the same sessions the other way round never deadlock: one of them commits."""
        for _ in range(10):
            with Transaction(storage) as one, Transaction(storage) as two:
                for transaction, order in ((one, ("main", "mine")), (two, ("mine", "main"))):
                    for session_id in order:
                        transaction.put_memory(session_id, "mine")
                with ThreadPoolExecutor(2) as threads:
                    assert sum(threads.map(_commits, (one, two))) <= 1

    def test_a_counter_of_many_clients_ends_exact(self, storage: SessionStorageStub) -> None:
        def count(_: int) -> None:
            for _ in range(5):
                while not _counted(storage):
                    pass

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(count, range(8)))
        assert storage.GetMemory(pb.GetMemoryRequest(session_id="main")).content == "40"
        assert get(storage, "main").head_seq == 44


def _counted(storage: SessionStorageStub) -> bool:
    """Counts one up and appends a record; False where others came between."""

    def steps(transaction: Transaction) -> None:
        counter = transaction.get_memory("main")
        transaction.put_memory("main", str(int(counter.content or "0") + 1))
        transaction.append("main", user("counted"))
        transaction.commit()

    with Transaction(storage) as transaction:
        return _succeeds(lambda: steps(transaction))


def _commits(transaction: Transaction) -> bool:
    return _succeeds(transaction.commit)


def _succeeds(work: Callable[[], object]) -> bool:
    reason = reason_of(work)
    assert reason in (None, "TRANSACTION_CONFLICT", "WRITE_CONFLICT")
    return reason is None
