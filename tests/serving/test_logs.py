"""Log lines, as text and as JSON."""

import io
import json
import logging
import select
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


def test_worker_stands_in_each_line() -> None:
    stream = io.StringIO()
    with logging_to(stream, "json", "info", {"worker": 2}):
        log_call(END)
        logging.getLogger("ramet_server.test").info("ready")
    assert [json.loads(line)["worker"] for line in stream.getvalue().splitlines()] == [2, 2]


def test_lines_are_written_whole_in_pieces_that_a_pipe_takes_at_once() -> None:
    pieces: list[str] = []

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            pieces.append(text)
            return len(text)

    with logging_to(Stream(), "json", "info"):
        for number in range(100):
            logging.getLogger("ramet_server.test").info("%d %s", number, "é" * 50)
    assert all(piece.endswith("}\n") and len(piece.encode()) <= select.PIPE_BUF for piece in pieces)
    lines = [json.loads(line)["message"] for piece in pieces for line in piece.splitlines()]
    assert [line.split()[0] for line in lines] == [str(number) for number in range(100)]
    assert len(pieces) < 20
