"""Numbers of rows: unique in a process, growing, and fit for a BIGINT."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from telemetry.rules.row_ids import RowIds

_NOW = datetime(2026, 6, 26, tzinfo=UTC)


def test_numbers_of_many_threads_never_meet() -> None:
    ids = RowIds()
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(lambda _: [ids.take(_NOW) for _ in range(500)], range(8)))
    assert len({number for numbers in taken for number in numbers}) == 4000
    assert all(numbers == sorted(numbers) for numbers in taken)


def test_numbers_grow_with_time_and_never_go_back_with_a_clock() -> None:
    ids = RowIds()
    numbers = [ids.take(_NOW + timedelta(milliseconds=step)) for step in (0, 1, 1, 5, 3, 0, 6)]
    assert numbers == sorted(set(numbers))


def test_numbers_fit_a_bigint_for_a_lifetime() -> None:
    assert 0 < RowIds().take(_NOW) < RowIds().take(datetime(2093, 1, 1, tzinfo=UTC)) < 1 << 63
