"""Rules on transactions that stay open while all else goes on: several at once, each step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import rule

from ramet.session.v1 import session_pb2 as s
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.calling import within
from tests.conformance.refusing import reason_of
from tests.conformance.session.transacting import Transaction
from tests.model.base import known_sessions, moment
from tests.model.conversation import INSIGHT, MEMORY, PROMPT, SLOTS, Rec, Session
from tests.model.open_transactions import ARCHIVED, PLACE, WHOLE, Open
from tests.model.record_rules import RecordRules
from tests.model.session_rules import SessionRules

_MOST = 2

_KINDS = {
    PROMPT: s.PutSystemPromptRequest,
    INSIGHT: s.PutInsightRequest,
    MEMORY: s.PutMemoryRequest,
}

_ASKED = s.Record(role=s.ROLE_USER, content="asked")
_CALL = s.Record(role=s.ROLE_ASSISTANT, tool_calls=[s.ToolCall(id="p", name="tool")])
_ANSWER = s.Record(role=s.ROLE_TOOL, tool_call_id="p", name="tool", content="answer")
_HISTORIES = [[_ASKED], [_CALL, _ANSWER], [_ASKED, _CALL], [_ANSWER, _ASKED]]
"""What is appended: groups that are whole, broken, and made whole by the next append."""

which = st.integers(0, _MOST - 1)
"""One of the transactions that are open."""

numbers = st.integers(0, 5)
"""How many records, or which one."""

READS = ["read", "page", "page", "slot"]
MEDDLING = ["append", *["erase"] * 4, "slot", "slot", "trim", "create", "delete", "archive", "restore"]
WRITES = ["put", "append", "append", "trim", "rewind", "write", "clear"]


@dataclass(frozen=True)
class Drawn:
    """The values of one step."""

    kind: str
    session_id: str
    slot: str
    number: int
    text: str


steps = st.builds(
    Drawn,
    kind=st.sampled_from(READS * 2 + WRITES),
    session_id=known_sessions,
    slot=st.sampled_from(SLOTS),
    number=numbers,
    text=st.sampled_from(["one", "two"]),
)

acts = st.tuples(
    st.sampled_from(["step", "step", "step", "meddle", "finish"]),
    which,
    steps,
    st.sampled_from(MEDDLING),
    st.sampled_from([*["commit"] * 3, *["read again"] * 3, "end", "cancel"]),
)
"""What one of the clients does; which of the values it takes depends on what it is."""


@dataclass
class Running:
    """A stream, and what the model holds of it."""

    stream: Transaction
    request_id: str
    model: Open


class OpenTransactionRules(SessionRules, RecordRules):
    """Takes steps of transactions between the other rules, and ends them in every way."""

    def __init__(self) -> None:
        super().__init__()
        self._running: list[Running] = []

    def _stub(self) -> SessionStorageStub:
        return SessionStorageStub(within(self.surroundings.channel, self.client.space))

    @rule(acts=st.lists(acts, min_size=10, max_size=30))
    def go_on(self, acts: list[tuple[str, int, Drawn, str, str]]) -> None:
        """Lets transactions take steps, and end, and others do something to what they were told."""
        for act, which, step, how, end in acts:
            if act == "step":
                self._step(which, step)
            elif act == "meddle" and any(running.model.seen for running in self._running):
                self._meddle(which, step, how)
            elif act == "finish" and self._running:
                self._finish(which, end)

    def _step(self, which: int, step: Drawn) -> None:
        """Takes a step of a transaction, a new one perhaps."""
        if which >= len(self._running):
            request_id = f"transaction-{next(self._numbers)}"
            self._running.append(Running(Transaction(self._stub(), request_id), request_id, Open(self.sessions)))
            which = len(self._running) - 1
        running = self._running[which]
        if not self._go(running, step):
            self._running.remove(running)
            self.check_sessions(*running.model.seen)

    def _go(self, running: Running, step: Drawn) -> bool:
        """Takes a step; tells whether the transaction is open after it."""
        model, session_id = running.model, step.session_id
        note(f"  in {running.request_id}: {step}")
        stale, moved = model.stale, model.moved(session_id)
        view = model.view(session_id)
        take: Callable[..., None] = getattr(self, f"_{step.kind}")
        fault = None
        if step.kind in WRITES and step.kind != "put" and view is None:
            fault = "SESSION_NOT_FOUND"
        elif step.kind in WRITES and view is not None and view.archived:
            fault = "SESSION_ARCHIVED"
        if moved:
            # Whether a step tells of it, or the commit, is left open: another answer makes up for none.
            reason = reason_of(lambda: running.stream.page(session_id, page_size=1000))
            assert (reason or reason_of(running.stream.commit)) == "TRANSACTION_CONFLICT"
            return self._over(running)
        reason = reason_of(lambda: take(running, view, step))
        if reason is None:
            assert fault is None, f"{step.kind} was taken, and must be refused: {fault}"
            return True
        assert reason == fault or (stale and reason == "TRANSACTION_CONFLICT"), reason
        return self._over(running)

    def _over(self, running: Running) -> bool:
        running.stream.__exit__(None, None, None)
        return False

    def _read(self, running: Running, view: Session | None, step: Drawn) -> None:
        got = running.stream.step(get_session=s.GetSessionRequest(session_id=step.session_id))
        running.model.look(step.session_id, WHOLE)
        if view is None:
            assert got.WhichOneof("result") == "not_found"
        else:
            self.compare_session(view, got.session)

    def _page(self, running: Running, view: Session | None, step: Drawn) -> None:
        size = step.number + 1
        got = running.stream.step(list_records=s.ListRecordsRequest(session_id=step.session_id, page_size=size))
        running.model.look(step.session_id, PLACE)
        if view is None:
            assert got.WhichOneof("result") == "not_found"
            return
        page = got.list_records
        assert (page.head_seq, page.floor_seq) == (view.head, view.floor)
        self.compare_records(view.records[:size], page.records)
        running.model.listed(step.session_id, view.records[:size])

    def _slot(self, running: Running, view: Session | None, step: Drawn) -> None:
        asked: dict[str, Any] = {
            PROMPT: {"get_system_prompt": s.GetSystemPromptRequest(session_id=step.session_id)},
            INSIGHT: {"get_insight": s.GetInsightRequest(session_id=step.session_id)},
            MEMORY: {"get_memory": s.GetMemoryRequest(session_id=step.session_id)},
        }
        got = running.stream.step(**asked[step.slot])
        running.model.look(step.session_id, slots=[step.slot])
        if view is None:
            assert got.WhichOneof("result") == "not_found"
        else:
            self.compare_slot(view, step.slot, got.slot)

    def _put(self, running: Running, view: Session | None, step: Drawn) -> None:
        got = running.stream.put_session(step.session_id, label=step.text)
        model = running.model
        model.look(step.session_id, WHOLE)
        if view is None:
            made = Session(step.session_id, created_at=moment(got.created_at))
            made.last_active_at = made.created_at
            model.made[step.session_id] = made
        elif view.label != step.text:
            assert got.version == view.version + 1
        else:
            assert got.version in (view.version, view.version + 1)
        self._note(running, step, got, lambda session: _set(session, label=step.text, version=got.version))

    def _append(self, running: Running, view: Session | None, step: Drawn) -> None:
        consumes = view is not None and step.number % 2 == 1
        more = {"consume_insight_version": view.slots[INSIGHT].version} if view is not None and consumes else {}
        history = _HISTORIES[step.number % len(_HISTORIES)]
        got = running.stream.append(step.session_id, *history, turn_delta=step.number, **more)
        running.model.look(step.session_id, WHOLE, [INSIGHT] if consumes else [])
        if view is None:
            return
        seqs = list(got.seqs)
        assert len(seqs) == len(history)
        assert seqs == sorted(set(seqs))
        assert seqs[0] > view.head
        assert got.insight_consumed == (consumes and view.slots[INSIGHT].content is not None)
        records = [Rec(seq, _copy(message)) for seq, message in zip(seqs, history, strict=True)]

        def write(session: Session) -> None:
            session.records = session.records + records
            session.head = seqs[-1]
            session.turn_count += step.number
            session.last_active_at = moment(got.session.last_active_at)
            if got.insight_consumed:
                session.slots[INSIGHT].content = None
                session.slots[INSIGHT].version += 1

        self._note(running, step, got.session, write)

    def _trim(self, running: Running, view: Session | None, step: Drawn) -> None:
        got = running.stream.trim(step.session_id, step.number)
        running.model.look(step.session_id, (*PLACE, ARCHIVED))
        if view is None:
            return
        kept = view.kept_by_trim(step.number)
        assert got.kept_records == len(kept)
        assert view.floor <= got.floor_seq <= (kept[0].seq - 1 if kept else view.head)
        self._note(
            running,
            step,
            None,
            lambda session: _set(session, records=_after(session, got.floor_seq), floor=got.floor_seq),
        )

    def _rewind(self, running: Running, view: Session | None, step: Drawn) -> None:
        seqs = [view.floor, *(record.seq for record in view.records)] if view is not None else [1]
        after = seqs[-1 - step.number % len(seqs)]
        got = running.stream.rewind(step.session_id, after)
        running.model.look(step.session_id, (*PLACE, ARCHIVED))
        if view is None:
            return
        drops = any(record.seq > after for record in view.records)
        assert got.head_seq == view.head + 1 or (got.head_seq == view.head and not drops)

        def write(session: Session) -> None:
            session.records = [record for record in session.records if record.seq <= after]
            session.head = got.head_seq

        self._note(running, step, None, write)

    def _write(self, running: Running, view: Session | None, step: Drawn) -> None:
        request: Any = _KINDS[step.slot](session_id=step.session_id, content=step.text)
        got = running.stream.step(**{f"put_{step.slot}": request}).slot
        self._note_slot(running, view, step, got, step.slot, step.text)

    def _clear(self, running: Running, view: Session | None, step: Drawn) -> None:
        got = running.stream.step(clear_insight=s.ClearInsightRequest(session_id=step.session_id)).slot
        self._note_slot(running, view, step, got, INSIGHT, None)

    def _note_slot(
        self, running: Running, view: Session | None, step: Drawn, got: s.Slot, name: str, content: str | None
    ) -> None:
        running.model.look(step.session_id, [ARCHIVED], [name])
        if view is None:
            return
        held = view.slots[name]
        assert got.version == held.version + 1 or (content is None is held.content and got.version == held.version)

        def write(session: Session) -> None:
            session.slots[name].content, session.slots[name].version = content, got.version

        self._note(running, step, None, write)
        after = running.model.view(step.session_id)
        assert after is not None
        self.compare_slot(after, name, got)

    def _note(self, running: Running, step: Drawn, got: s.Session | None, write: Callable[[Session], object]) -> None:
        """Notes a write, and compares what it left."""
        running.model.writes.append((step.session_id, write))
        after = running.model.view(step.session_id)
        assert after is not None
        if got is not None:
            self.compare_session(after, got)

    def _meddle(self, which: int, step: Drawn, how: str) -> None:
        """Does as another client to a session of which a transaction was told."""
        looking = [running.model.seen for running in self._running if running.model.seen]
        seen = looking[which % len(looking)]
        # What an erasure is to meet is a record that was listed.
        choice = sorted(seen, key=lambda session_id: (how == "erase" and not seen[session_id].records, session_id))
        session_id = choice[0 if how == "erase" else step.number % len(seen)]
        if how == "append":
            self.append(session_id, [s.Record(role=s.ROLE_USER, content="theirs")], "absent", "absent", None, 0)
        elif how == "erase":
            self.erase(session_id, step.number, "at")
        elif how == "slot":
            self.put_slot(session_id, step.slot, "theirs", "absent")
        elif how == "trim":
            self.trim(session_id, step.number, "absent")
        elif how == "create":
            self.put_session(session_id, "theirs", [], "", None, "absent", None)
        elif how == "delete":
            self.delete_session(session_id, "absent")
        else:
            self.archive_or_restore(session_id, how == "archive", "absent")

    def _finish(self, which: int, how: str) -> None:
        """Ends a transaction: a commit takes effect whole, and exactly if all that was told would be told again."""
        running = self._running.pop(which % len(self._running))
        model, writes = running.model, bool(running.model.writes)
        note(f"  {how} of {running.request_id}")
        applied = False
        with running.stream as stream:
            if how in ("commit", "read again"):
                reason = reason_of(lambda: _commit(stream, model.seen if how == "read again" else ()))
                assert reason == ("TRANSACTION_CONFLICT" if model.stale else None)
                applied = reason is None
            elif how == "end":
                assert stream.end() == []
        if applied:
            model.apply()
        self.check_sessions(*model.seen)
        with Transaction(self._stub(), running.request_id) as again:
            assert bool(again.already_committed) == (applied and writes)

    def teardown(self) -> None:
        """Breaks off what is open still: nothing of it may be left."""
        for running in self._running:
            self._over(running)
        super().teardown()


def _commit(stream: Transaction, again: Iterable[str]) -> None:
    """Commits, after a look at sessions anew: another answer makes up for none that has moved."""
    for session_id in again:
        stream.page(session_id, page_size=1000)
    stream.commit()


def _copy(message: s.Record) -> s.Record:
    """Copies a record, since the model blanks what is erased."""
    return s.Record.FromString(message.SerializeToString())


def _set(session: Session, **values: object) -> None:
    for name, value in values.items():
        setattr(session, name, value)


def _after(session: Session, floor: int) -> list[Rec]:
    return [record for record in session.records if record.seq > floor]
