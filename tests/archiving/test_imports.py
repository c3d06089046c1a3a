"""Imports that are repeated, stopped, cut, or that meet something else; and ids that change."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import delete, update

from ramet.tree.v1 import tree_pb2 as tr
from ramet_server.archiving import ArchiveError, Counts, NewIds, Scope, ScopeKind
from ramet_server.database.tables.session import record, session
from tests.archiving.world import Chance, Home, lines_of, without_header
from tests.telemetry import events as e


def small(home: Home) -> bytes:
    """A forest that has each kind of line, as an archive."""
    home.forest.grow(": main far", "main: child")
    home.forest.add_ref("far", "child")
    home.storage.put("main", "u a(x) t(x) u", tags=["t"])
    home.storage.fork("main", "child", last=2)
    home.storage.append("child", "a u")
    home.storage.put_insight("child", "see")
    # Its records outlive it.
    home.storage.put("gone", "s u")
    home.storage.fork("gone", "heir")
    home.storage.delete("gone")
    home.told.tell(
        e.started("a", 1, "d", query="why", conversation_id="main"),
        *e.steps(2, "d"),
        e.tool("b", "t", 2, "d", step_key="s0", input_params_json="{}"),
        e.feedback("c", e.USEFUL, 3, "d"),
    )
    return home.export()


def test_the_same_archive_twice_changes_nothing(left: Home, come: Home) -> None:
    Chance(left, 11).fill(80)
    archive = left.export()
    come.take(archive)
    before = come.everything(), [come.rows(table) for table in ("record", "history_span", "released_span")]
    assert come.take(archive) == Counts()
    assert (come.everything(), [come.rows(table) for table in ("record", "history_span", "released_span")]) == before


def test_where_it_came_from_an_archive_changes_nothing(left: Home) -> None:
    archive = small(left)
    assert left.take(archive) == Counts()
    assert left.export() == archive


def test_a_cut_archive_is_refused_at_its_line_and_the_whole_one_goes_on(left: Home, come: Home) -> None:
    archive = small(left)
    lines = archive.splitlines(keepends=True)
    whole = left.everything()
    for number in range(len(lines)):
        for cut, line in (("", number + 1), (lines[number][: len(lines[number]) // 2].decode(errors="ignore"), None)):
            with pytest.raises(ArchiveError) as caught:
                come.take(b"".join(lines[:number]) + cut.encode(), resume=True)
            assert caught.value.line == (line or number + 1)
        # What is seen is whole, at any moment.
        for name, shown in come.everything().items():
            if not name.startswith("node"):
                assert shown == whole[name]
    assert come.findings() == []
    come.take(archive, resume=True)
    assert come.everything() == whole
    assert come.rows("arriving_session") == 0


@pytest.mark.parametrize("resume", [True, False])
def test_an_import_that_was_stopped_leaves_nothing_over(left: Home, come: Home, resume: bool) -> None:
    left.storage.put("main")
    for _ in range(3):
        left.storage.append("main", " ".join(["u"] * 500))
    left.storage.fork("main", "child")
    archive = left.export()
    before = come.rows("record")
    lines = archive.splitlines(keepends=True)
    with pytest.raises(ArchiveError):
        come.take(b"".join(lines[:1200]))
    assert come.session_ids() == []
    # Those that came wait, unseen.
    assert come.rows("record") == before + 1000
    come.sweep()
    assert come.findings() == []
    come.take(archive, resume=resume)
    assert come.everything() == left.everything()
    come.sweep()
    assert come.rows("record") == before + 1500


def test_what_no_import_goes_on_with_is_swept_after_a_while(left: Home, come: Home) -> None:
    left.storage.put("main", "u a u")
    # What other tests have left in the database goes first, because a sweep takes that along.
    come.later(days=8)
    come.sweep()
    before = come.rows("record")
    lines = left.export().splitlines(keepends=True)
    with pytest.raises(ArchiveError):
        come.take(b"".join(lines[:4]) + b"{}\n")
    come.sweep()
    assert come.rows("arriving_session") == 1
    come.later(days=8)
    come.sweep()
    assert (come.rows("arriving_session"), come.rows("record")) == (0, before)
    assert come.findings() == []


def test_two_that_bring_one_session_do_not_mix(left: Home, come: Home) -> None:
    left.storage.put("main", "u " * 600)
    lines = left.export().splitlines(keepends=True)
    archive = b"".join(lines)

    def interrupt(number: int) -> None:
        if number == 550:
            come.take(archive)

    with pytest.raises(ArchiveError, match="taken this session over"):
        come.take(archive, before_line=interrupt)
    assert come.storage.said("main") == left.storage.said("main")
    come.sweep()
    assert come.findings() == []


def test_records_that_are_dropped_before_a_fork_of_them_has_come_are_missed(left: Home, come: Home) -> None:
    left.storage.put("main", "u a u")
    # With its line the session before it is whole, and others may change it.
    left.storage.put("between", "u")
    left.storage.fork("main", "child")
    archive = left.export()
    line_of_child = [line.get("id") for line in lines_of(archive)].index("child") + 1

    def trim(number: int) -> None:
        if number == line_of_child:
            come.storage.trim("main", 0)

    with pytest.raises(ArchiveError, match="dropped meanwhile") as caught:
        come.take(archive, before_line=trim)
    assert caught.value.line == line_of_child
    assert come.session_ids() == ["between", "main"]
    assert come.findings() == []


def test_no_record_comes_to_stand_where_a_session_will_write(left: Home) -> None:
    left.forest.grow(": main top", "top: early late")
    left.storage.put("main", "u a u")
    left.storage.fork("main", "early", up_to_seq=1)
    left.storage.fork("main", "late")
    # Neither the session that wrote them nor what it wrote later is told by name.
    archive = left.export(Scope(ScopeKind.SUBTREE, "top"))
    left.storage.delete("late")
    origin = left.storage.origin("main")
    rewritten = update(session).where(session.c.origin == origin).values(head_seq=1)
    lost = delete(record).where(record.c.origin == origin, record.c.seq > 1)
    # As from a backup that is older than the archive.
    left.database.write(left.call, lambda connection: (connection.execute(rewritten), connection.execute(lost)))
    with pytest.raises(ArchiveError, match="has not written here"):
        left.take(archive)
    left.storage.append("main", "a u")
    assert left.storage.said("main") == "u a u"


def test_the_same_id_with_other_content_is_refused_with_its_line(left: Home, come: Home) -> None:
    archive = small(left)
    kinds = [line.get("kind") for line in lines_of(archive)]
    come.storage.put("child", "u")
    with pytest.raises(ArchiveError, match="a session with this id is there, with another") as caught:
        come.take(archive)
    assert lines_of(archive)[caught.value.line - 1]["id"] == "child"
    come.storage.delete("child")
    come.forest.create("far", label="mine")
    with pytest.raises(ArchiveError, match="a node with this id is there, with another label") as caught:
        come.take(archive)
    assert lines_of(archive)[caught.value.line - 1]["id"] == "far"
    come.forest.delete("far")
    come.told.tell(e.started("z", 1, "d", query="other"))
    with pytest.raises(ArchiveError, match="a diagnosis with this id is there, with another") as caught:
        come.take(archive)
    assert caught.value.line == kinds.index("diagnosis") + 1
    # What came before stays.
    assert come.session_ids() == ["child", "heir", "main"]


def test_a_record_that_differs_is_refused_with_its_line(left: Home, come: Home) -> None:
    archive = small(left)
    come.take(archive)
    changed = archive.replace(
        b'"seq":2,"role":"ASSISTANT","content":"a(x)"', b'"seq":2,"role":"ASSISTANT","content":"b"'
    )
    assert changed != archive
    with pytest.raises(ArchiveError, match="record 2 is there, with another content") as caught:
        come.take(changed)
    assert lines_of(archive)[caught.value.line - 1]["seq"] == 2


def test_a_session_that_was_deleted_comes_back_whole(left: Home, come: Home) -> None:
    archive = small(left)
    come.take(archive)
    come.storage.append("main", "a")
    come.storage.fork("main", "late")
    come.storage.delete("main")
    come.take(archive)
    # The old records live on in the fork, and never meet those that came back.
    come.storage.append("main", "u a")
    come.sweep()
    assert come.storage.said("main") == "u a(x) t(x) u u a"
    assert come.storage.said("late") == "u a(x) t(x) u a"
    assert come.findings() == []
    # The sweep does not take the diagnosis from the session that is there again.
    assert come.told.diagnosis()["conversation_id"] == "main"


def test_new_ids_reach_every_place(left: Home, come: Home, tmp_path: Path) -> None:
    archive = small(left)
    ids = NewIds(tmp_path / "ids.jsonl")
    come.take(archive, ids=ids)
    ids.close()
    told = [json.loads(line) for line in (tmp_path / "ids.jsonl").read_text().splitlines()]
    back = {each["to"]: each["from"] for each in told}
    assert sorted(back.values()) == sorted(["main", "child", "heir", "far", "d"])
    shown = json.dumps(come.everything())
    for old in ("main", "child", "far", "heir"):
        assert f'\\"{old}\\"' not in shown
    text = b"\n".join(without_header(come.export())).decode()
    for new, old in back.items():
        text = text.replace(new, old)
    # Refs are in the order of ids, and there is one line of them here.
    assert text.encode().split(b"\n") == list(without_header(archive))
    assert come.findings() == []


def test_new_ids_go_on_with_their_map(left: Home, come: Home, tmp_path: Path) -> None:
    archive = small(left)
    lines = archive.splitlines(keepends=True)
    file = tmp_path / "ids.jsonl"

    def take(some: bytes, *, resume: bool = False) -> Counts:
        with closing(NewIds(file)) as ids:
            return come.take(some, ids=ids, resume=resume)

    with pytest.raises(ArchiveError):
        take(b"".join(lines[:9]))
    with file.open("ab") as cut:
        cut.write(b'{"kind": "session", "from": "ma')
    take(archive, resume=True)
    assert take(archive) == Counts()
    assert (len(come.session_ids()), len(come.forest.entries())) == (3, 3)


def test_a_copy_beside_its_original_shares_nothing_with_it(left: Home) -> None:
    archive = small(left)
    said = sorted(map(left.storage.said, left.session_ids()))
    left.take(archive, ids=NewIds())
    assert len(left.session_ids()) == 6
    assert len(left.forest.roots()) == 4
    left.storage.append("main", "a")
    left.forest.delete("main", tr.DELETE_POLICY_CASCADE)
    for session_id in ("main", "child", "heir"):
        left.storage.delete(session_id)
    left.sweep()
    assert left.findings() == []
    assert sorted(map(left.storage.said, left.session_ids())) == said


@pytest.mark.parametrize(
    ("change", "line", "reason"),
    [
        (lambda lines: [b'{"ramet_archive":2,"new":"thing","space":"x"}\n', *lines[1:]], 1, "newer version 2"),
        (lambda lines: [b"{}\n", *lines[1:]], 1, "not the first line"),
        (lambda lines: [lines[0], b'{"kind":"wonder"}\n', *lines[1:]], 2, "'wonder' is not known"),
        (lambda lines: [lines[0], b"[]\n", *lines[1:]], 2, "no JSON object"),
        (lambda lines: [lines[0], b"\xff\n", *lines[1:]], 2, "no JSON"),
        (lambda lines: [lines[0], *lines[2:]], 2, "behind the session"),
        (lambda lines: [*lines[:2], *lines[3:]], 3, "record 1 of session main is expected"),
        (lambda lines: [*lines[:3], lines[2], *lines[3:]], 4, "record 2 of session main is expected"),
        (lambda lines: [*lines, lines[1]], 23, "behind the end"),
        (lambda lines: [*lines[:-2], lines[-1]], 21, "ends an archive of 21 lines, but 20 came"),
        (lambda lines: [lines[0], lines[1].replace(b'"version":1', b'"version":0'), *lines[2:]], 2, "version"),
        (lambda lines: [lines[0], lines[1].replace(b'"label":""', b'"label":7'), *lines[2:]], 2, "label"),
        (lambda lines: [lines[0], lines[1].replace(b'"first":1', b'"first":0'), *lines[2:]], 2, "spans ascend"),
        (lambda lines: [lines[0], lines[1].replace(b'"broken":[]', b'"broken":[[1,99]]'), *lines[2:]], 2, "broken"),
        (lambda lines: [lines[0], lines[1].replace(b'"id"', b'"wonder":1,"id"'), *lines[2:]], 2, "wonder is not known"),
        (lambda lines: [*lines[:2], lines[2].replace(b'"USER"', b'"GOD"'), *lines[3:]], 3, "role"),
        (lambda lines: [*lines[:2], lines[2].replace(b'"content":"u"', b'"content":"\\u0000"'), *lines[3:]], 3, "NUL"),
    ],
)
def test_a_wrong_line_is_refused_by_its_number(left: Home, come: Home, change: object, line: int, reason: str) -> None:
    lines = small(left).splitlines(keepends=True)
    assert callable(change)
    changed = b"".join(change(lines))
    with pytest.raises(ArchiveError, match=reason) as caught:
        come.take(changed)
    assert caught.value.line == line
