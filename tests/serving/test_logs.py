"""Log lines, as text and as JSON."""

import io
import json
import logging
import threading

import pytest
from grpc import StatusCode

from ramet_server.serving.logs import CallEnd, call_id_var, fields, log_call, logging_to

END = CallEnd("s.S/M", StatusCode.OK, "", 3.14159, "my space", "c1")


def _lines(log_format: str, level: str = "info", end: CallEnd = END) -> list[str]:
    stream = io.StringIO()
    with logging_to(stream, log_format, level):
        log_call(end)
    return stream.getvalue().splitlines()


def test_text_line_quotes_what_could_be_taken_for_two_values() -> None:
    (line,) = _lines("text")
    assert line.endswith(' INFO ramet.call call method=s.S/M code=OK ms=3.1 space="my space" call=c1')


def test_json_line_is_one_object() -> None:
    (line,) = _lines("json")
    values = json.loads(line)
    assert values.pop("time").endswith("Z")
    assert values == {
        "level": "INFO",
        "logger": "ramet.call",
        "message": "call",
        "method": "s.S/M",
        "code": "OK",
        "ms": 3.1,
        "space": "my space",
        "call": "c1",
    }


@pytest.mark.parametrize(
    ("code", "level"),
    [
        (StatusCode.OK, "INFO"),
        (StatusCode.NOT_FOUND, "INFO"),
        (StatusCode.UNAVAILABLE, "WARNING"),
        (StatusCode.RESOURCE_EXHAUSTED, "WARNING"),
        (StatusCode.INTERNAL, "ERROR"),
    ],
)
def test_level_tells_whose_fault_it_is(code: StatusCode, level: str) -> None:
    (line,) = _lines("json", end=CallEnd("s.S/M", code, "R", 1, "s", "c"))
    assert json.loads(line)["level"] == level


def test_calls_below_the_level_are_not_written() -> None:
    assert not _lines("text", "warning")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_error_within_a_call_carries_its_id_and_traceback(log_format: str) -> None:
    stream = io.StringIO()

    def work() -> None:
        call_id_var.set("c7")
        try:
            raise ValueError("the cause")
        except ValueError:
            logging.getLogger("ramet_server.x").exception("It failed", extra=fields(n=1))

    with logging_to(stream, log_format, "info"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    text = stream.getvalue()
    assert "It failed" in text
    assert "ValueError: the cause" in text
    assert "c7" in text
    if log_format == "json":
        values = json.loads(text)
        assert (values["call"], values["n"]) == ("c7", 1)


def test_line_break_in_a_message_or_value_makes_no_second_line() -> None:
    for log_format in ("text", "json"):
        stream = io.StringIO()
        with logging_to(stream, log_format, "info"):
            logging.getLogger("x").info("one\ntwo", extra=fields(a="b\nc"))
        assert len(stream.getvalue().splitlines()) == 1, log_format
