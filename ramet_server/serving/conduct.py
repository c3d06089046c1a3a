"""One call from its first byte to its log line, whatever its kind."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext

from grpc import StatusCode, aio

from ramet_server.domain.call import Call
from ramet_server.domain.errors import Internal, InvalidArgument, InvalidField, RametError
from ramet_server.domain.ids import check_id, new_id
from ramet_server.serving.door import Door
from ramet_server.serving.logs import CallEnd, call_id_var, log_call
from ramet_server.serving.status import CALL_ID_KEY, code_of, refusal

SPACE_KEY = "ramet-space"
"""Metadata that names the space of a call."""

DEFAULT_SPACE = "default"
"""The space of a call that names none."""

Context = aio.ServicerContext[bytes, bytes]

_log = logging.getLogger(__name__)


async def conduct(context: Context, method: str, door: Door | None, body: Callable[[Call], Awaitable[bytes]]) -> bytes:
    """Runs ``body`` as one call and returns its answer; an error goes out as its status.

    ``method`` names service and method for the log. Without a door the call may begin at any time.
    The answer of a stream is not used.
    """
    started = time.perf_counter()
    metadata = _texts(context)
    call_id = _call_id(metadata)
    call_id_var.set(call_id)
    call = Call(space="", deadline=_deadline(context), call_id=call_id)
    answer = b""
    error: RametError | None = None
    lost: BaseException | None = None
    try:
        call = Call(_space(context), call.deadline, call_id, call.cancelled)
        with door.admit() if door is not None else nullcontext():
            answer = await body(call)
    except RametError as raised:
        error = raised
    except (asyncio.CancelledError, aio.BaseError) as raised:
        # Nobody waits for an answer any more: the client left, its deadline passed, or the server stops.
        lost = raised
        call.cancelled.set()
    except Exception:  # noqa: BLE001 - whatever no rule foresaw must not tell its text to a client
        _log.exception("A call failed in a way that no rule foresaw")
        error = Internal("A method failed in a way that no rule foresaw.")
    _write_line(method, call, started, error, lost)
    if lost is not None:
        raise lost
    if error is not None:
        refused = refusal(error, call_id)
        await context.abort(refused.code, refused.message, refused.trailing)
    context.set_trailing_metadata(((CALL_ID_KEY, call_id),))
    return answer


def _write_line(method: str, call: Call, started: float, error: RametError | None, lost: BaseException | None) -> None:
    code, reason = StatusCode.OK, ""
    if error is not None:
        code, reason = code_of(error), error.reason
    elif lost is not None:
        late = call.deadline is not None and time.monotonic() >= call.deadline
        code, reason = (
            (StatusCode.DEADLINE_EXCEEDED, "DEADLINE_PASSED") if late else (StatusCode.CANCELLED, "CANCELLED")
        )
    duration_ms = (time.perf_counter() - started) * 1000
    log_call(CallEnd(method, code, reason, duration_ms, call.space, call.call_id))


def _texts(context: Context) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for key, value in context.invocation_metadata() or ():
        if isinstance(value, str):
            texts.setdefault(key, value)
    return texts


def _call_id(metadata: Mapping[str, str]) -> str:
    # A name that could break a log line or a header is replaced, since no call should fail by it.
    given = metadata.get(CALL_ID_KEY, "")
    try:
        return check_id(given, CALL_ID_KEY)
    except RametError:
        return new_id()


def _space(context: Context) -> str:
    spaces = [str(value) for key, value in context.invocation_metadata() or () if key == SPACE_KEY]
    if not spaces:
        return DEFAULT_SPACE
    if len(spaces) > 1:
        # Where a proxy adds its own beside the client's, their order must not decide whose rows are seen.
        raise InvalidField(f"Metadata {SPACE_KEY} must come once.", field=SPACE_KEY)
    try:
        return check_id(spaces[0], SPACE_KEY)
    except InvalidArgument as error:
        raise type(error)(f"Metadata {error.message}", field=SPACE_KEY, details=error.details) from None


def _deadline(context: Context) -> float | None:
    remaining: float | None = context.time_remaining()
    return None if remaining is None else time.monotonic() + remaining
