"""Plain chat transcripts, and folders of sessions, become sessions that stand in the forest."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ramet.session.v1 import session_pb2 as s
from ramet_server.archiving import (
    ArchiveError,
    Choices,
    Counts,
    Import,
    KeptIds,
    raw_lines,
    read_folder,
    read_transcripts,
)
from ramet_server.archiving.lines import Line
from ramet_server.domain.limits import Limits
from tests.archiving.world import Home

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"b":1,"a":9007199254740993}'}}
PARTS = [{"type": "text", "text": "see 漢"}, {"type": "image_url", "image_url": {"url": "https://x.example/1"}}]
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": PARTS, "name": "ann"},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None},
    {"role": "tool", "tool_call_id": "c1", "content": "found 👋"},
    {"role": "assistant", "content": "Done.", "annotations": [{"at": 1}]},
]


def bring(home: Home, lines: Iterable[tuple[int, Line]]) -> Counts:
    choices = Choices(KeptIds(), dated=False)
    return Import(home.database, Limits(), home.clock, home.call, choices).run(lines, lambda _: None)[1]


def take(home: Home, text: str) -> Counts:
    return bring(home, read_transcripts(raw_lines(io.BytesIO(text.encode())), datetime.now(UTC)))


def test_messages_become_records(come: Home) -> None:
    take(come, json.dumps({"id": "chat", "title": "Chat", "tags": ["b", "a"], "messages": MESSAGES}))
    session = come.storage.get("chat")
    assert (session.label, list(session.tags), session.turn_count) == ("Chat", ["a", "b"], 1)
    assert come.forest.tree() == ["chat"]
    first, user, called, answer, last = come.storage.listed("chat")
    assert (first.role, first.content) == (s.ROLE_SYSTEM, "Be brief.")
    assert (user.content, json.loads(user.parts_json), user.name) == ("see 漢", PARTS, "ann")
    assert called.tool_calls[0].arguments_json == '{"b":1,"a":9007199254740993}'
    assert (answer.role, answer.tool_call_id, answer.content) == (s.ROLE_TOOL, "c1", "found 👋")
    assert json.loads(last.metadata_json) == {"annotations": [{"at": 1}]}
    # It goes on as any session does, and its tool-call group is whole.
    come.storage.append("chat", "u")
    assert come.storage.context("chat").incomplete_records == 0
    assert come.findings() == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (json.dumps(MESSAGES), 1),
        (json.dumps(MESSAGES, indent=2), 1),
        (json.dumps({"messages": MESSAGES}, indent=1), 1),
        ("\n".join(json.dumps(message) for message in MESSAGES), 1),
        ("\n".join(json.dumps({"messages": MESSAGES[:end]}) for end in (1, 2, 5)) + "\n\n", 3),
        ("\n".join(json.dumps(MESSAGES[:end]) for end in (2, 5)), 2),
    ],
)
def test_each_form_of_a_file_is_read_and_twice_changes_nothing(come: Home, text: str, count: int) -> None:
    assert take(come, text).sessions == count
    assert len(come.session_ids()) == len(come.forest.roots()) == count
    assert take(come, text) == Counts()


def test_what_models_and_older_programs_write_is_taken(come: Home) -> None:
    odd = [
        {"role": "developer", "content": "d", "timestamp": "2026-01-02T03:04:05Z"},
        {"role": "assistant", "function_call": {"name": "look", "arguments": "not json {"}},
        {"role": "function", "name": "look", "content": "x"},
        {"role": "assistant", "toolCalls": [{"id": "n", "name": "go", "input": {"q": 1}}]},
    ]
    take(come, json.dumps({"id": "odd", "messages": odd}))
    first, called, answer, going = come.storage.listed("odd")
    assert first.client_time.ToJsonString() == "2026-01-02T03:04:05Z"
    assert json.loads(called.tool_calls[0].arguments_json) == "not json {"
    assert answer.tool_call_id == called.tool_calls[0].id
    assert (going.tool_calls[0].name, going.tool_calls[0].arguments_json) == ("go", '{"q":1}')
    # The last call has no answer yet; that a fork leaves it out is known.
    assert come.storage.fork("odd", "fork").incomplete_records == 1


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("nonsense", 1, "neither an archive nor JSON"),
        ('{"a": 1}', 1, "neither a list of messages"),
        ('[{"role": "user", "content": "x"}]\n[{"role": "king"}]', 2, "message 1: it has no role"),
        ('[{"role": "user", "content": "x"}]\n[{"ro', 2, "no JSON"),
        ('[{"role": "tool", "content": "x"}]', 1, "tool_call_id is required"),
        ('[{"role": "user", "content": 7}]', 1, "neither a text nor a list"),
        ('[{"role": "user", "content": "\\ud800"}]', 1, "surrogate"),
    ],
)
def test_what_is_no_transcript_is_refused_with_its_line(come: Home, text: str, line: int, reason: str) -> None:
    with pytest.raises(ArchiveError, match=reason) as caught:
        take(come, text)
    assert caught.value.line == line


def write(folder: Path, files: dict[str, object]) -> None:
    folder.mkdir(parents=True)
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Three sessions as the file layout has them."""
    top = tmp_path / "sessions"
    write(
        top / "root",
        {
            "meta.json": {
                "id": "main",
                "label": "Main",
                "status": "active",
                "turnCount": 7,
                "createdAt": 1767323045000,
            },
            "records.jsonl": "\n".join(json.dumps(message) for message in MESSAGES) + "\n",
            "systemPrompt.md": "Be brief.\n",
            "insight": "",
            "config.json": {"systemPrompt": "Frozen.", "skills": []},
        },
    )
    write(
        top / "a-child",
        {
            "meta.json": {
                "id": "kid",
                "label": "Kid",
                "status": "archived",
                "memory": "it knows",
                "metadata": {"a": 1},
            },
            "topology.json": {"parentId": "main", "refs": ["other"], "sourceSessionId": "main", "index": 1, "depth": 1},
            "messages.json": {"messages": MESSAGES[:2]},
        },
    )
    write(top / "other", {"meta.json": {"parentId": "main", "index": 0, "tags": ["x"]}})
    (top / "notes").mkdir()
    return tmp_path


def test_a_folder_of_sessions_becomes_a_forest(come: Home, folders: Path) -> None:
    now = datetime.now(UTC)
    new = bring(come, read_folder(folders, now))
    assert (new.sessions, new.nodes, new.refs, new.records) == (3, 3, 1, 7)
    assert come.forest.tree() == ["main", "other", "kid"]
    main, kid = come.storage.get("main"), come.storage.get("kid")
    assert (main.label, main.turn_count, main.created_at.ToJsonString()) == ("Main", 7, "2026-01-02T03:04:05Z")
    assert (kid.status, kid.metadata_json) == (s.SESSION_STATUS_ARCHIVED, '{"a":1}')
    assert list(come.forest.get("kid").refs) == ["other"]
    assert come.forest.get("kid").source_session_id == "main"
    config = come.forest.config("main")
    assert (config.system_prompt, config.HasField("skills"), list(config.skills.names)) == ("Frozen.", True, [])
    context = come.storage.context("main")
    assert (context.system_prompt.content, context.insight.content) == ("Be brief.\n", "")
    service = come.storage.service
    assert service.GetMemory(s.GetMemoryRequest(session_id="kid"), come.call).content == "it knows"
    assert bring(come, read_folder(folders, now)) == Counts()
    # A single session's folder, too.
    assert bring(come, read_folder(folders / "sessions" / "root", now)) == Counts()
    assert come.findings() == []


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"meta.json": "{"}, "bad: "),
        ({"meta.json": {"status": "asleep"}}, "bad: the status 'asleep' is not known"),
        ({"meta.json": {"parentId": "bad"}}, "lead back to it"),
        ({"meta.json": {"parentId": "nobody"}}, "names no node that came before"),
        ({"meta.json": {}, "records.jsonl": "{"}, "bad: "),
        ({"meta.json": {}, "messages.json": "7"}, "bad: messages.json is no list"),
    ],
)
def test_a_folder_that_cannot_be_read_is_named(
    come: Home, tmp_path: Path, files: dict[str, object], reason: str
) -> None:
    write(tmp_path / "bad", files)
    with pytest.raises(ArchiveError, match=reason):
        bring(come, read_folder(tmp_path, datetime.now(UTC)))


def test_a_folder_without_sessions_is_refused(come: Home, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"no folder with a meta\.json"):
        bring(come, read_folder(tmp_path, datetime.now(UTC)))
