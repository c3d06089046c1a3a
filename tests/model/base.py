"""What all rules of the machine share: the client, the model, and mutations that can be sent again."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, TypeVar

import grpc
from google.protobuf.message import Message
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from ramet.session.v1 import session_pb2 as s
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.model.client import Answer, Client
from tests.model.conversation import INSIGHT, MEMORY, PROMPT, SLOTS, Moment, Rec, Session, diff
from tests.model.forest import Forest

_OFTEN = 6

IDS = ["main", "Main", "b", "fork 1", "~", "0", "x" * 128]
"""Few, so that they meet often; two that differ only in case, one with a space, one at the alphabet's end."""

ids = st.sampled_from(IDS)
"""Ids for what is to be made."""

free_sessions = st.runner().flatmap(lambda machine: st.sampled_from(_free(machine.sessions)))
"""Ids of which there is no session yet, mostly."""

free_nodes = st.runner().flatmap(lambda machine: st.sampled_from(_free(machine.forest.nodes)))
"""Ids of which there is no node yet, mostly."""

known_sessions = st.runner().flatmap(lambda machine: st.sampled_from([*machine.sessions] * _OFTEN + IDS))
"""Ids of sessions that are there, mostly."""

known_nodes = st.runner().flatmap(lambda machine: st.sampled_from([*machine.forest.nodes] * _OFTEN + IDS))
"""Ids of nodes that are there, mostly."""

EXPECTED = st.sampled_from(["absent", "absent", "absent", "current", "current", "current", "stale"])
"""How an expected version or head stands to the current one."""

_spaces = count()


def _free(taken: Collection[str]) -> list[str]:
    return [free for free in IDS if free not in taken] * _OFTEN + IDS


T = TypeVar("T")


@dataclass(frozen=True)
class Sent:
    """A mutation that succeeded with a request_id."""

    method: grpc.UnaryUnaryMultiCallable[Any, Any]
    request: Message
    stable: Callable[[Any], Sequence[object]]
    """Picks the ids, seqs and versions of an answer: what a repetition must answer again."""
    first: Sequence[object]


def expectation(how: str, current: int) -> int | None:
    """Returns the version or head to expect; None for none."""
    # Never 0 for a stale version: that means something else to PutSession.
    return {"absent": None, "current": current, "stale": current + 5}[how]


def moment(time: Any) -> Moment:
    """Returns a timestamp as something that can be compared."""
    return time.seconds, time.nanos


@dataclass(frozen=True)
class Surroundings:
    """The server under test."""

    channel: grpc.Channel
    rows: Callable[[], Counter[str]]
    """Counts the rows of each table of its database."""
    wrong: Callable[[str], Sequence[object]]
    """Tells what a verification finds in a space."""


class Base(RuleBasedStateMachine):
    """The machine without its rules."""

    surroundings: ClassVar[Surroundings]
    finished: ClassVar[int] = 0
    """How many runs were compared to their end."""

    def __init__(self) -> None:
        super().__init__()
        # A space for each run: what is stored of earlier ones is out of reach.
        self.client = Client(f"model-{next(_spaces)}")
        self.storage = SessionStorageStub(self.surroundings.channel)
        self.tree = SessionTreeStub(self.surroundings.channel)
        self.sessions: dict[str, Session] = {}
        self.forest = Forest()
        self.sent: list[Sent] = []
        self._numbers = count()
        # A run that failed leaves its rows behind.
        self._before = self.surroundings.rows()

    def change(
        self,
        method: grpc.UnaryUnaryMultiCallable[Any, Answer],
        request: Any,
        faults: Collection[str],
        stable: Callable[[Answer], Sequence[object]],
    ) -> Answer | None:
        """Makes a mutation, with a request_id, that is remembered if it succeeds; None where it was refused."""
        request.request_id = f"request-{next(self._numbers)}"
        answer = self.client.ask(method, request, faults)
        if answer is not None:
            self.sent.append(Sent(method, request, stable, stable(answer)))
        return answer

    def settle(self, node_id: str) -> None:
        """Makes a node that awaits content visible for good, if it is visible now; the forest's rules know how."""

    def check_everything(self) -> None:
        """Compares all that there is with the model."""

    def teardown(self) -> None:
        """Compares all once more when a run ends, and deletes the sessions, of which nothing may be left."""
        if sys.exc_info()[0] is not None:
            # What failed is known, and must not be hidden by what fails after it.
            return
        self.check_everything()
        assert self.surroundings.wrong(self.client.space) == []
        shown = {id(record) for session in self.sessions.values() for record in session.records}
        self._check_rows(
            session=len(self.sessions),
            session_tag=sum(len(session.tags) for session in self.sessions.values()),
            record=len(shown),
            topology_node=len(self.forest.nodes),
            node_ref=sum(len(node.refs) for node in self.forest.nodes.values()),
        )
        for session_id in self.sessions:
            self.client.get(self.storage.DeleteSession, s.DeleteSessionRequest(session_id=session_id))
        left = ("session", "session_tag", "record", "history_span", "broken_group", "released_span", "context_slot")
        self._check_rows(**dict.fromkeys(left, 0))
        type(self).finished += 1

    def _check_rows(self, **expected: int) -> None:
        now = self.surroundings.rows()
        assert {name: now[name] - self._before[name] for name in expected} == expected

    def check_sessions(self, *session_ids: str) -> None:
        """Compares sessions with the model: metadata, slots, and every record."""
        there = [self.sessions[session_id] for session_id in session_ids if session_id in self.sessions]
        missing = [session_id for session_id in session_ids if session_id not in self.sessions]
        if not session_ids:
            return
        batch = self.client.get(self.storage.BatchGetSessions, s.BatchGetSessionsRequest(session_ids=session_ids))
        self.compare_sessions(there, batch.sessions)
        assert list(batch.missing_session_ids) == missing
        for session in there:
            request = s.ListRecordsRequest(session_id=session.id, page_size=1000)
            listed = self.client.get(self.storage.ListRecords, request)
            assert not listed.next_page_token
            assert (listed.head_seq, listed.floor_seq) == (session.head, session.floor)
            self.compare_records(session.records, listed.records)
            self.check_context(session)
        self.check_slots(session_ids, list(SLOTS))

    def check_context(
        self, session: Session, max_records: int | None = None, max_characters: int | None = None
    ) -> None:
        """Compares what a send would get with the model."""
        request = s.GetContextRequest(session_id=session.id, max_records=max_records, max_characters=max_characters)
        got = self.client.get(self.storage.GetContext, request)
        expected = session.context(max_records, max_characters)
        self.compare_session(session, got.session)
        self.compare_slot(session, PROMPT, got.system_prompt)
        self.compare_slot(session, INSIGHT, got.insight)
        self.compare_records(expected.records, got.records)
        assert got.incomplete_records == expected.incomplete
        assert got.older_left_out == expected.older_left_out

    def check_diff(self, left_id: str, right_id: str) -> None:
        """Compares where two sessions part with the model."""
        left, right = self.sessions.get(left_id), self.sessions.get(right_id)
        request = s.DiffSessionsRequest(left_session_id=left_id, right_session_id=right_id)
        faults = [] if left is not None and right is not None else ["SESSION_NOT_FOUND"]
        got = self.client.ask(self.storage.DiffSessions, request, faults)
        if left is None or right is None or got is None:
            return
        told = (got.common_through_seq, got.left.first_own_seq, got.right.first_own_seq)
        assert told == diff(left, right)
        assert (got.left.head_seq, got.left.floor_seq) == (left.head, left.floor)
        assert (got.right.head_seq, got.right.floor_seq) == (right.head, right.floor)

    def check_slots(self, session_ids: Sequence[str], names: Sequence[str]) -> None:
        """Compares slots of many sessions with the model; without names it asks for what digests need."""
        there = [session_id for session_id in session_ids if session_id in self.sessions]
        request = s.BatchGetSlotsRequest(
            session_ids=session_ids, slots=[s.SlotName.Value(f"SLOT_NAME_{name.upper()}") for name in names]
        )
        answers = list(self.storage.BatchGetSlots(request, metadata=(("ramet-space", self.client.space),), timeout=60))
        told = [entry for answer in answers for entry in answer.sessions]
        missing = [session_id for answer in answers for session_id in answer.missing_session_ids]
        assert [entry.session_id for entry in told] == there
        assert missing == [session_id for session_id in session_ids if session_id not in self.sessions]
        for entry in told:
            slots = {PROMPT: entry.system_prompt, INSIGHT: entry.insight, MEMORY: entry.memory}
            asked = {field.name for field, _ in entry.ListFields()} - {"session_id"}
            assert asked == set(names or (INSIGHT, MEMORY))
            for name in asked:
                self.compare_slot(self.sessions[entry.session_id], name, slots[name])

    def compare_sessions(self, held: Sequence[Session], got: Collection[s.Session]) -> None:
        """Compares metadata of many sessions with the model."""
        assert [session.id for session in got] == [session.id for session in held]
        for session, told in zip(held, got, strict=True):
            self.compare_session(session, told)

    def compare_session(self, session: Session, got: s.Session) -> None:
        """Compares metadata with the model."""
        status = s.SESSION_STATUS_ARCHIVED if session.archived else s.SESSION_STATUS_ACTIVE
        told = (got.id, got.label, list(got.tags), got.metadata_json, got.status, got.turn_count, got.version)
        held = (session.id, session.label, session.tags, session.metadata_json, status, session.turn_count)
        assert told == (*held, session.version)
        assert (got.head_seq, got.floor_seq) == (session.head, session.floor), session.id
        assert moment(got.created_at) == session.created_at
        assert moment(got.last_active_at) == session.last_active_at
        assert moment(got.updated_at) >= moment(got.created_at)

    def compare_records(self, held: Sequence[Rec], got: Collection[s.Record]) -> None:
        """Compares records with those of the model."""
        assert [record.seq for record in got] == [record.seq for record in held]
        for record, told in zip(held, got, strict=True):
            assert told.HasField("created_at")
            assert told.HasField("erased_at") == record.erased, record.seq
            bare = s.Record()
            bare.CopyFrom(told)
            for name in ("seq", "created_at", "erased_at"):
                bare.ClearField(name)
            assert bare == record.message

    def compare_slot(self, session: Session, name: str, got: s.Slot) -> None:
        """Compares a slot with the model."""
        slot = session.slots[name]
        content = got.content if got.HasField("content") else None
        assert (content, got.version) == (slot.content, slot.version), f"{name} of {session.id}"
        assert got.HasField("updated_at") == (slot.version > 0)
