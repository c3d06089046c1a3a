"""Whatever JSON an event may hold, the databases' JSON columns hold it too: else one event would stop its stream."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ramet_server.domain.ids import new_id
from tests.telemetry import events as e
from tests.telemetry.world import World

_leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
_values = st.recursive(
    _leaves | _texts, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4)
)

ODD = [
    "0",
    "-0",
    "-0.0e-0",
    "1E+2",
    "1e308",
    "4.9e-324",
    "1e-400",
    "9" * 300,
    "-" + "9" * 300,
    "0." + "1" * 4000,
    "18446744073709551616",
    "null",
    "true",
    '""',
    '"\\/\\b\\f\\n\\r\\t\\"\\\\"',
    '"\\u00e9\\uD83D\\uDE00\\u0001"',
    '"\U0001f600\u2028\ufeff\u007f"',
    " \t\r\n[ 1 , 2 ] \n",
    '{"": {"": ""}}',
    '{"a": 1, "a": 2}',
    '{"' + "k" * 60_000 + '": 1}',
    "[" * 31 + "]" * 31,
    '{"a":' * 31 + "1" + "}" * 31,
    '[{"a":' * 15 + "[1]" + "}]" * 15,
    "[" + ",".join("[]" for _ in range(20_000)) + "]",
]


def _same(told: str, kept: str) -> bool:
    # Numbers that no double holds are all the database's own to round.
    return bool(json.loads(told, parse_int=float) == json.loads(kept, parse_int=float))


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_odd_json_is_kept(world: World, text: str) -> None:
    world.told(
        e.step_completed("e1", "a", model_input_json=text, model_output_json=text),
        e.tool("e2", "t", input_params_json=text),
    )
    (step,), (tool,) = world.steps(), world.tools()
    for kept in (step["model_input"], step["model_output"], tool["input_params"]):
        assert _same(text, kept)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(_values, min_size=1, max_size=30), ascii_only=st.booleans())
def test_any_json_is_kept(world: World, values: list[Any], ascii_only: bool) -> None:
    space = world.elsewhere(f"json-{new_id()}")
    texts = [json.dumps(value, ensure_ascii=ascii_only) for value in values]
    reply = space.tell(
        *(e.step_completed(f"e{n}", f"s{n}", step_index=n, model_output_json=text) for n, text in enumerate(texts))
    )
    # What is refused is refused by a rule of ours, by its field.
    refused = {int(refusal.event_id[1:]) for refusal in reply.refusals}
    assert {refusal.reason for refusal in reply.refusals} <= {"INVALID_FIELD"}
    kept = {row["step_index"]: row["model_output"] for row in space.steps()}
    assert kept.keys() == set(range(len(texts))) - refused
    assert all(_same(texts[place], text) for place, text in kept.items())
