"""What must not leave does not, wherever it stands."""

from __future__ import annotations

import json

import pytest

from ramet.session.v1 import session_pb2 as s
from ramet.tree.v1 import tree_pb2 as tr
from ramet_server.archiving import BadRedaction, load_redaction
from ramet_server.archiving.redacting import _COLUMNS, _PATHS
from tests.archiving.world import Home, lines_of
from tests.telemetry import events as e

SECRET = "sk-12345 geheim漢"


def hide(kind: str, path: str, text: str) -> str:
    """Takes the secret out; what gets here is told apart by kind and path."""
    assert kind
    assert path
    return text.replace(SECRET, "…")


def fill(home: Home) -> None:
    """Puts the secret everywhere where a text or JSON may stand."""
    told = json.dumps({"k": SECRET}, ensure_ascii=False)
    home.forest.create(
        "main", label=SECRET, config=tr.Config(system_prompt=SECRET, skills=tr.Skills(names=[SECRET, "read"]))
    )
    home.storage.put("main", label=SECRET, tags=[SECRET, "x"], metadata_json=told, system_prompt=SECRET)
    home.storage.put_insight("main", SECRET)
    home.storage.service.PutMemory(s.PutMemoryRequest(session_id="main", content=SECRET), home.call)
    call = s.ToolCall(id="c", name=SECRET, arguments_json=told)
    home.storage.append_all(
        "main",
        [
            s.Record(role=s.ROLE_USER, content=SECRET, parts_json=told, name=SECRET, metadata_json=told),
            s.Record(role=s.ROLE_ASSISTANT, content=SECRET, tool_calls=[call]),
        ],
    )
    home.told.told(
        e.started("a", 1, "d", query=SECRET, agent_flow=SECRET, conversation_id="main"),
        e.step_completed(
            "b", "s", 2, "d", agent_name=SECRET, thought=SECRET, model=SECRET, provider=SECRET, error_message=SECRET,
            model_input_json=told, model_output_json=told, status=e.FAILED,
        ),
        e.tool("c", "t", 2, "d", tool_name=SECRET, input_params_json=told, output_preview=SECRET, error_message=SECRET),
        e.evaluation("f", 3, "d", reasoning=SECRET),
        e.feedback("g", e.USEFUL, 4, "d", comment=SECRET),
        e.completed("h", 5, "d", status=e.FAILED, error_message=SECRET),
    )  # fmt: skip


def test_no_secret_is_left_in_the_file(left: Home, come: Home) -> None:
    fill(left)
    plain = left.export().decode()
    reached: set[tuple[str, str]] = set()

    def redact(kind: str, path: str, text: str) -> str:
        reached.add((kind, path))
        return hide(kind, path, text)

    archive = left.export(redaction=redact)
    assert plain.count(SECRET) > 20
    assert SECRET not in archive.decode()
    assert (lines_of(archive)[0]["redacted"], lines_of(plain.encode())[0]["redacted"]) == (True, False)
    # The space had a secret in each place that the function is for, but one that no event fills.
    every = {(kind, path) for kind, paths in _PATHS.items() for path in paths}
    every |= {
        (kind, name)
        for kind, fields in _COLUMNS.items()
        for name, field in fields.items()
        if field.holds in ("text", "json")
    }
    assert every - reached == {("tool", "retrieval_details")}
    # What is left is an archive like any other.
    come.take(archive)
    assert come.storage.listed("main")[0].content == "…"
    assert come.export(redaction=redact).split(b"\n")[1:] == archive.split(b"\n")[1:]
    assert come.findings() == []


def test_tags_that_become_one_stay_a_set(left: Home) -> None:
    left.storage.put("main", tags=["a", "b", "c"])
    archive = left.export(redaction=lambda _kind, path, text: "x" if path == "tags.*" and text != "c" else text)
    assert lines_of(archive)[1]["tags"] == ["c", "x"]


def test_a_redaction_that_breaks_json_ends_the_export(left: Home) -> None:
    left.storage.put("main", metadata_json='{"a":1}')
    with pytest.raises(BadRedaction, match="session: metadata_json is not JSON"):
        left.export(redaction=lambda _kind, _path, _text: "{")
    with pytest.raises(BadRedaction, match=r"session\.metadata_json made no text"):
        left.export(redaction=lambda _kind, _path, _text: None)  # type: ignore[arg-type,return-value]  # as a careless one


@pytest.mark.parametrize(
    "name", ["nowhere.at.all:f", "tests.archiving.test_redaction:nothing", "json", "json:__name__"]
)
def test_a_redaction_that_is_no_function_is_refused(name: str) -> None:
    with pytest.raises(BadRedaction):
        load_redaction(name)


def test_a_redaction_is_found_by_its_name() -> None:
    assert load_redaction("tests.archiving.test_redaction:hide")("record", "content", SECRET) == "…"
