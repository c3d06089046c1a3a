"""Sessions: created, updated, read, archived, restored and deleted."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import bad_field, refused, stale_version, unknown_session
from tests.conformance.session.making import append, archive, delete, get, history, put, user


def update(
    storage: SessionStorageStub, session: pb.Session, *paths: str, expected_version: int | None = None
) -> pb.Session:
    """Update what the mask names."""
    mask = FieldMask(paths=paths)
    return storage.PutSession(
        pb.PutSessionRequest(session=session, update_mask=mask, expected_version=expected_version)
    )


class TestCreatingSessions:
    def test_a_new_session_is_active_empty_and_at_version_one(self, storage: SessionStorageStub) -> None:
        made = put(storage, "main", label="Plan", tags=["b", "a"], metadata_json='{"k": 1}')
        assert (made.id, made.label, list(made.tags), made.metadata_json) == ("main", "Plan", ["a", "b"], '{"k": 1}')
        assert made.status == pb.SESSION_STATUS_ACTIVE
        assert (made.turn_count, made.head_seq, made.floor_seq, made.version) == (0, 0, 0, 1)
        assert made.created_at == made.updated_at == made.last_active_at
        assert made.created_at.seconds > 0
        assert made.created_at.nanos % 1000 == 0
        assert get(storage, "main") == made

    def test_without_an_id_the_server_makes_one(self, storage: SessionStorageStub) -> None:
        first, second = put(storage), put(storage)
        assert first.id
        assert first.id != second.id
        assert get(storage, first.id) == first

    def test_create_only_is_refused_where_the_id_is_taken(self, storage: SessionStorageStub, session: str) -> None:
        with refused(grpc.StatusCode.ALREADY_EXISTS, "SESSION_EXISTS"):
            put(storage, session, label="other", expected_version=0)
        assert get(storage, session).label == ""

    def test_update_only_of_an_unknown_session_is_not_found(self, storage: SessionStorageStub) -> None:
        with unknown_session():
            put(storage, "nobody", expected_version=1)
        with unknown_session():
            get(storage, "nobody")

    def test_on_create_only_what_the_mask_names_is_taken(self, storage: SessionStorageStub) -> None:
        made = update(storage, pb.Session(id="main", label="L", tags=["t"], metadata_json="{}"), "label")
        assert (made.label, list(made.tags), made.metadata_json) == ("L", [], "")

    def test_output_only_fields_of_the_request_are_ignored(self, storage: SessionStorageStub) -> None:
        wanted = pb.Session(id="main", turn_count=9, head_seq=9, floor_seq=9, version=9)
        wanted.status = pb.SESSION_STATUS_ARCHIVED
        wanted.created_at.FromSeconds(1)
        made = storage.PutSession(pb.PutSessionRequest(session=wanted))
        assert made.status == pb.SESSION_STATUS_ACTIVE
        assert (made.turn_count, made.head_seq, made.floor_seq, made.version) == (0, 0, 0, 1)
        assert made.created_at.seconds > 1

    def test_a_system_prompt_comes_with_the_session(self, storage: SessionStorageStub) -> None:
        storage.PutSession(pb.PutSessionRequest(session=pb.Session(id="main"), system_prompt="Be brief."))
        slot = storage.GetSystemPrompt(pb.GetSystemPromptRequest(session_id="main"))
        assert (slot.content, slot.version) == ("Be brief.", 1)

    def test_an_empty_system_prompt_is_set_and_an_absent_one_is_not(self, storage: SessionStorageStub) -> None:
        storage.PutSession(pb.PutSessionRequest(session=pb.Session(id="empty"), system_prompt=""))
        put(storage, "absent")
        empty = storage.GetSystemPrompt(pb.GetSystemPromptRequest(session_id="empty"))
        absent = storage.GetSystemPrompt(pb.GetSystemPromptRequest(session_id="absent"))
        assert empty.HasField("content")
        assert not absent.HasField("content")

    def test_ids_are_compared_byte_for_byte(self, storage: SessionStorageStub) -> None:
        """agentscope-java#3217: `Abc`, `abc` and `ABC` are three sessions on every backend."""
        for session_id in ("Abc", "abc", "ABC", "ab c", "ab%", "ab_"):
            put(storage, session_id, label=session_id, expected_version=0)
            append(storage, session_id, user(session_id))
        for session_id in ("Abc", "abc", "ABC", "ab c", "ab%", "ab_"):
            assert get(storage, session_id).label == session_id
            assert [record.content for record in history(storage, session_id)] == [session_id]
        delete(storage, "abc")
        assert get(storage, "ABC").head_seq == get(storage, "Abc").head_seq == 1

    def test_a_missing_session_message_is_created_with_an_id_made_by_the_server(
        self, storage: SessionStorageStub
    ) -> None:
        assert storage.PutSession(pb.PutSessionRequest()).id


class TestUpdatingSessions:
    def test_without_a_mask_only_what_is_not_empty_changes(self, storage: SessionStorageStub) -> None:
        put(storage, "main", label="old", tags=["t"], metadata_json="1")
        changed = put(storage, "main", label="new")
        assert (changed.label, list(changed.tags), changed.metadata_json) == ("new", ["t"], "1")

    def test_a_mask_also_empties(self, storage: SessionStorageStub) -> None:
        put(storage, "main", label="old", tags=["t"], metadata_json="1")
        changed = update(storage, pb.Session(id="main"), "tags", "metadata_json")
        assert (changed.label, list(changed.tags), changed.metadata_json) == ("old", [], "")

    def test_a_star_stands_for_all_three(self, storage: SessionStorageStub) -> None:
        put(storage, "main", label="old", tags=["t"], metadata_json="1")
        changed = update(storage, pb.Session(id="main", tags=["u"]), "*")
        assert (changed.label, list(changed.tags), changed.metadata_json) == ("", ["u"], "")

    @pytest.mark.parametrize("path", ["status", "id", "turn_count", "labels", "label.x", ""])
    def test_a_mask_of_another_path_is_refused(self, storage: SessionStorageStub, session: str, path: str) -> None:
        with bad_field("update_mask"):
            update(storage, pb.Session(id=session), path)

    def test_an_update_counts_the_version_and_moves_updated_at(self, storage: SessionStorageStub) -> None:
        made = put(storage, "main")
        changed = put(storage, "main", label="new")
        assert changed.version == made.version + 1
        assert changed.updated_at.ToNanoseconds() > made.updated_at.ToNanoseconds()
        assert changed.created_at == made.created_at
        assert changed.last_active_at == made.last_active_at

    def test_tags_are_a_sorted_set(self, storage: SessionStorageStub) -> None:
        made = put(storage, "main", tags=["b", "a", "b", "B", "a b"])
        assert list(made.tags) == ["B", "a", "a b", "b"]
        assert list(get(storage, "main").tags) == ["B", "a", "a b", "b"]

    def test_an_update_with_the_current_version_holds(self, storage: SessionStorageStub) -> None:
        made = put(storage, "main")
        assert put(storage, "main", label="new", expected_version=made.version).label == "new"

    def test_a_delayed_update_with_an_old_version_is_refused(self, storage: SessionStorageStub) -> None:
        """langgraph#8810: a write that was delayed must not undo what came after what it had read."""
        read = put(storage, "main", label="read")
        newer = put(storage, "main", label="newer")
        with stale_version() as refusal:
            put(storage, "main", label="delayed", expected_version=read.version)
        assert refusal.metadata["current"] == str(newer.version)
        assert get(storage, "main") == newer

    def test_appends_leave_the_version_alone(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user())
        assert get(storage, session).version == 1
        assert put(storage, session, label="new", expected_version=1).version == 2

    def test_a_system_prompt_is_left_when_an_update_brings_none(self, storage: SessionStorageStub) -> None:
        storage.PutSession(pb.PutSessionRequest(session=pb.Session(id="main"), system_prompt="kept"))
        put(storage, "main", label="new")
        assert storage.GetSystemPrompt(pb.GetSystemPromptRequest(session_id="main")).content == "kept"
        storage.PutSession(pb.PutSessionRequest(session=pb.Session(id="main"), system_prompt="changed"))
        slot = storage.GetSystemPrompt(pb.GetSystemPromptRequest(session_id="main"))
        assert (slot.content, slot.version) == ("changed", 2)

    def test_a_refused_update_does_not_write_its_system_prompt(self, storage: SessionStorageStub, session: str) -> None:
        wanted = pb.PutSessionRequest(session=pb.Session(id=session), system_prompt="no", expected_version=7)
        with stale_version():
            storage.PutSession(wanted)
        assert storage.GetSystemPrompt(pb.GetSystemPromptRequest(session_id=session)).version == 0

    def test_a_negative_expected_version_is_refused(self, storage: SessionStorageStub, session: str) -> None:
        with bad_field("expected_version"):
            put(storage, session, expected_version=-1)


class TestReadingSessions:
    def test_an_unknown_session_is_not_found(self, storage: SessionStorageStub) -> None:
        with unknown_session():
            get(storage, "nobody")

    def test_many_are_read_in_the_order_asked_and_unknown_ones_named(self, storage: SessionStorageStub) -> None:
        for session_id in ("a", "b", "c"):
            put(storage, session_id)
        reply = storage.BatchGetSessions(pb.BatchGetSessionsRequest(session_ids=["c", "x", "a", "c", "y", "x"]))
        assert [session.id for session in reply.sessions] == ["c", "a"]
        assert list(reply.missing_session_ids) == ["x", "y"]
        assert list(reply.sessions) == [get(storage, "c"), get(storage, "a")]

    def test_a_batch_holds_a_thousand_ids_and_no_more(self, storage: SessionStorageStub, session: str) -> None:
        ids = [f"s{number}" for number in range(999)]
        reply = storage.BatchGetSessions(pb.BatchGetSessionsRequest(session_ids=[*ids, session]))
        assert [found.id for found in reply.sessions] == [session]
        assert list(reply.missing_session_ids) == ids
        with refused(grpc.StatusCode.INVALID_ARGUMENT, "TOO_LARGE", names="session_ids"):
            storage.BatchGetSessions(pb.BatchGetSessionsRequest(session_ids=[*ids, session, "one-more"]))

    def test_a_batch_of_nothing_is_refused(self, storage: SessionStorageStub) -> None:
        with bad_field("session_ids"):
            storage.BatchGetSessions(pb.BatchGetSessionsRequest())


class TestArchivingSessions:
    def test_archive_and_restore_count_the_version(self, storage: SessionStorageStub, session: str) -> None:
        archived = archive(storage, session)
        assert (archived.status, archived.version) == (pb.SESSION_STATUS_ARCHIVED, 2)
        restored = storage.RestoreSession(pb.RestoreSessionRequest(session_id=session))
        assert (restored.status, restored.version) == (pb.SESSION_STATUS_ACTIVE, 3)
        assert get(storage, session) == restored

    def test_archiving_twice_changes_nothing_the_second_time(self, storage: SessionStorageStub, session: str) -> None:
        assert archive(storage, session) == archive(storage, session)

    def test_restoring_an_active_session_changes_nothing(self, storage: SessionStorageStub, session: str) -> None:
        before = get(storage, session)
        assert storage.RestoreSession(pb.RestoreSessionRequest(session_id=session)) == before

    def test_an_old_version_is_refused(self, storage: SessionStorageStub, session: str) -> None:
        put(storage, session, label="newer")
        with stale_version():
            storage.ArchiveSession(pb.ArchiveSessionRequest(session_id=session, expected_version=1))
        archive(storage, session)
        with stale_version():
            storage.RestoreSession(pb.RestoreSessionRequest(session_id=session, expected_version=2))
        assert get(storage, session).status == pb.SESSION_STATUS_ARCHIVED

    def test_unknown_sessions_are_not_found(self, storage: SessionStorageStub) -> None:
        with unknown_session():
            archive(storage, "nobody")
        with unknown_session():
            storage.RestoreSession(pb.RestoreSessionRequest(session_id="nobody"))


class TestDeletingSessions:
    def test_a_deleted_session_is_gone(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user())
        delete(storage, session)
        with unknown_session():
            get(storage, session)
        with unknown_session():
            history(storage, session)
        with unknown_session():
            delete(storage, session)

    def test_an_archived_session_can_be_deleted(self, storage: SessionStorageStub, session: str) -> None:
        archive(storage, session)
        delete(storage, session)
        with unknown_session():
            get(storage, session)

    def test_an_old_version_is_refused(self, storage: SessionStorageStub, session: str) -> None:
        put(storage, session, label="newer")
        with stale_version():
            storage.DeleteSession(pb.DeleteSessionRequest(session_id=session, expected_version=1))
        assert get(storage, session).label == "newer"

    def test_a_session_of_the_same_id_begins_anew(self, storage: SessionStorageStub) -> None:
        put(storage, "main", label="old", tags=["old"], metadata_json="1")
        append(storage, "main", user("old"), turn_delta=1)
        storage.PutInsight(pb.PutInsightRequest(session_id="main", content="old"))
        storage.PutMemory(pb.PutMemoryRequest(session_id="main", content="old"))
        storage.PutSystemPrompt(pb.PutSystemPromptRequest(session_id="main", content="old"))
        delete(storage, "main")
        made = put(storage, "main", expected_version=0)
        assert (made.label, list(made.tags), made.metadata_json) == ("", [], "")
        assert (made.turn_count, made.head_seq, made.version) == (0, 0, 1)
        found = storage.GetContext(pb.GetContextRequest(session_id="main"))
        assert list(found.records) == []
        assert found.insight == found.system_prompt == pb.Slot()
        assert storage.GetMemory(pb.GetMemoryRequest(session_id="main")) == pb.Slot()
