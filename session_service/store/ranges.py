"""Statements over many ranges of records, or many ids, each built once.

Building a statement of many terms takes far longer than running it. So its ranges are parameters, and
there are statements for few different numbers of ranges only: what is too many is filled with empty ones.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import BindParameter, bindparam

from ramet_server.database.tables.session import history_span
from session_service.rules.spans import Span

RANGES_PER_STATEMENT = 64
"""SQLite takes 500 terms; beyond some dozens longer statements save nothing."""


def chunks(spans: Sequence[Span]) -> Iterator[Sequence[Span]]:
    """Yields the spans in pieces that one statement can name."""
    for start in range(0, len(spans), RANGES_PER_STATEMENT):
        yield spans[start : start + RANGES_PER_STATEMENT]


def rounded(count: int) -> int:
    """Returns for how many ranges the statement is built that serves so many."""
    return 1 << (count - 1).bit_length()


def parameters(spans: Sequence[Span]) -> dict[str, Any]:
    """Returns the values of a statement that was built for this many spans, rounded."""
    values: dict[str, Any] = {}
    for place in range(rounded(len(spans))):
        span = spans[place] if place < len(spans) else Span("", 1, 0)
        values |= {f"origin{place}": span.origin, f"first{place}": span.first_seq, f"last{place}": span.last_seq}
    return values


def padded(name: str, ids: Collection[str]) -> dict[str, Any]:
    """Returns the ids as parameters ``name`` and a number, rounded; what is too many repeats the last id."""
    values: dict[str, Any] = {f"{name}{place}": each for place, each in enumerate(ids)}
    last = values[f"{name}{len(ids) - 1}"]
    return values | {f"{name}{place}": last for place in range(len(ids), rounded(len(ids)))}


def origin(place: int) -> BindParameter[str]:
    """Returns the origin of a range, as a parameter."""
    return bindparam(f"origin{place}", type_=history_span.c.origin.type)


def first(place: int) -> BindParameter[int]:
    """Returns the first seq of a range, as a parameter."""
    return bindparam(f"first{place}", type_=history_span.c.first_seq.type)


def last(place: int) -> BindParameter[int]:
    """Returns the last seq of a range, as a parameter."""
    return bindparam(f"last{place}", type_=history_span.c.last_seq.type)
