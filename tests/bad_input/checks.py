"""What every refusal must keep to, whatever was refused."""

import re

import grpc

from tests.bad_input.doors import Answer
from tests.bad_input.world import SENT, STORED

METADATA_LIMIT = 8192
"""Over this, gRPC itself answers RESOURCE_EXHAUSTED in place of the real code."""

_NEVER_TOLD = re.compile(
    r"\b(?:select|insert|update|delete from|where|commit|rollback)\b.*\b(?:from|into|set|values|and)\b"
    r"|sqlite|mysql|mariadb|sqlalchemy|traceback|history_span|context_slot|topology_node|request_log|node_ref"
    r"|released_span|diagnosis_session|agent_step|diagnosis_feedback|telemetry_event|session_tag|session_removal|constraint|\.py\b|0x[0-9a-f]{6}",
    re.IGNORECASE | re.DOTALL,
)


def check_refusal(answer: Answer, code: grpc.StatusCode, reason: str) -> None:
    """Checks code and reason, and that the refusal is stable, small and discreet."""
    assert (answer.code, answer.reason) == (code, reason), answer
    check_discretion(answer)


def check_discretion(answer: Answer) -> None:
    """Checks that a refusal is the product's own, small, and tells nothing that it must not."""
    assert answer.domain == "ramet", answer
    assert answer.text, "a refusal must say what is wrong"
    assert answer.metadata_bytes < METADATA_LIMIT, f"{answer.metadata_bytes} bytes of metadata: {answer}"
    told = f"{answer.text} {answer.details} {answer.fields}"
    assert STORED not in told, f"a stored value is told: {told}"
    assert SENT not in told, f"content of the request is told: {told}"
    found = _NEVER_TOLD.findall(told)
    assert not found, f"the inside is told ({found}): {told}"


def check_field(answer: Answer, *allowed: str) -> None:
    """Checks that BadRequest names one of the paths, and nothing else."""
    assert len(answer.fields) == 1, f"one field is at fault, one of {allowed}: {answer}"
    assert answer.fields[0] in allowed, f"the field at fault is one of {allowed}: {answer}"
