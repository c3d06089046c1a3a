"""Histories under any series of appends, trims, rewinds, erasures, forks and deletes, against plain lists.

The model is the one of the whole product; here it is driven without a channel, with small histories that
meet many edges, and every row that is left afterwards is looked at.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from ramet.session.v1 import session_pb2 as pb
from ramet_server.database.database import Database
from ramet_server.database.tables import session as tables
from ramet_server.domain.ids import new_id
from ramet_server.domain.limits import Limits
from session_service.rules import contexts, erasure, filling, history
from session_service.store import ranges
from tests.model.conversation import Rec, Session, diff
from tests.session_service.storage import NOTHING, Storage, TurnedClock, records

WORDS = ["u", "a", "a(x)", "a(y)", "a(x,y)", "t(x)", "t(y)"]
NAMES = st.sampled_from("abcd")
PLACES = st.integers(0, 12)

STEPS = st.one_of(
    st.tuples(st.just("append"), NAMES, st.lists(st.sampled_from(WORDS), min_size=1, max_size=5)),
    st.tuples(st.just("append"), NAMES, st.lists(st.sampled_from(WORDS), min_size=1, max_size=5)),
    st.tuples(st.just("fork"), NAMES, st.tuples(NAMES, st.sampled_from(["all", "up_to_seq", "last", "none"]), PLACES)),
    st.tuples(st.just("fork"), NAMES, st.tuples(NAMES, st.sampled_from(["all", "up_to_seq", "last", "none"]), PLACES)),
    st.tuples(st.just("trim"), NAMES, PLACES),
    st.tuples(st.just("truncate"), NAMES, PLACES),
    st.tuples(st.just("erase"), NAMES, PLACES),
    st.tuples(st.just("delete"), NAMES, st.just(0)),
)


class Walk:
    """One series of steps, done by the service and by the model."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.sessions: dict[str, Session] = {}
        self.origins: set[str] = set()
        self._made("a")

    def step(self, kind: str, name: str, how: Any) -> None:
        """Takes one step; one that does not fit is passed over."""
        if name in self.sessions:
            getattr(self, kind)(self.sessions[name], how)
            for session in self.sessions.values():
                self.check(session)

    def append(self, session: Session, words: list[str]) -> None:
        made = records(" ".join(words))
        reply = self.storage.append_all(session.id, made, expected_head_seq=session.head)
        assert list(reply.seqs) == list(range(session.head + 1, session.head + 1 + len(made)))
        session.records += [Rec(seq, record) for seq, record in zip(reply.seqs, made, strict=True)]
        session.head = reply.session.head_seq

    def fork(self, source: Session, how: tuple[str, str, int]) -> None:
        name, history, count = how
        if name in self.sessions:
            return
        fields: dict[str, Any] = {history: NOTHING}
        if history in ("up_to_seq", "last"):
            count = min(source.head, max(source.floor, count)) if history == "up_to_seq" else count
            fields = {history: count}
        reply = self.storage.fork(source.id, name, **fields)
        shown, left_out = source.inherited(history, count)
        child = self._known(name)
        child.records = list(shown)
        child.head = shown[-1].seq if shown else 0
        child.floor = shown[0].seq - 1 if shown else 0
        assert (reply.inherited_through_seq, reply.incomplete_records) == (child.head, left_out)

    def trim(self, session: Session, keep: int) -> None:
        kept = session.kept_by_trim(keep)
        reply = self.storage.trim(session.id, keep)
        if len(kept) < len(session.records) or keep == 0:
            session.floor = kept[0].seq - 1 if kept else session.head
        session.records = list(kept)
        assert (reply.kept_records, reply.floor_seq) == (len(kept), session.floor)

    def truncate(self, session: Session, after: int) -> None:
        after = min(session.head, max(session.floor, after))
        session.head = self.storage.truncate(session.id, after)
        session.records = [record for record in session.records if record.seq <= after]

    def erase(self, session: Session, place: int) -> None:
        if session.records:
            record = session.records[place % len(session.records)]
            assert self.storage.erase(session.id, record.seq).HasField("erased_at")
            record.erase()

    def delete(self, session: Session, _: int) -> None:
        self.storage.delete(session.id)
        del self.sessions[session.id]
        if not self.sessions:
            self._made("a")

    def check(self, session: Session) -> None:
        """Compares what the service shows with the model."""
        got = self.storage.get(session.id)
        assert (got.head_seq, got.floor_seq) == (session.head, session.floor)
        listed = self.storage.listed(session.id, page_size=3)
        assert [(r.seq, r.content) for r in listed] == [(r.seq, r.message.content) for r in session.records]
        assert self.storage.seqs(session.id, page_size=4, order=pb.RECORD_ORDER_DESCENDING) == [
            record.seq for record in reversed(session.records)
        ]
        roles = [pb.ROLE_TOOL, pb.ROLE_USER]
        assert (
            self.storage.seqs(session.id, roles=roles, page_size=2, offset=1)
            == [record.seq for record in session.records if record.message.role in roles][1:]
        )
        for most in (None, 1, 3, len(session.records)):
            context, expected = self.storage.context(session.id, max_records=most), session.context(most, None)
            assert [record.seq for record in context.records] == [record.seq for record in expected.records]
            assert context.incomplete_records == expected.incomplete
            assert context.older_left_out == expected.older_left_out

    def check_diffs(self) -> None:
        """Compares every pair."""
        for left in self.sessions.values():
            for right in self.sessions.values():
                request = pb.DiffSessionsRequest(left_session_id=left.id, right_session_id=right.id)
                got = self.storage.service.DiffSessions(request, self.storage.call)
                assert (got.common_through_seq, got.left.first_own_seq, got.right.first_own_seq) == diff(left, right)

    def check_rows(self) -> None:
        """Only records that some session shows have a row, and no other row is left of what was dropped."""
        shown = {id(record) for session in self.sessions.values() for record in session.records}
        assert self.storage.rows("record", *self.origins) == len(shown)
        assert self.storage.rows("released_span", *self.origins) == 0
        for name in list(self.sessions):
            self.storage.delete(name)
        for table in ("record", "history_span", "broken_group", "released_span", "session", "context_slot"):
            assert self.storage.rows(table, *self.origins) == 0, table

    def _made(self, name: str) -> None:
        self.storage.put(name)
        self._known(name)

    def _known(self, name: str) -> Session:
        self.sessions[name] = Session(name)
        self.origins.add(self.storage.origin(name))
        return self.sessions[name]


def walk(database: Database, steps: list[Any]) -> None:
    """Takes all steps, then looks at every pair and every row."""
    walked = Walk(Storage(database, f"space-{new_id()}", Limits(), TurnedClock()))
    for step in steps:
        walked.step(*step)
    walked.check_diffs()
    walked.check_rows()


any_steps = given(steps=st.lists(STEPS, min_size=3, max_size=20))
unhurried = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@any_steps
@unhurried
def test_any_series_of_changes_shows_what_plain_lists_would(database: Database, steps: list[Any]) -> None:
    walk(database, steps)


@any_steps
@unhurried
def test_so_it_does_when_everything_is_read_in_small_pieces(
    database: Database, monkeypatch: pytest.MonkeyPatch, steps: list[Any]
) -> None:
    monkeypatch.setattr(history, "_FIRST_STEP", 1)
    monkeypatch.setattr(history, "_LARGEST_STEP", 2)
    monkeypatch.setattr(contexts, "_FIRST_STEP", 2)
    monkeypatch.setattr(contexts, "_LARGEST_STEP", 3)
    monkeypatch.setattr(ranges, "RANGES_PER_STATEMENT", 2)
    monkeypatch.setattr(erasure, "_BATCH", 2)
    monkeypatch.setattr(erasure, "_SPANS", 2)
    monkeypatch.setattr(filling, "_DIRECT_BYTES", 1)
    walk(database, steps)


def test_spans_never_overlap_and_are_full(database: Database) -> None:
    """Every seq of every span up to its owner's head has a record, in all that other tests left behind."""
    owner, record = tables.session.c, tables.record.c
    span = tables.history_span.c

    def read(connection: Any) -> list[Any]:
        spans = connection.execute(
            select(owner.origin, owner.head_seq, span.origin.label("of"), span.first_seq, span.last_seq).join_from(
                tables.history_span, tables.session, span.owner_origin == owner.origin
            )
        ).all()
        faults = []
        for each in spans:
            last = min(each.last_seq, each.head_seq)
            found = connection.execute(
                select(func.count()).where(record.origin == each.of, record.seq >= each.first_seq, record.seq <= last)
            ).scalar_one()
            if found != max(0, last - each.first_seq + 1):
                faults.append(each)
        return faults

    storage = Storage(database, f"space-{new_id()}", Limits(), TurnedClock())
    storage.put("a", "u a(x) t(x) u a(y) u a(z)")
    storage.fork("a", "b")
    storage.truncate("a", 3)
    storage.append("a", "u u")
    storage.trim("b", 2)
    storage.fork("a", "c", last=3)
    storage.delete("a")
    assert database.read(storage.call, read, snapshot=True) == []


@pytest.mark.parametrize("keep", range(5))
def test_trims_of_two_calls_and_two_results_leave_no_orphan(storage: Storage, keep: int) -> None:
    storage.put("main", "u a(x) a(y) t(x) t(y)")
    reply = storage.trim("main", keep)
    assert reply.kept_records == (0 if keep == 0 else 4)
    assert storage.context("main").incomplete_records == 0
