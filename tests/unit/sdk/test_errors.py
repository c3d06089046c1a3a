"""A failed call becomes the error of its branch, with all that the server told."""

import ast
import re
from pathlib import Path

import grpc
import pytest
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

import ramet
from ramet.client import errors
from ramet.client.errors import RametError, from_rpc_error
from ramet_server.domain import errors as server

CODES = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]


def failure(code: grpc.StatusCode, message: str, *details: Message) -> grpc.aio.AioRpcError:
    status = status_pb2.Status(code=code.value[0], message=message)
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    trailing = grpc.aio.Metadata(("grpc-status-details-bin", status.SerializeToString()))
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, message)


def typed(code: grpc.StatusCode, *details: Message, message: str = "So it is.") -> RametError:
    return from_rpc_error(failure(code, message, *details), method="AppendRecords", request_id="r1")


def info(reason: str, **metadata: str) -> error_details_pb2.ErrorInfo:
    return error_details_pb2.ErrorInfo(reason=reason, domain="ramet", metadata=metadata)


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_type(code: grpc.StatusCode) -> None:
    error = typed(code)
    assert isinstance(error, RametError)
    assert error.code is code
    expected = "".join(part.capitalize() for part in code.name.split("_"))
    known = getattr(errors, expected, None)
    if known is not None:
        assert type(error) is known


def test_every_type_is_drawn_in_the_docstring() -> None:
    for name in errors.__all__:
        if name not in ("RametError", "FieldViolation"):
            assert f"|- {name}" in (errors.__doc__ or "") or f"`- {name}" in (errors.__doc__ or "")


def test_every_reason_stands_in_the_docstring() -> None:
    told = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)*\b", errors.__doc__ or ""))
    # The server's come with its answers, and the others are written where the SDK raises them.
    leaves = {each.reason for each in vars(server).values() if "reason" in getattr(each, "__dict__", {})}
    own: set[str] = set()
    for source in Path(ramet.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Call):
                named = [each.value for each in node.keywords if each.arg == "reason"]
                if isinstance(node.func, ast.Name) and node.func.id == "_failed":
                    named.append(node.args[0])
                own |= {each.value for each in named if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    assert {"SESSION_NOT_FOUND", "OVERLOADED"} <= leaves
    assert {"FORK_REFUSED", "TOO_MANY_ROUNDS", "ALREADY_COMMITTED"} <= own
    assert leaves | own <= told


def test_an_error_tells_reason_field_metadata_and_request_id() -> None:
    bad = error_details_pb2.BadRequest(
        field_violations=[
            error_details_pb2.BadRequest.FieldViolation(field="records[2].content", description="Too long."),
            error_details_pb2.BadRequest.FieldViolation(field="turn_delta", description="Negative."),
        ]
    )
    error = typed(grpc.StatusCode.INVALID_ARGUMENT, info("TOO_LARGE", limit="4", unit="bytes"), bad)
    assert isinstance(error, errors.InvalidArgument)
    assert (error.reason, error.field, error.request_id) == ("TOO_LARGE", "records[2].content", "r1")
    assert error.metadata == {"limit": "4", "unit": "bytes"}
    assert [violation.field for violation in error.violations] == ["records[2].content", "turn_delta"]
    assert str(error) == "AppendRecords: TOO_LARGE: So it is. (fields: records[2].content, turn_delta)"


def test_a_retry_time_is_told_in_seconds() -> None:
    delay = error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(nanos=250_000_000))
    error = typed(grpc.StatusCode.RESOURCE_EXHAUSTED, info("OVERLOADED"), delay)
    assert error.retry_after_s == 0.25


@pytest.mark.parametrize(
    ("code", "reason", "retryable"),
    [
        (grpc.StatusCode.UNAVAILABLE, "", True),
        (grpc.StatusCode.UNAVAILABLE, "OUTCOME_UNKNOWN", True),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "", True),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", True),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "", False),
        (grpc.StatusCode.ABORTED, "WRITE_CONFLICT", True),
        (grpc.StatusCode.ABORTED, "STALE_HEAD", False),
        (grpc.StatusCode.ABORTED, "STALE_VERSION", False),
        (grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND", False),
        (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD", False),
        (grpc.StatusCode.FAILED_PRECONDITION, "SESSION_ARCHIVED", False),
        (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED", False),
        (grpc.StatusCode.OUT_OF_RANGE, "ABOVE_HEAD", False),
        (grpc.StatusCode.UNIMPLEMENTED, "NOT_SERVED", False),
        (grpc.StatusCode.INTERNAL, "INTERNAL", False),
        (grpc.StatusCode.CANCELLED, "CANCELLED", False),
    ],
)
def test_an_error_tells_whether_the_same_call_may_succeed_later(
    code: grpc.StatusCode, reason: str, retryable: bool
) -> None:
    assert typed(code, info(reason)).retryable is retryable


def test_a_failure_without_details_keeps_code_and_message() -> None:
    bare = grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "No route.")
    error = from_rpc_error(bare, method="GetNode", request_id=None)
    assert isinstance(error, errors.Unavailable)
    assert (error.reason, error.message, error.field, error.request_id) == ("", "No route.", None, None)
    assert str(error) == "GetNode: UNAVAILABLE: No route."


def test_details_that_contradict_the_status_are_left_aside() -> None:
    status = status_pb2.Status(code=grpc.StatusCode.NOT_FOUND.value[0], message="Other.")
    trailing = grpc.aio.Metadata(("grpc-status-details-bin", status.SerializeToString()))
    changed = grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), trailing, "By a proxy.")
    assert isinstance(from_rpc_error(changed, method="GetNode", request_id=None), errors.Unavailable)
