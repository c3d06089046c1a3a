"""Rules on the metadata and slots of sessions."""

from __future__ import annotations

from typing import Any

from google.protobuf import field_mask_pb2
from hypothesis import strategies as st
from hypothesis.stateful import rule

from ramet.session.v1 import session_pb2 as s
from tests.model.base import EXPECTED, Base, expectation, free_sessions, known_sessions, moment
from tests.model.conversation import INSIGHT, MEMORY, PROMPT, SLOTS, Session
from tests.model.histories import metadata

labels = st.sampled_from(["", "Label", "label", "L_bel%", "标签 🌱"])
tag_lists = st.lists(st.sampled_from(["red", "Red", "blue", "a b"]), max_size=3)
texts = st.sampled_from(["", "text", "zwei\nlines", "🌱" * 3])
PATHS = ["label", "tags", "metadata_json"]
masks = st.none() | st.just(["*"]) | st.lists(st.sampled_from(PATHS), min_size=1, max_size=3, unique=True)


def version_of(answer: Any) -> list[object]:
    """Picks what a repeated write of one thing must answer again."""
    return [answer.id, answer.version]


class SessionRules(Base):
    """Creates, updates, archives, restores and deletes sessions, and writes their slots."""

    @rule(
        session_id=free_sessions | known_sessions,
        label=labels,
        tags=tag_lists,
        metadata_json=metadata,
        mask=masks,
        expected=EXPECTED | st.just("create"),
        prompt=st.none() | texts,
    )
    def put_session(
        self,
        session_id: str,
        label: str,
        tags: list[str],
        metadata_json: str,
        mask: list[str] | None,
        expected: str,
        prompt: str | None,
    ) -> None:
        """Creates a session, or updates one."""
        session = self.sessions.get(session_id)
        request = s.PutSessionRequest(
            session=s.Session(id=session_id, label=label, tags=tags, metadata_json=metadata_json),
            update_mask=None if mask is None else field_mask_pb2.FieldMask(paths=mask),
            system_prompt=prompt,
        )
        faults = set()
        if expected == "create":
            request.expected_version = 0
            faults |= {"SESSION_EXISTS"} if session is not None else set()
        elif (version := expectation(expected, session.version if session is not None else 1)) is not None:
            request.expected_version = version
            faults |= {"SESSION_NOT_FOUND"} if session is None else set()
            faults |= {"STALE_VERSION"} if session is not None and expected == "stale" else set()
        faults |= {"SESSION_ARCHIVED"} if session is not None and session.archived else set()
        got = self.change(self.storage.PutSession, request, faults, version_of)
        if got is None:
            return self.check_sessions(session_id)
        given = {"label": label, "tags": sorted(set(tags)), "metadata_json": metadata_json}
        taken = PATHS if mask == ["*"] else [path for path in PATHS if given[path]] if mask is None else mask
        changes = {path: given[path] for path in taken}
        if session is None:
            session = self.sessions[session_id] = Session(session_id, created_at=moment(got.created_at))
            session.last_active_at = session.created_at
        elif any(getattr(session, path) != value for path, value in changes.items()):
            session.version += 1
        else:
            # Whether a write of what is there already counts as a change is left open.
            assert got.version in (session.version, session.version + 1)
            session.version = got.version
        for path, value in changes.items():
            setattr(session, path, value)
        if prompt is not None:
            session.slots[PROMPT].content = prompt
            session.slots[PROMPT].version += 1
        self.compare_session(session, got)
        return self.check_sessions(session_id)

    @rule(session_id=known_sessions, archive=st.booleans(), expected=EXPECTED)
    def archive_or_restore(self, session_id: str, archive: bool, expected: str) -> None:
        """Archives or restores a session."""
        session = self.sessions.get(session_id)
        version = expectation(expected, session.version if session is not None else 1)
        faults = {"SESSION_NOT_FOUND"} if session is None else {"STALE_VERSION"} if expected == "stale" else set()
        if archive:
            request: Any = s.ArchiveSessionRequest(session_id=session_id, expected_version=version)
            got = self.change(self.storage.ArchiveSession, request, faults, version_of)
        else:
            request = s.RestoreSessionRequest(session_id=session_id, expected_version=version)
            got = self.change(self.storage.RestoreSession, request, faults, version_of)
        if session is not None and got is not None:
            session.version += session.archived != archive
            session.archived = archive
            self.compare_session(session, got)
        self.check_sessions(session_id)

    @rule(session_id=known_sessions, expected=EXPECTED)
    def delete_session(self, session_id: str, expected: str) -> None:
        """Deletes a session; its forks keep what they show."""
        session = self.sessions.get(session_id)
        version = expectation(expected, session.version if session is not None else 1)
        faults = {"SESSION_NOT_FOUND"} if session is None else {"STALE_VERSION"} if expected == "stale" else set()
        # Whether a node whose content came and went is shown still is not for the model to say.
        self.settle(session_id)
        request = s.DeleteSessionRequest(session_id=session_id, expected_version=version)
        if self.change(self.storage.DeleteSession, request, faults, lambda _: []) is not None:
            self.forget_session(session_id)
        self.check_sessions(*dict.fromkeys([session_id, *self.sessions]))

    def forget_session(self, session_id: str) -> None:
        """Takes a deleted session out of the model."""
        del self.sessions[session_id]

    @rule(session_id=known_sessions, name=st.sampled_from(SLOTS), content=texts | st.none(), expected=EXPECTED)
    def put_slot(self, session_id: str, name: str, content: str | None, expected: str) -> None:
        """Writes or unsets a slot."""
        session = self.sessions.get(session_id)
        version = expectation(expected, session.slots[name].version if session is not None else 0)
        faults = set()
        if session is None:
            faults = {"SESSION_NOT_FOUND"}
        else:
            faults |= {"SESSION_ARCHIVED"} if session.archived else set()
            faults |= {"STALE_VERSION"} if expected == "stale" else set()
        got = self._write_slot(session_id, name, content, version, faults)
        if session is not None and got is not None:
            slot = session.slots[name]
            if content is None and slot.content is None:
                # Whether unsetting what is not set counts as a write is left open.
                assert got.version in (slot.version, slot.version + 1)
                slot.version = got.version
            else:
                slot.version += 1
            slot.content = content
            self.compare_slot(session, name, got)
        self.check_sessions(session_id)

    def _write_slot(
        self, session_id: str, name: str, content: str | None, version: int | None, faults: set[str]
    ) -> s.Slot | None:
        def stable(slot: s.Slot) -> list[object]:
            return [slot.version]

        if name == INSIGHT and content is None:
            cleared = s.ClearInsightRequest(session_id=session_id, expected_version=version)
            return self.change(self.storage.ClearInsight, cleared, faults, stable)
        kinds: dict[str, Any] = {
            PROMPT: (self.storage.PutSystemPrompt, s.PutSystemPromptRequest),
            INSIGHT: (self.storage.PutInsight, s.PutInsightRequest),
            MEMORY: (self.storage.PutMemory, s.PutMemoryRequest),
        }
        method, kind = kinds[name]
        slot: s.Slot | None = self.change(
            method, kind(session_id=session_id, content=content, expected_version=version), faults, stable
        )
        return slot
