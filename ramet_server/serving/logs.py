"""Logs: one line for each call, as text or JSON, without content and without peers.

Lines are written by a thread of their own, so that a slow terminal never holds up the event loop.
"""

import json
import logging
import logging.handlers
import queue
import re
import select
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple, TextIO

from grpc import StatusCode

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")

call_id_var: ContextVar[str] = ContextVar("ramet_call_id", default="")
"""Id of the call that the running code works for; worker threads see it too."""

_FIELDS = "ramet_fields"
_CALL = "call"
_calls = logging.getLogger("ramet.call")

_GATHER_S = 0.02

_PIECE_BYTES = select.PIPE_BUF

_FAULTS = {StatusCode.INTERNAL, StatusCode.UNKNOWN, StatusCode.DATA_LOSS}
_TROUBLES = {StatusCode.UNAVAILABLE, StatusCode.RESOURCE_EXHAUSTED}


class CallEnd(NamedTuple):
    """How one call ended."""

    method: str
    """Service and method, as in ``ramet.session.v1.SessionStorage/GetSession``."""
    code: StatusCode
    reason: str
    """Reason of the error; empty for a success."""
    duration_ms: float
    space: str
    call_id: str


class _CallLine(NamedTuple):
    """The line of a call before it is written: making a log record of it cost 15 us of the loop's time, this 2."""

    created: float
    level: int
    end: CallEnd

    def fields(self) -> dict[str, Any]:
        end = self.end
        fields: dict[str, Any] = {"method": end.method, "code": end.code.name}
        if end.reason:
            fields["reason"] = end.reason
        return fields | {"ms": round(end.duration_ms, 1), "space": end.space, "call": end.call_id}


_hand_over: Callable[[_CallLine], None] | None = None
"""Takes the lines of calls while the logs of this process go to a stream of ours."""


def log_call(end: CallEnd) -> None:
    """Writes the line of a call; faults of the server as errors, overload and outage as warnings."""
    level = logging.INFO
    if end.code in _FAULTS:
        level = logging.ERROR
    elif end.code in _TROUBLES:
        level = logging.WARNING
    if not _calls.isEnabledFor(level):
        return
    line = _CallLine(time.time(), level, end)
    if _hand_over is not None:
        _hand_over(line)
    else:
        _calls.log(level, _CALL, extra={_FIELDS: line.fields()})


def fields(**values: Any) -> dict[str, Any]:
    """Returns the ``extra`` of a log call whose values stand beside its message."""
    return {_FIELDS: values}


@contextmanager
def logging_to(
    stream: TextIO | None, log_format: str, level: str, beside: Mapping[str, Any] | None = None
) -> Iterator[None]:
    """Sends the logs of this process to a stream (standard error by default) until the block ends.

    The values ``beside`` stand in each line.
    """
    global _hand_over  # noqa: PLW0603 - logs belong to the process, as Python's own do
    writer = _Writer(stream or sys.stderr, _json_line if log_format == "json" else _text_line, beside or {})
    source = _Source(writer.lines)
    root = logging.getLogger()
    before = root.level, _hand_over
    root.addHandler(source)
    root.setLevel(level.upper())
    _hand_over = writer.lines.put
    # It tells of every look at the schema's revision; our own line says what was done.
    logging.getLogger("alembic").setLevel(max(logging.WARNING, root.level))
    writer.start()
    try:
        yield
    finally:
        root.removeHandler(source)
        root.setLevel(before[0])
        _hand_over = before[1]
        writer.stop()


class _Line(NamedTuple):
    """What a line tells, in whatever form."""

    created: float
    level: str
    logger: str
    message: str
    fields: Mapping[str, Any]
    exception: str = ""


class _Writer:
    """A thread that formats and writes what has gathered, many lines at once where there are many."""

    def __init__(self, stream: TextIO, form: Callable[[_Line], str], beside: Mapping[str, Any]) -> None:
        self.lines: queue.SimpleQueue[logging.LogRecord | _CallLine | None] = queue.SimpleQueue()
        self._stream = stream
        self._form = form
        self._beside = beside
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ramet-logs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Writes what is left and ends."""
        self._stopping.set()
        self.lines.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            records = [self.lines.get()]
            # Waking up for each single line would cost the calls more than the lines themselves.
            self._stopping.wait(_GATHER_S)
            while not self.lines.empty():
                records.append(self.lines.get())
            lines = [self._form(_line(record, self._beside)) + "\n" for record in records if record is not None]
            # A reader that went away, as in a closed pipe, must not end the logs of a server that goes on.
            with suppress(OSError, ValueError):
                for text in _pieces(lines):
                    self._stream.write(text)
                    self._stream.flush()
            if None in records:
                return


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    """Puts lines together as far as a pipe takes them in one piece, so that those of several workers stay whole."""
    piece, size = "", 0
    for line in lines:
        length = len(line.encode(errors="replace"))
        if piece and size + length > _PIECE_BYTES:
            yield piece
            piece, size = "", 0
        piece, size = piece + line, size + length
    if piece:
        yield piece


class _Source(logging.handlers.QueueHandler):
    """Hands records over with all that belongs to the thread they were made in."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        record.message = record.getMessage()
        values: dict[str, Any] = dict(getattr(record, _FIELDS, {}))
        call_id = call_id_var.get()
        if call_id and "call" not in values:
            values["call"] = call_id
        setattr(record, _FIELDS, values)
        if record.exc_info and record.exc_info[1] is not None:
            record.exc_text = "".join(traceback.format_exception(record.exc_info[1])).rstrip()
        record.exc_info = None
        return record


def _line(record: logging.LogRecord | _CallLine, beside: Mapping[str, Any]) -> _Line:
    if isinstance(record, _CallLine):
        level = logging.getLevelName(record.level)
        return _Line(record.created, level, _calls.name, _CALL, {**beside, **record.fields()})
    values: dict[str, Any] = {**beside, **getattr(record, _FIELDS, {})}
    return _Line(record.created, record.levelname, record.name, record.message, values, record.exc_text or "")


def _time(created: float) -> str:
    second = int(created)
    return f"{_second(second)}.{int((created - second) * 1000):03d}Z"


@lru_cache(4)
def _second(second: int) -> str:
    # Most lines are of the same second as the one before: with this and ``_plain`` a line takes 12.5 us and not 18.
    return datetime.fromtimestamp(second, UTC).isoformat().removesuffix("+00:00")


def _text_line(line: _Line) -> str:
    """For people: time, level, logger, message, then key=value."""
    message = line.message.replace("\r", "\\r").replace("\n", "\\n")
    fields = "".join([f" {key}={_plain(value)}" for key, value in line.fields.items()])
    text = f"{_time(line.created)} {line.level} {line.logger} {message}{fields}"
    return f"{text}\n{line.exception}" if line.exception else text


_TWO_VALUES = re.compile(r'[ "=\n\r\\]')


def _plain(value: Any) -> str:
    text = str(value)
    if type(value) in (int, float):
        return text
    # Quoted where a reader, or a line-based tool, could take it for two values.
    return json.dumps(text) if not text or _TWO_VALUES.search(text) else text


def _json_line(line: _Line) -> str:
    """For machines: one JSON object each."""
    values: dict[str, Any] = {
        "time": _time(line.created),
        "level": line.level,
        "logger": line.logger,
        "message": line.message,
    }
    values |= line.fields
    if line.exception:
        values["exception"] = line.exception
    return json.dumps(values, ensure_ascii=False, default=str)
