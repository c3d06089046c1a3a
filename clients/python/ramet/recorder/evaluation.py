"""What a model says of its own conclusion: how it is asked for, and how it is found in an answer."""

import json
from typing import Any

__all__ = ["QUESTION", "found_evaluation"]

QUESTION = (
    "How sure are you of your conclusion? Answer with one JSON object and nothing else: "
    '{"confidence": <0 to 100>, "reasoning": "<why, in a sentence>", "evidence_count": <pieces of evidence>, '
    '"tools_proposed": <tools you proposed>, "tools_accepted": <how many of them were used>}'
)
"""Asks for a self-evaluation; append it to a prompt to have it with the answer."""

_COUNTS = ("evidence_count", "tools_proposed", "tools_accepted")


def found_evaluation(answer: object) -> dict[str, Any] | None:
    """Returns the last JSON object in an answer that tells a confidence, as arguments of ``self_evaluation``."""
    if not isinstance(answer, str):
        # An answer with nothing but tool calls may have no text.
        return None
    decoder = json.JSONDecoder()
    at = len(answer)
    while (at := answer.rfind("{", 0, at)) >= 0:
        try:
            value, _ = decoder.raw_decode(answer, at)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and (confidence := _whole(value.get("confidence"))) is not None:
            told = {name: _whole(value.get(name)) for name in _COUNTS}
            return {"confidence": confidence, "reasoning": str(value.get("reasoning") or ""), **told}
    return None


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(value) if abs(value) < 2**31 - 1 else None
