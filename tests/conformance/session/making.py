"""Short words for what the tests of SessionStorage do again and again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub


def put(
    storage: SessionStorageStub,
    session_id: str = "",
    *,
    label: str = "",
    tags: Iterable[str] = (),
    metadata_json: str = "",
    expected_version: int | None = None,
    request_id: str = "",
) -> pb.Session:
    """Create or update a session."""
    wanted = pb.Session(id=session_id, label=label, tags=tags, metadata_json=metadata_json)
    return storage.PutSession(
        pb.PutSessionRequest(session=wanted, expected_version=expected_version, request_id=request_id)
    )


def get(storage: SessionStorageStub, session_id: str) -> pb.Session:
    """Read a session."""
    return storage.GetSession(pb.GetSessionRequest(session_id=session_id))


def archive(storage: SessionStorageStub, session_id: str) -> pb.Session:
    """Archive a session."""
    return storage.ArchiveSession(pb.ArchiveSessionRequest(session_id=session_id))


def delete(storage: SessionStorageStub, session_id: str) -> None:
    """Delete a session."""
    storage.DeleteSession(pb.DeleteSessionRequest(session_id=session_id))


def user(content: str = "question") -> pb.Record:
    """A record of a person."""
    return pb.Record(role=pb.ROLE_USER, content=content)


def users(count: int, prefix: str = "r") -> list[pb.Record]:
    """Records of a person: r1, r2 and so on."""
    return [user(f"{prefix}{number}") for number in range(1, count + 1)]


def assistant(content: str = "answer") -> pb.Record:
    """A record of the model, without tool calls."""
    return pb.Record(role=pb.ROLE_ASSISTANT, content=content)


def calling(*call_ids: str, arguments_json: str = "{}") -> pb.Record:
    """A record of the model that calls a tool once for each id."""
    calls = [pb.ToolCall(id=call_id, name="look_up", arguments_json=arguments_json) for call_id in call_ids]
    return pb.Record(role=pb.ROLE_ASSISTANT, content=f"call {' '.join(call_ids)}", tool_calls=calls)


def answering(call_id: str) -> pb.Record:
    """A tool's answer to one call."""
    return pb.Record(role=pb.ROLE_TOOL, content=f"result {call_id}", tool_call_id=call_id, name="look_up")


def append(
    storage: SessionStorageStub,
    session_id: str,
    *records: pb.Record,
    expected_head_seq: int | None = None,
    consume_insight_version: int | None = None,
    turn_delta: int = 0,
    request_id: str = "",
) -> pb.AppendRecordsResponse:
    """Append records."""
    return storage.AppendRecords(
        pb.AppendRecordsRequest(
            session_id=session_id,
            records=records,
            expected_head_seq=expected_head_seq,
            consume_insight_version=consume_insight_version,
            turn_delta=turn_delta,
            request_id=request_id,
        )
    )


def pages(storage: SessionStorageStub, request: pb.ListRecordsRequest) -> Iterator[pb.ListRecordsResponse]:
    """Every page of a list of records, the given request being the first."""
    while True:
        page = storage.ListRecords(request)
        yield page
        if not page.next_page_token:
            return
        assert page.records, "an empty page before the end"
        request = pb.ListRecordsRequest.FromString(request.SerializeToString())
        request.page_token = page.next_page_token


def history(storage: SessionStorageStub, session_id: str) -> list[pb.Record]:
    """Every record that a session shows, oldest first."""
    request = pb.ListRecordsRequest(session_id=session_id, page_size=1000)
    return [record for page in pages(storage, request) for record in page.records]


def texts(storage: SessionStorageStub, session_id: str) -> list[str]:
    """The content of every record that a session shows, oldest first."""
    return [record.content for record in history(storage, session_id)]


def seqs(storage: SessionStorageStub, session_id: str) -> list[int]:
    """The seq of every record that a session shows."""
    return [record.seq for record in history(storage, session_id)]


def context(
    storage: SessionStorageStub, session_id: str, *, max_records: int | None = None, max_characters: int | None = None
) -> pb.GetContextResponse:
    """Read what one send needs."""
    return storage.GetContext(
        pb.GetContextRequest(session_id=session_id, max_records=max_records, max_characters=max_characters)
    )


def context_texts(storage: SessionStorageStub, session_id: str) -> list[str]:
    """The content of every record of a session's context."""
    return [record.content for record in context(storage, session_id).records]


def trim(storage: SessionStorageStub, session_id: str, keep_last: int) -> pb.TrimRecordsResponse:
    """Keep the most recent records."""
    return storage.TrimRecords(pb.TrimRecordsRequest(session_id=session_id, keep_last=keep_last))


def rewind(storage: SessionStorageStub, session_id: str, after_seq: int) -> pb.TruncateRecordsResponse:
    """Drop every record after a seq."""
    return storage.TruncateRecords(pb.TruncateRecordsRequest(session_id=session_id, after_seq=after_seq))


def fork(
    storage: SessionStorageStub,
    source: str,
    child: str = "child",
    *,
    up_to_seq: int | None = None,
    last: int | None = None,
    opening_prompt: str | None = None,
) -> pb.ForkSessionResponse:
    """Fork a session: all of its history, up to a seq, or the last records."""
    request = pb.ForkSessionRequest(source_session_id=source, session_id=child, opening_prompt=opening_prompt)
    if up_to_seq is not None:
        request.up_to_seq = up_to_seq
    elif last is not None:
        request.last = last
    else:
        request.all.SetInParent()
    return storage.ForkSession(request)


def put_insight(storage: SessionStorageStub, session_id: str, content: str) -> pb.Slot:
    """Write the insight of a session."""
    return storage.PutInsight(pb.PutInsightRequest(session_id=session_id, content=content))


def get_insight(storage: SessionStorageStub, session_id: str) -> pb.Slot:
    """Read the insight of a session."""
    return storage.GetInsight(pb.GetInsightRequest(session_id=session_id))


def put_memory(storage: SessionStorageStub, session_id: str, content: str | None) -> pb.Slot:
    """Write the memory of a session."""
    return storage.PutMemory(pb.PutMemoryRequest(session_id=session_id, content=content))


def put_system_prompt(storage: SessionStorageStub, session_id: str, content: str | None) -> pb.Slot:
    """Write the system prompt of a session."""
    return storage.PutSystemPrompt(pb.PutSystemPromptRequest(session_id=session_id, content=content))
