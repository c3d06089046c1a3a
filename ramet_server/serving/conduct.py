"""One call from its first byte to its log line, whatever its kind."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext

from grpc import StatusCode, aio

from ramet_server.domain.call import Call, Cancellation
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
    spaces, given_id = _told(context)
    call_id = _call_id(given_id)
    call_id_var.set(call_id)
    answer = b""
    space = ""
    error: RametError | None = None
    lost: BaseException | None = None
    cancelled = Cancellation()
    deadline = _deadline(context)
    try:
        space = _space(spaces)
        with door.admit() if door is not None else nullcontext():
            answer = await body(Call(space, deadline, call_id, cancelled))
    except RametError as raised:
        error = raised
    except (asyncio.CancelledError, aio.BaseError) as raised:
        # Nobody waits for an answer any more: the client left, its deadline passed, or the server stops.
        lost = raised
        cancelled.set()
    except Exception:  # noqa: BLE001 - whatever no rule foresaw must not tell its text to a client
        _log.exception("A call failed in a way that no rule foresaw")
        error = Internal("A method failed in a way that no rule foresaw.")
    code, reason = _end(error, lost, deadline)
    log_call(CallEnd(method, code, reason, (time.perf_counter() - started) * 1000, space, call_id))
    if lost is not None:
        raise lost
    if error is not None:
        refused = refusal(error, call_id)
        try:
            await context.abort(refused.code, refused.message, refused.trailing)
        except aio.InternalError as unsent:
            # The client left at this very moment, before gRPC heard of it; else it would log an error of its own.
            raise asyncio.CancelledError from unsent
    context.set_trailing_metadata(((CALL_ID_KEY, call_id),))
    return answer


def _end(error: RametError | None, lost: BaseException | None, deadline: float | None) -> tuple[StatusCode, str]:
    if error is not None:
        return code_of(error), error.reason
    if lost is None:
        return StatusCode.OK, ""
    if deadline is not None and time.monotonic() >= deadline:
        return StatusCode.DEADLINE_EXCEEDED, "DEADLINE_PASSED"
    return StatusCode.CANCELLED, "CANCELLED"


def _told(context: Context) -> tuple[Sequence[str], str]:
    """Returns what the call's metadata names: its spaces, and the first id for it."""
    spaces: list[str] = []
    call_id = ""
    for key, value in context.invocation_metadata() or ():
        if key == SPACE_KEY:
            spaces.append(str(value))
        elif key == CALL_ID_KEY and not call_id and isinstance(value, str):
            call_id = value
    return spaces, call_id


def _call_id(given: str) -> str:
    if not given:
        return new_id()
    # A name that could break a log line or a header is replaced, since no call should fail by it.
    try:
        return check_id(given, CALL_ID_KEY)
    except RametError:
        return new_id()


def _space(spaces: Sequence[str]) -> str:
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
