"""Errors of the product as gRPC statuses."""

import base64
from urllib.parse import quote

import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode

from ramet_server.domain import errors
from ramet_server.serving.status import DETAILS_KEY, Refusal, code_of, refusal


def _leaves(branch: type[errors.RametError]) -> list[type[errors.RametError]]:
    below = branch.__subclasses__()
    return [leaf for each in below for leaf in _leaves(each)] if below else [branch]


EXPECTED = {
    "NotFound": StatusCode.NOT_FOUND,
    "AlreadyExists": StatusCode.ALREADY_EXISTS,
    "InvalidArgument": StatusCode.INVALID_ARGUMENT,
    "FailedPrecondition": StatusCode.FAILED_PRECONDITION,
    "Aborted": StatusCode.ABORTED,
    "OutOfRange": StatusCode.OUT_OF_RANGE,
    "Exhausted": StatusCode.RESOURCE_EXHAUSTED,
    "Unavailable": StatusCode.UNAVAILABLE,
    "DeadlinePassed": StatusCode.DEADLINE_EXCEEDED,
    "Cancelled": StatusCode.CANCELLED,
    "NotServed": StatusCode.UNIMPLEMENTED,
    "Internal": StatusCode.INTERNAL,
}


def _status(refused: Refusal) -> status_pb2.Status:
    raw = dict(refused.trailing)[DETAILS_KEY]
    assert isinstance(raw, bytes)
    return status_pb2.Status.FromString(raw)


@pytest.mark.parametrize("leaf", _leaves(errors.RametError), ids=lambda leaf: leaf.__name__)
def test_every_error_has_the_code_of_its_branch_and_its_own_reason(leaf: type[errors.RametError]) -> None:
    error = leaf("What happened.")
    branch = next(each for each in leaf.__mro__ if each.__name__ in EXPECTED)
    assert code_of(error) is EXPECTED[branch.__name__]
    status, info = _status(refusal(error, "c1")), error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain) == (leaf.reason, "ramet")


def test_reasons_are_unique() -> None:
    reasons = [leaf.reason for leaf in _leaves(errors.RametError)]
    assert len(set(reasons)) == len(reasons)


def test_internal_error_tells_nothing_but_the_call() -> None:
    refused = refusal(errors.Internal("SELECT secret", field="secret", details={"sql": "secret"}), "c1")
    assert refused.message == "Internal error in call c1."
    assert b"secret" not in _status(refused).SerializeToString()


@pytest.mark.parametrize("text", ["x", "é", "話", "👋", "\0", "\ud800"])
def test_status_stays_under_the_limit_of_metadata_however_long_its_parts(text: str) -> None:
    error = errors.TooLarge(
        text * 10_000,
        field=text * 10_000,
        details={f"key{n}": text * 10_000 for n in range(300)},
        retry_after_s=1.5,
    )
    refused = refusal(error, "c" * 128)
    size = len(quote(refused.message, safe=""))
    for key, value in refused.trailing:
        size += len(key) + (len(base64.b64encode(value)) if isinstance(value, bytes) else len(value)) + 32
    assert size < 8000
    status = _status(refused)
    assert status.message == refused.message
    assert [detail.TypeName().rpartition(".")[2] for detail in status.details] == [
        "ErrorInfo",
        "RetryInfo",
        "BadRequest",
    ]


def test_short_texts_are_told_whole() -> None:
    error = errors.StaleVersion("The version is 7, not 6 - 你好.", details={"current": "7"}, field="expected_version")
    refused = refusal(error, "c1")
    assert refused.message == error.message
    bad = error_details_pb2.BadRequest()
    assert _status(refused).details[1].Unpack(bad)
    assert bad.field_violations[0].field == "expected_version"
