"""Rules that read: lists, contexts, diffs, batches; and rules that send a mutation again."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from ramet.session.v1 import session_pb2 as s
from tests.model.base import IDS, Base, known_sessions
from tests.model.conversation import INSIGHT, MEMORY, PROMPT, SLOTS
from tests.model.session_rules import labels, tag_lists

roles = st.lists(st.sampled_from([s.ROLE_SYSTEM, s.ROLE_USER, s.ROLE_ASSISTANT, s.ROLE_TOOL]), max_size=2)
bounds = st.none() | st.integers(0, 12)
page_sizes = st.integers(1, 4)

_LIST_KEYS = {
    s.SESSION_ORDER_UNSPECIFIED: lambda session: (session.id.encode(),),
    s.SESSION_ORDER_ID: lambda session: (session.id.encode(),),
    s.SESSION_ORDER_CREATED_AT: lambda session: (session.created_at, session.id.encode()),
    s.SESSION_ORDER_LAST_ACTIVE_AT: lambda session: (session.last_active_at, session.id.encode()),
}


class ReadRules(Base):
    """Reads in every way, and repeats what was sent."""

    @rule(
        session_id=known_sessions,
        roles=roles,
        after=bounds,
        before=bounds,
        descending=st.booleans(),
        page_size=page_sizes,
        offset=st.integers(0, 3),
    )
    def list_records(
        self,
        session_id: str,
        roles: list[s.Role.ValueType],
        after: int | None,
        before: int | None,
        descending: bool,
        page_size: int,
        offset: int,
    ) -> None:
        """Lists records page by page."""
        session = self.sessions.get(session_id)
        request = s.ListRecordsRequest(
            session_id=session_id,
            roles=roles,
            after_seq=after,
            before_seq=before,
            order=s.RECORD_ORDER_DESCENDING if descending else s.RECORD_ORDER_ASCENDING,
            page_size=page_size,
            offset=offset,
        )
        if session is None:
            self.client.ask(self.storage.ListRecords, request, ["SESSION_NOT_FOUND"])
            return
        held = [
            record
            for record in (session.records[::-1] if descending else session.records)
            if (not roles or record.message.role in roles)
            and (after is None or record.seq > after)
            and (before is None or record.seq < before)
        ][offset:]
        got: list[s.Record] = []
        while True:
            page = self.client.get(self.storage.ListRecords, request)
            assert len(page.records) <= page_size
            assert page.records or not page.next_page_token, "an empty page before the end"
            got += page.records
            if not page.next_page_token:
                break
            request.page_token = page.next_page_token
        self.compare_records(held, got)

    @rule(
        session_id=known_sessions,
        max_records=st.none() | st.integers(0, 8),
        max_characters=st.none() | st.integers(0, 200),
    )
    def get_context(self, session_id: str, max_records: int | None, max_characters: int | None) -> None:
        """Reads what a send needs."""
        session = self.sessions.get(session_id)
        if session is None:
            request = s.GetContextRequest(session_id=session_id)
            self.client.ask(self.storage.GetContext, request, ["SESSION_NOT_FOUND"])
        else:
            self.check_context(session, max_records, max_characters)

    @rule(left_id=known_sessions, right_id=known_sessions)
    def diff_sessions(self, left_id: str, right_id: str) -> None:
        """Compares two sessions, or one with itself."""
        self.check_diff(left_id, right_id)

    @rule(
        order=st.sampled_from(sorted(_LIST_KEYS)),
        descending=st.booleans(),
        page_size=page_sizes,
        archived=st.none() | st.booleans(),
        tags=tag_lists,
        prefix=labels.map(lambda label: label[:2]),
        since=st.none() | known_sessions,
        before=st.none() | known_sessions,
    )
    def list_sessions(
        self,
        order: s.SessionOrder.ValueType,
        descending: bool,
        page_size: int,
        archived: bool | None,
        tags: list[str],
        prefix: str,
        since: str | None,
        before: str | None,
    ) -> None:
        """Lists sessions page by page, through a filter; its times are those of sessions that are there."""
        wanted = s.SessionFilter(tags=tags, label_prefix=prefix)
        if archived is not None:
            wanted.status = s.SESSION_STATUS_ARCHIVED if archived else s.SESSION_STATUS_ACTIVE
        held = [
            session
            for session in self.sessions.values()
            if archived in (None, session.archived)
            and set(tags) <= set(session.tags)
            and session.label.startswith(prefix)
        ]
        if since in self.sessions:
            start = self.sessions[since].last_active_at
            wanted.last_active_from.seconds, wanted.last_active_from.nanos = start
            held = [session for session in held if session.last_active_at >= start]
        if before in self.sessions:
            end = self.sessions[before].created_at
            wanted.created_before.seconds, wanted.created_before.nanos = end
            held = [session for session in held if session.created_at < end]
        held.sort(key=_LIST_KEYS[order], reverse=descending)
        request = s.ListSessionsRequest(filter=wanted, order=order, descending=descending, page_size=page_size)
        got: list[s.Session] = []
        while True:
            page = self.client.get(self.storage.ListSessions, request)
            assert len(page.sessions) <= page_size
            got += page.sessions
            if not page.next_page_token:
                break
            request.page_token = page.next_page_token
        self.compare_sessions(held, got)

    @rule(
        wanted=st.lists(known_sessions, min_size=1, max_size=6),
        slots=st.lists(st.sampled_from(SLOTS), max_size=3, unique=True),
    )
    def batches(self, wanted: list[str], slots: list[str]) -> None:
        """Reads metadata and slots of many sessions."""
        self.check_sessions(*dict.fromkeys(wanted))
        once = list(dict.fromkeys(wanted))
        batch = self.client.get(self.storage.BatchGetSessions, s.BatchGetSessionsRequest(session_ids=[*wanted, *once]))
        self.compare_sessions([self.sessions[one] for one in once if one in self.sessions], batch.sessions)
        self.check_slots(once, slots)

    @rule(session_id=known_sessions)
    def get_session(self, session_id: str) -> None:
        """Reads one session, and each of its slots."""
        session = self.sessions.get(session_id)
        faults = [] if session is not None else ["SESSION_NOT_FOUND"]
        got = self.client.ask(self.storage.GetSession, s.GetSessionRequest(session_id=session_id), faults)
        reads: dict[str, tuple[Any, Any]] = {
            PROMPT: (self.storage.GetSystemPrompt, s.GetSystemPromptRequest),
            INSIGHT: (self.storage.GetInsight, s.GetInsightRequest),
            MEMORY: (self.storage.GetMemory, s.GetMemoryRequest),
        }
        slots = {name: self.client.ask(get, kind(session_id=session_id), faults) for name, (get, kind) in reads.items()}
        if session is not None and got is not None:
            self.compare_session(session, got)
            for name, slot in slots.items():
                assert slot is not None
                self.compare_slot(session, name, slot)

    def check_everything(self) -> None:
        """Compares all that there is with the model."""
        self.check_sessions(*IDS)
        listed = self.client.get(self.storage.ListSessions, s.ListSessionsRequest())
        self.compare_sessions(
            sorted(self.sessions.values(), key=lambda session: session.id.encode()), list(listed.sessions)
        )
