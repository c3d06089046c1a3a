"""Arguments of the wrong kind raise a RametError that names the field, over the whole surface, and send nothing."""

import inspect
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import ramet
from ramet.client import (
    Config,
    Dimension,
    FeedbackValue,
    Metric,
    SelfEvaluation,
    SessionStorageClient,
    SessionTreeClient,
    TelemetryClient,
)
from tests.harness import sqlite
from tests.harness.server import running_server

OWNERS: list[type] = [SessionStorageClient, SessionTreeClient, TelemetryClient, ramet.Orchestrator]

METHODS = [
    pytest.param(owner, name, id=f"{owner.__name__}.{name}")
    for owner in OWNERS
    for name, member in inspect.getmembers(owner, callable)
    if not name.startswith("_") and len(inspect.signature(member).parameters) > 1
]

HALF_A_PAIR = "\ud800"
BAD = [object(), 5, 1.5, HALF_A_PAIR, b"\xff", ["\ud800"], [object()], {"a": 1}, -(10**30), "", True, "no such word"]


async def nothing(_: ramet.Transaction) -> None:
    """Does nothing in a transaction."""


GOOD: dict[str, Any] = {
    "config": Config("Be brief.", ()),
    "created_before": datetime(2026, 2, 1, tzinfo=UTC),
    "created_from": datetime(2026, 1, 1, tzinfo=UTC),
    "evaluation": SelfEvaluation(50),
    "fn": nothing,
    "group_by": [Dimension.DAY],
    "index": 0,
    "keep_last": 1,
    "metrics": [Metric.STEP_COUNT],
    "records": [ramet.Record.user("a")],
    "seq": 1,
    "after_seq": 0,
    "session_ids": ["s"],
    "value": FeedbackValue.USEFUL,
}
"""A good value of each parameter that is required and is not a text; a text is ``s``."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server over SQLite: what is tried here ends before any database, or is tried on each elsewhere."""
    with running_server(sqlite.new_database(tmp_path_factory.mktemp("arguments"))) as at:
        yield at


async def call(client: ramet.Client, owner: type, name: str, arguments: dict[str, Any]) -> None:
    """Calls a method by its class; of what it yields the first item is enough."""
    targets: dict[type, Any] = {
        SessionStorageClient: client.sessions,
        SessionTreeClient: client.tree,
        TelemetryClient: client.telemetry,
    }
    answer = getattr(targets.get(owner) or ramet.Orchestrator(client), name)(**arguments)
    if inspect.isawaitable(answer):
        await answer
    elif isinstance(answer, AsyncIterator):
        async with aclosing(answer):  # type: ignore[type-var]  # all of them are generators
            await anext(answer, None)


def required(method: Any) -> dict[str, Any]:
    """Good values of what a method cannot be called without."""
    return {
        name: GOOD.get(name, "s")
        for name, parameter in inspect.signature(method).parameters.items()
        if parameter.default is parameter.empty and name != "self"
    }


@pytest.mark.parametrize(("owner", "name"), METHODS)
async def test_whatever_is_handed_over_a_method_answers_or_raises_a_ramet_error(
    address: str, owner: type, name: str
) -> None:
    method = getattr(owner, name)
    untyped = []
    async with ramet.connect(address, space="arguments", timeout=0.5) as client:
        for parameter in list(inspect.signature(method).parameters)[1:]:
            for value in BAD:
                try:
                    await call(client, owner, name, required(method) | {parameter: value})
                except ramet.RametError:
                    continue
                except Exception as fault:  # noqa: BLE001 - these are what is looked for
                    untyped.append(f"{parameter}={value!r}: {fault!r}")
    assert untyped == []


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"session_id": 5}, "session_id"),
        ({"session_id": HALF_A_PAIR}, "session_id"),
        ({"records": "abc"}, "records"),
        ({"records": ["abc"]}, "records[0]"),
        ({"records": [ramet.Record.user("a"), ramet.Record.user(HALF_A_PAIR)]}, "records[1].content"),
        ({"records": [ramet.Record("nobody", "a")]}, "records[0].role"),  # type: ignore[arg-type] # an untyped caller
        (
            {"records": [ramet.Record.assistant(tool_calls=[ramet.ToolCall("c", "t", 5)])]},  # type: ignore[arg-type] # likewise
            "records[0].tool_calls[0].arguments_json",
        ),
        ({"records": [ramet.Record(ramet.Role.USER, client_time=datetime(2026, 1, 1))]}, "records[0].client_time"),  # noqa: DTZ001 - that is the point
        ({"turn_delta": 10**30}, "turn_delta"),
        ({"expected_head_seq": "1"}, "expected_head_seq"),
        ({"request_id": 7}, "request_id"),
    ],
)
async def test_the_error_names_the_field(arguments: dict[str, Any], field: str) -> None:
    async with ramet.connect("127.0.0.1:1") as client:
        good: dict[str, Any] = {"session_id": "s", "records": [ramet.Record.user("a")]}
        with pytest.raises(ramet.InvalidArgument) as refused:
            await client.sessions.append_records(**good | arguments)
    assert (refused.value.field, refused.value.reason) == (field, "INVALID_FIELD")
    assert field in str(refused.value)


@pytest.mark.parametrize("space", ["", " a", "a b\n", "räume", "x" * 129, 5, None])
def test_a_space_that_is_no_id_is_refused_before_any_call(space: Any) -> None:
    client = ramet.connect("127.0.0.1:1")
    with pytest.raises(ramet.InvalidArgument) as refused:
        ramet.connect("127.0.0.1:1", space=space)
    assert refused.value.field == "space"
    with pytest.raises(ramet.InvalidArgument):
        client.with_options(space=space or "")
    assert ramet.connect("127.0.0.1:1", space="x" * 128).space == "x" * 128


@pytest.mark.parametrize("timeout", [0, -1, "1", True, float("nan")])
def test_a_timeout_that_is_no_time_is_refused(timeout: Any) -> None:
    with pytest.raises(ramet.InvalidArgument) as refused:
        ramet.connect("127.0.0.1:1", timeout=timeout)
    assert refused.value.field == "timeout"


async def test_an_error_without_a_server_tells_the_address(tmp_path: Path) -> None:
    nobody = f"unix:{tmp_path / 'nobody'}"
    async with ramet.connect(nobody, timeout=0.2) as client:
        with pytest.raises(ramet.DeadlineExceeded, match=f"{nobody} within 0.2 s"):
            await client.sessions.get_session("s")
    async with ramet.connect(session="127.0.0.1:1", tree=nobody) as client:
        with pytest.raises(ramet.Unavailable, match=f"reached at {nobody}"):
            await client.tree.get_node("s")


async def test_a_message_over_the_limit_of_grpc_is_refused_with_the_limit(address: str) -> None:
    async with ramet.connect(address) as client:
        with pytest.raises(ramet.InvalidArgument) as refused:
            await client.sessions.put_memory("s", "x" * (32 * 1024 * 1024))
    assert (refused.value.reason, refused.value.metadata["limit"]) == ("TOO_LARGE", str(32 * 1024 * 1024))


async def test_words_name_choices_and_other_words_are_refused(address: str) -> None:
    async with ramet.connect(address, space="words") as client:
        orchestrator = ramet.Orchestrator(client)
        root = await orchestrator.create_root()
        await orchestrator.create_session(root.id)
        for policy in ("cascde", ramet.SessionStatus.ACTIVE, None):
            with pytest.raises(ramet.InvalidArgument) as refused:
                await orchestrator.delete(root.id, policy)  # type: ignore[arg-type] # what an untyped caller writes
            assert refused.value.field == "policy"
        with pytest.raises(ramet.InvalidArgument):
            await orchestrator.list_digests(status="activ")  # type: ignore[arg-type] # likewise
        assert (await orchestrator.delete(root.id, "cascade")).count == 2  # type: ignore[arg-type] # likewise


async def test_a_rename_of_a_session_without_a_node_changes_nothing(address: str) -> None:
    async with ramet.connect(address, space="alone") as client:
        await client.sessions.put_session("s", label="before")
        with pytest.raises(ramet.NotFound) as refused:
            await ramet.Orchestrator(client).rename("s", "after")
        assert refused.value.reason == "NODE_NOT_FOUND"
        assert (await client.sessions.get_session("s")).label == "before"
