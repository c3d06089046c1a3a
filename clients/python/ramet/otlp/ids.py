"""Ids of traces and spans: the same for the same diagnosis, whoever exports it and whenever."""

import hashlib
import json

__all__ = ["span_id_of", "trace_id_of"]


def trace_id_of(space: str, session_id: str) -> bytes:
    """Returns the 16 bytes that name the trace of a diagnosis."""
    return _digest("trace", space, session_id)[:16]


def span_id_of(space: str, session_id: str, kind: str, *keys: str) -> bytes:
    """Returns the 8 bytes that name a span of a diagnosis.

    Kinds and keys: ``diagnosis``; ``run`` with the parent step's key (or nothing) and the agent's name; ``step`` with
    the step's key; ``tool`` and ``retrieval`` with the invocation's key.
    """
    return _digest("span", space, session_id, kind, *keys)[:8]


def _digest(*parts: str) -> bytes:
    # As JSON, so that no two lists of parts are written alike. OTLP forbids ids of zeros; the chance is one in 2^64.
    return hashlib.sha256(json.dumps(parts).encode()).digest()
