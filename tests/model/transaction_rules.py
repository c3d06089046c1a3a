"""Rules on transactions: what one is told, what it leaves, and what another client does meanwhile."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from ramet.session.v1 import session_pb2 as s
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.calling import within
from tests.conformance.refusing import reason_of
from tests.conformance.session.transacting import Transaction
from tests.model.base import known_sessions, moment
from tests.model.conversation import MEMORY, Rec, Session
from tests.model.histories import histories
from tests.model.record_rules import RecordRules
from tests.model.session_rules import texts

meanwhile = st.sampled_from([*["nothing"] * 4, "append", "memory", "other slot", "archive and restore"])
"""What another client does before the commit."""

ends = st.sampled_from([*["commit"] * 4, "end", "cancel"])
"""How the transaction ends."""


class TransactionRules(RecordRules):
    """Reads one session and writes another, or the same one, in one transaction."""

    @rule(
        read=known_sessions, written=known_sessions, history=histories(), memory=texts, meanwhile=meanwhile, ends=ends
    )
    def transact(
        self, read: str, written: str, history: list[s.Record], memory: str, meanwhile: str, ends: str
    ) -> None:
        """Reads a memory, appends, writes a memory; it takes effect if nobody moved what it was told."""
        storage = SessionStorageStub(within(self.surroundings.channel, self.client.space))
        source, session = self.sessions.get(read), self.sessions.get(written)
        with Transaction(storage) as transaction:
            told = transaction.step(get_memory=s.GetMemoryRequest(session_id=read))
            if source is None:
                assert told.WhichOneof("result") == "not_found"
            else:
                self.compare_slot(source, MEMORY, told.slot)
            if session is None or session.archived:
                fault = "SESSION_NOT_FOUND" if session is None else "SESSION_ARCHIVED"
                assert reason_of(lambda: transaction.append(written, *history)) == fault
                self.check_sessions(*{read, written})
                return
            appended = transaction.append(written, *history, turn_delta=1)
            listed = transaction.page(written, page_size=1000)
            own = [Rec(seq, message) for seq, message in zip(appended.seqs, history, strict=True)]
            self.compare_records(session.records + own, listed.records)
            slot = transaction.put_memory(written, memory)
            assert slot.version == session.slots[MEMORY].version + 1
            moved = self._moves(session, meanwhile)
            if ends == "commit" and moved:
                assert reason_of(transaction.commit) == "TRANSACTION_CONFLICT"
            elif ends == "commit":
                transaction.commit()
                self._take(session, history, list(appended.seqs))
                session.turn_count += 1
                session.last_active_at = moment(appended.session.last_active_at)
                session.slots[MEMORY].content, session.slots[MEMORY].version = memory, slot.version
            elif ends == "end":
                transaction.end()
        self.check_sessions(*{read, written})

    def _moves(self, session: Session, meanwhile: str) -> bool:
        """Does what another client does to the written session; tells whether the transaction was told of it."""
        if meanwhile == "append":
            self.append(session.id, [s.Record(role=s.ROLE_USER, content="theirs")], "absent", "absent", None, 0)
        elif meanwhile == "memory":
            self.client.get(self.storage.PutMemory, s.PutMemoryRequest(session_id=session.id, content="theirs"))
            session.slots[MEMORY].content = "theirs"
            session.slots[MEMORY].version += 1
        elif meanwhile == "other slot":
            self._give_insight(session, "theirs")
            return False
        elif meanwhile == "archive and restore":
            self.client.get(self.storage.ArchiveSession, s.ArchiveSessionRequest(session_id=session.id))
            self.client.get(self.storage.RestoreSession, s.RestoreSessionRequest(session_id=session.id))
            session.version += 2
        return meanwhile != "nothing"
