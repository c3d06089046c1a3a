"""Rules on records: append, trim, rewind, erase, fork."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from ramet.session.v1 import session_pb2 as s
from tests.model.base import EXPECTED, IDS, Base, expectation, free_sessions, known_sessions, moment
from tests.model.conversation import INSIGHT, PROMPT, Rec, Session
from tests.model.histories import contents, histories
from tests.model.session_rules import labels, tag_lists, texts

positions = st.integers(0, 11)
"""Which record, or place between records, of those that are there; from the last one round to the first."""

places = st.sampled_from([*["at"] * 6, "floor", "below", "above"])
"""At a record, at the trim floor, below it, or above the head."""


class RecordRules(Base):
    """Changes what sessions show."""

    @initialize(history=histories())
    def first_sessions(self, history: list[s.Record]) -> None:
        """Makes two sessions, so that every run has something to work on."""
        for session_id in IDS[:2]:
            session = self.sessions[session_id] = Session(session_id)
            request = s.PutSessionRequest(session=s.Session(id=session_id))
            session.created_at = moment(self.client.get(self.storage.PutSession, request).created_at)
            append = s.AppendRecordsRequest(session_id=session_id, records=history)
            got = self.client.get(self.storage.AppendRecords, append)
            self._take(session, [s.Record.FromString(one.SerializeToString()) for one in history], list(got.seqs))
            session.last_active_at = moment(got.session.last_active_at)

    @rule(
        session_id=known_sessions,
        history=histories(),
        expected=EXPECTED,
        consume=EXPECTED,
        insight=st.none() | texts,
        turn_delta=st.integers(0, 2),
    )
    def append(
        self,
        session_id: str,
        history: list[s.Record],
        expected: str,
        consume: str,
        insight: str | None,
        turn_delta: int,
    ) -> None:
        """Appends records, and consumes the insight, perhaps a new one."""
        session = self.sessions.get(session_id)
        if session is not None and not session.archived and insight is not None:
            self._give_insight(session, insight)
        request = s.AppendRecordsRequest(session_id=session_id, records=history, turn_delta=turn_delta)
        faults = {"SESSION_NOT_FOUND"} if session is None else set()
        if session is not None:
            faults |= {"SESSION_ARCHIVED"} if session.archived else set()
            faults |= {"STALE_HEAD"} if expected == "stale" else set()
            for value, field in (
                (expectation(expected, session.head), "expected_head_seq"),
                (expectation(consume, session.slots[INSIGHT].version), "consume_insight_version"),
            ):
                if value is not None:
                    setattr(request, field, value)
        got = self.change(
            self.storage.AppendRecords,
            request,
            faults,
            lambda answer: [list(answer.seqs), answer.insight_consumed, answer.insight_version],
        )
        if session is not None and got is not None:
            assert len(got.seqs) == len(history)
            self._take(session, history, list(got.seqs))
            session.turn_count += turn_delta
            session.last_active_at = moment(got.session.last_active_at)
            slot = session.slots[INSIGHT]
            consumed = consume == "current" and slot.content is not None
            assert got.insight_consumed == consumed
            if consumed:
                slot.content = None
                slot.version += 1
            assert got.insight_version == (0 if consume == "absent" else slot.version)
            self.compare_session(session, got.session)
            self._check_fork(session)
        self.check_sessions(session_id)

    @rule(session_id=known_sessions, position=positions, keep=st.none() | st.integers(0, 2), history=histories())
    def cut_and_go_on(self, session_id: str, position: int, keep: int | None, history: list[s.Record]) -> None:
        """Rewinds to a record, perhaps within a group, or trims to few, and goes on from there."""
        if keep is None:
            self.truncate(session_id, position, "at", "absent")
        else:
            self.trim(session_id, keep, "absent")
        self.append(session_id, history, "current", "absent", None, 1)

    def _check_fork(self, session: Session) -> None:
        """Compares what a fork of all would inherit with the model."""
        request = s.ForkSessionRequest(source_session_id=session.id, session_id="probe")
        request.all.SetInParent()
        got = self.client.get(self.storage.ForkSession, request)
        listed = self.client.get(self.storage.ListRecords, s.ListRecordsRequest(session_id="probe", page_size=1000))
        inherited, left_out = session.inherited("all")
        self.compare_records(inherited, listed.records)
        assert got.incomplete_records == left_out
        self.client.get(self.storage.DeleteSession, s.DeleteSessionRequest(session_id="probe"))

    def _give_insight(self, session: Session, content: str) -> None:
        self.client.get(self.storage.PutInsight, s.PutInsightRequest(session_id=session.id, content=content))
        session.slots[INSIGHT].content = content
        session.slots[INSIGHT].version += 1

    def _take(self, session: Session, history: list[s.Record], seqs: list[int]) -> None:
        assert seqs == sorted(set(seqs))
        assert seqs[0] > session.head
        session.records = session.records + [Rec(seq, message) for seq, message in zip(seqs, history, strict=True)]
        session.head = seqs[-1]

    @rule(session_id=known_sessions, keep_last=st.integers(0, 8), expected=EXPECTED)
    def trim(self, session_id: str, keep_last: int, expected: str) -> None:
        """Keeps the most recent records."""
        session = self.sessions.get(session_id)
        head = expectation(expected, session.head if session is not None else 0)
        request = s.TrimRecordsRequest(session_id=session_id, keep_last=keep_last, expected_head_seq=head)
        got = self.change(
            self.storage.TrimRecords,
            request,
            self._write_faults(session, expected),
            lambda answer: [answer.kept_records, answer.floor_seq],
        )
        if session is not None and got is not None:
            kept = session.kept_by_trim(keep_last)
            assert got.kept_records == len(kept)
            dropped = session.records[: len(session.records) - len(kept)]
            # Between the last dropped record and the first kept one any floor says the same.
            least = max(session.floor, dropped[-1].seq if dropped else 0)
            most = kept[0].seq - 1 if kept else session.head
            assert least <= got.floor_seq <= most
            session.records, session.floor = kept, got.floor_seq
            self._check_fork(session)
        self.check_sessions(*self.sessions)

    @rule(
        session_id=known_sessions,
        position=positions,
        where=places,
        expected=EXPECTED,
    )
    def truncate(self, session_id: str, position: int, where: str, expected: str) -> None:
        """Rewinds to a record, to the floor, or to where nothing is."""
        session = self.sessions.get(session_id)
        after, faults = self._position(session, position, where)
        head = expectation(expected, session.head if session is not None else 0)
        request = s.TruncateRecordsRequest(session_id=session_id, after_seq=after, expected_head_seq=head)
        faults |= self._write_faults(session, expected)
        got = self.change(self.storage.TruncateRecords, request, faults, lambda answer: [answer.head_seq])
        if session is not None and got is not None:
            kept = [record for record in session.records if record.seq <= after]
            if kept == session.records:
                # Whether a rewind that drops nothing moves the head is left open.
                assert got.head_seq in (session.head, session.head + 1)
            else:
                assert got.head_seq == session.head + 1
            session.records, session.head = kept, got.head_seq
            self._check_fork(session)
        self.check_sessions(*self.sessions)

    @rule(
        session_id=known_sessions, position=positions, where=st.sampled_from(["at"] * 7 + ["floor", "below", "above"])
    )
    def erase(self, session_id: str, position: int, where: str) -> None:
        """Erases a record, everywhere."""
        session = self.sessions.get(session_id)
        seq, _ = self._position(session, position, where)
        faults = self._write_faults(session, "absent")
        record = session.record(seq) if session is not None else None
        if session is not None and record is None:
            faults |= {"BELOW_TRIM_FLOOR"} if seq <= session.floor else {"RECORD_NOT_FOUND"}
        # What is no seq at all is refused before anything is read.
        faults = {"INVALID_FIELD"} if seq == 0 else faults
        request = s.EraseRecordRequest(session_id=session_id, seq=seq)
        got = self.change(self.storage.EraseRecord, request, faults, lambda answer: [answer.seq])
        if record is not None and got is not None:
            record.erase()
            self.compare_records([record], [got])
        self.check_sessions(*self.sessions)

    @rule(
        source_id=known_sessions,
        child_id=free_sessions,
        history=st.sampled_from(["none", "all", "all", "up_to_seq", "last", "records"]),
        position=positions,
        where=places,
        given=histories(),
        opening=st.none() | contents,
        prompt=st.none() | texts,
        label=labels,
        tags=tag_lists,
    )
    def fork(
        self,
        source_id: str,
        child_id: str,
        history: str,
        position: int,
        where: str,
        given: list[s.Record],
        opening: str | None,
        prompt: str | None,
        label: str,
        tags: list[str],
    ) -> None:
        """Forks a session, archived or not."""
        source = self.sessions.get(source_id)
        request = s.ForkSessionRequest(
            source_session_id=source_id,
            session_id=child_id,
            label=label,
            tags=tags,
            opening_prompt=opening,
            system_prompt=prompt,
        )
        faults = {"SESSION_NOT_FOUND"} if source is None else set()
        faults |= {"SESSION_EXISTS"} if child_id in self.sessions else set()
        count = position
        if history == "records":
            request.records.records.extend(given)
        elif history == "up_to_seq":
            count, range_faults = self._position(source, position, where)
            faults |= range_faults
            request.up_to_seq = count
        elif history == "last":
            request.last = count
        else:
            getattr(request, history).SetInParent()
        got = self.change(
            self.storage.ForkSession,
            request,
            faults,
            lambda answer: [
                answer.session.id,
                answer.session.version,
                answer.inherited_through_seq,
                answer.incomplete_records,
            ],
        )
        if source is None or got is None:
            return self.check_sessions(child_id)
        inherited, left_out = ([], 0) if history == "records" else source.inherited(history, count)
        assert got.incomplete_records == left_out
        assert got.inherited_through_seq == (inherited[-1].seq if inherited else 0)
        child = Session(child_id, label=label, tags=sorted(set(tags)), records=inherited)
        child.created_at, child.last_active_at = moment(got.session.created_at), moment(got.session.last_active_at)
        child.head, child.floor = got.inherited_through_seq, got.session.floor_seq
        assert child.floor < (inherited[0].seq if inherited else 1)
        own = list(given) if history == "records" else []
        if opening:
            own.append(s.Record(role=s.ROLE_ASSISTANT, content=opening))
        self.sessions[child_id] = child
        self._take_own(child, own)
        slot = child.slots[PROMPT]
        slot.content = prompt if prompt is not None else source.slots[PROMPT].content
        slot.version = 0 if slot.content is None else 1
        self.compare_session(child, got.session)
        self.check_diff(source_id, child_id)
        return self.check_sessions(*self.sessions)

    def _take_own(self, child: Session, own: list[s.Record]) -> None:
        if own:
            listed = self.client.get(
                self.storage.ListRecords,
                s.ListRecordsRequest(session_id=child.id, after_seq=child.head, page_size=1000),
            )
            assert len(listed.records) == len(own)
            self._take(child, own, [record.seq for record in listed.records])

    def _position(self, session: Session | None, position: int, where: str) -> tuple[int, set[str]]:
        """Returns a seq, and how a rewind to it is refused."""
        if session is None:
            return position, set()
        if where == "below" and session.floor > 0:
            return session.floor - 1, {"BELOW_TRIM_FLOOR"}
        if where == "above":
            return session.head + 1, {"ABOVE_HEAD"}
        if where == "floor":
            return session.floor, set()
        seqs = [record.seq for record in session.records] or [session.floor]
        return seqs[-1 - position % len(seqs)], set()

    def _write_faults(self, session: Session | None, expected: str) -> set[str]:
        if session is None:
            return {"SESSION_NOT_FOUND"}
        faults = {"SESSION_ARCHIVED"} if session.archived else set()
        return faults | ({"STALE_HEAD"} if expected == "stale" else set())
