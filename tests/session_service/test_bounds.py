"""What one call may take and give: windows of lists, bytes of pages, sizes of batches, the largest texts."""

import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet_server.domain.errors import InvalidPageToken, TooLarge
from tests.session_service.storage import Storage, statements

MIB = 1024 * 1024


def test_a_list_looks_at_a_thousand_entries_and_goes_on(storage: Storage) -> None:
    for number in range(1010):
        storage.service.PutSession(
            pb.PutSessionRequest(session=pb.Session(id=f"s-{number:04}", label="last" if number > 1004 else "")),
            storage.call,
        )
    request = pb.ListSessionsRequest(filter=pb.SessionFilter(label_prefix="last"), page_size=3)
    pages = []
    while True:
        with statements(storage.database) as seen:
            page = storage.service.ListSessions(request, storage.call)
        assert len(seen) <= 3
        pages.append([session.id for session in page.sessions])
        request.page_token = page.next_page_token
        if not page.next_page_token:
            break
    assert pages == [[], ["s-1005", "s-1006", "s-1007"], ["s-1008", "s-1009"]]


def test_a_page_of_sessions_ends_where_its_metadata_grows_too_large(storage: Storage) -> None:
    small = storage.with_limits(max_page_bytes=1000)
    for number in range(5):
        storage.put(f"s{number}", metadata_json='"' + "x" * 400 + '"')
    found, request, sizes = [], pb.ListSessionsRequest(), []
    while True:
        page = small.service.ListSessions(request, small.call)
        found += [session.id for session in page.sessions]
        sizes.append(len(page.sessions))
        request.page_token = page.next_page_token
        if not page.next_page_token:
            break
    assert found == [f"s{number}" for number in range(5)]
    assert max(sizes) == 3


def test_a_batch_of_sessions_that_no_reply_can_hold_is_refused(storage: Storage) -> None:
    ids = [f"s{number}" for number in range(18)]
    for session_id in ids:
        storage.put(session_id, metadata_json='"' + "x" * (MIB - 2) + '"')
    assert (
        len(storage.service.BatchGetSessions(pb.BatchGetSessionsRequest(session_ids=ids[:16]), storage.call).sessions)
        == 16
    )
    with pytest.raises(TooLarge) as refused:
        storage.service.BatchGetSessions(pb.BatchGetSessionsRequest(session_ids=ids), storage.call)
    assert refused.value.details["limit"] == str(16 * MIB)


@pytest.mark.parametrize("order", [pb.RECORD_ORDER_ASCENDING, pb.RECORD_ORDER_DESCENDING])
def test_pages_of_records_end_at_the_page_bytes_and_hold_one_at_least(storage: Storage, order: int) -> None:
    small = storage.with_limits(max_page_bytes=100)
    storage.put("main")
    texts = ["x" * size for size in (60, 40, 1, 300, 10, 90, 1)]
    for text in texts:
        storage.append_all("main", [pb.Record(role=pb.ROLE_USER, content=text)])
    pages, token = [], ""
    while True:
        page = small.page("main", order=order, page_token=token)
        pages.append([len(record.content) for record in page.records])
        token = page.next_page_token
        if not token:
            break
    expected = [[60, 40], [1], [300], [10, 90], [1]]
    if order == pb.RECORD_ORDER_DESCENDING:
        expected = [[1, 90], [10], [300], [1, 40], [60]]
    assert pages == expected


def test_large_records_are_sized_before_they_are_read(storage: Storage) -> None:
    storage.put("main")
    for _ in range(3):
        storage.append_all("main", [pb.Record(role=pb.ROLE_USER, content="x" * 3 * MIB)])
    storage.append("main", "u t(x) u")
    page = storage.page("main")
    assert [len(record.content) for record in page.records] == [3 * MIB]
    assert storage.seqs("main") == [1, 2, 3, 4, 5, 6]
    assert storage.seqs("main", roles=[pb.ROLE_USER], order=pb.RECORD_ORDER_DESCENDING) == [6, 4, 3, 2, 1]
    assert len(storage.context("main").records) == 5


@pytest.mark.parametrize("character", ["\\", "'", "\n", "é", "🌱", "\x01", '"'])
def test_the_largest_record_and_slot_of_the_hardest_characters_come_back(storage: Storage, character: str) -> None:
    storage.put("main")
    text = character * (4 * MIB // len(character.encode()))
    storage.append_all("main", [pb.Record(role=pb.ROLE_USER, content=text)] * 4)
    storage.put_insight("main", text)
    assert storage.insight("main").content == text
    assert [record.content == text for record in storage.listed("main")] == [True] * 4
    context = storage.context("main")
    assert [record.content == text for record in context.records] == [True] * 4
    with pytest.raises(TooLarge):
        storage.put_insight("main", text + "x")
    with pytest.raises(TooLarge) as refused:
        storage.append_all("main", [pb.Record(role=pb.ROLE_USER, content=text, name="x")])
    assert refused.value.details == {"limit": str(4 * MIB), "unit": "bytes"}
    assert refused.value.field == "records[0]"


def test_slots_of_many_come_in_messages_of_bounded_size(storage: Storage) -> None:
    small = storage.with_limits(max_page_bytes=1000)
    ids = [f"s{number}" for number in range(10)]
    for session_id in ids:
        storage.put(session_id)
        storage.put_insight(session_id, "x" * 400)
    request = pb.BatchGetSlotsRequest(session_ids=[*ids, "gone", *ids])
    replies = list(small.service.BatchGetSlots(request, small.call))
    assert [len(reply.sessions) for reply in replies] == [2, 2, 2, 2, 2]
    assert [slots.session_id for reply in replies for slots in reply.sessions] == ids
    assert [name for reply in replies for name in reply.missing_session_ids] == ["gone"]
    assert not replies[0].sessions[0].HasField("system_prompt")
    assert replies[0].sessions[0].memory == pb.Slot()


def test_a_context_of_the_largest_text_leaves_older_records_out(storage: Storage) -> None:
    storage.put("main")
    for _ in range(5):
        storage.append_all("main", [pb.Record(role=pb.ROLE_USER, content="x" * 4 * MIB)])
    context = storage.context("main")
    assert [record.seq for record in context.records] == [2, 3, 4, 5]
    assert context.older_left_out


def test_a_page_token_of_an_earlier_incarnation_is_refused(storage: Storage) -> None:
    storage.put("main", "u u u")
    token = storage.page("main", page_size=1).next_page_token
    storage.delete("main")
    storage.put("main", "u u u")
    with pytest.raises(InvalidPageToken):
        storage.page("main", page_size=1, page_token=token)


def test_a_thousand_tiny_records_at_the_end_of_a_chain_are_read_whole(storage: Storage) -> None:
    storage.put("n0", "u")
    for depth in range(1, 150):
        storage.fork(f"n{depth - 1}", f"n{depth}")
        storage.append(f"n{depth}", "u")
    assert storage.seqs("n149") == list(range(1, 151))
    assert storage.seqs("n149", page_size=100, offset=75, order=pb.RECORD_ORDER_DESCENDING) == list(range(75, 0, -1))
    assert storage.seqs("n149", roles=[pb.ROLE_USER], offset=140) == list(range(141, 151))
    assert storage.seqs("n149", roles=[pb.ROLE_TOOL]) == []
    assert storage.trim("n149", 10).kept_records == 10
    assert storage.seqs("n149") == list(range(141, 151))
    assert storage.seqs("n148") == list(range(1, 150))
