"""Summaries of what models are told and say."""

from __future__ import annotations

import json

from ramet.recorder.summaries import input_json, limited, output_json, short
from ramet.recorder.texts import Texts

TEXTS = Texts(None)


def told(messages: object) -> str:
    """Summarizes a model's input."""
    return input_json(TEXTS.messages(messages))


def test_a_long_content_is_cut_and_marked() -> None:
    (message,) = json.loads(told([{"role": "user", "content": "ä" * 501}]))
    assert message == {"role": "user", "content": "ä" * 500, "truncated": True, "length": 501}
    (message,) = json.loads(told([{"role": "user", "content": "ä" * 500}]))
    assert message == {"role": "user", "content": "ä" * 500}


def test_a_long_conversation_keeps_the_first_and_the_last_and_tells_what_is_left_out() -> None:
    messages = [{"role": "user", "content": str(number)} for number in range(100)]
    summary = json.loads(told(messages))
    assert [each.get("content") for each in summary[:3]] == ["0", None, "69"]
    assert summary[1] == {"omitted": 68}
    assert len(summary) == 33


def test_the_worst_text_stays_within_what_a_server_takes() -> None:
    worst = [{"role": "user", "content": "\x01" * 10_000}] * 50
    for summary in (
        told(worst),
        output_json(
            TEXTS.text("\x01" * 10_000, "model_output"),
            TEXTS.calls([{"name": "f", "args": {"a": "\x01" * 9000}}] * 50),
            50,
        ),
    ):
        assert len(summary.encode()) <= 65_536
        json.loads(summary)


def test_parts_and_objects_become_texts() -> None:
    content = [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": "data:"}]
    assert json.loads(told([{"role": "user", "content": content}])) == [{"role": "user", "content": "hi\n[image_url]"}]
    assert json.loads(told("why")) == [{"role": "user", "content": "why"}]


def test_texts_that_are_too_large_are_cut_at_a_character_and_marked() -> None:
    cut = limited(TEXTS.limited("ä" * 40_000, "query"))
    assert cut.endswith("…[cut]")
    assert len(cut.encode()) <= 65_536
    assert len(short(TEXTS.error("x" * 5000))) == 4096
