"""The logic of mutations that take effect once, over a store whose every fault is chosen."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from ramet_server.domain.call import Call
from ramet_server.domain.errors import (
    Cancelled,
    DatabaseUnavailable,
    DeadlinePassed,
    OutcomeUnknown,
    RametError,
    RequestIdReused,
    StaleHead,
    WriteConflict,
)
from ramet_server.domain.idempotency import DuplicateRequest, LoggedRequest, Mutation, Outcome, body_hash, once

T = TypeVar("T")


@dataclass
class _Log:
    rows: dict[str, LoggedRequest]
    gone: bool = False

    def find(self, request_id: str) -> LoggedRequest | None:
        return self.rows.get(request_id)

    def put(self, mutation: Mutation, outcome: Outcome) -> None:
        if mutation.request_id is None:
            return
        if mutation.request_id in self.rows:
            raise DuplicateRequest
        self.rows[mutation.request_id] = LoggedRequest(mutation.method, mutation.body_hash, outcome)


@dataclass
class _Unit:
    requests: _Log


@dataclass
class _Store:
    """Commits like a database, and raises what ``faults`` hold for its next writes."""

    rows: dict[str, LoggedRequest] = field(default_factory=dict)
    faults: list[RametError | None] = field(default_factory=list)
    commits_before_fault: bool = False
    reads: int = 0
    writes: int = 0

    def read(self, call: Call, fn: Callable[[_Unit], T]) -> T:
        self.reads += 1
        return fn(_Unit(_Log(dict(self.rows))))

    def write(self, call: Call, fn: Callable[[_Unit], T]) -> T:
        self.writes += 1
        unit = _Unit(_Log(dict(self.rows)))
        result = fn(unit)
        fault = self.faults.pop(0) if self.faults else None
        if fault is None or self.commits_before_fault:
            self.rows = unit.requests.rows
        if fault is not None:
            raise fault
        return result


_CALL = Call("default")
_MUTATION = Mutation("r1", "Append", body_hash("Append", b"body"))


@dataclass
class _Counter:
    """A thing to change: each run of its work adds one."""

    value: int = 0
    error: RametError | None = None

    def work(self, unit: _Unit) -> tuple[str, Outcome]:
        if self.error is not None:
            raise self.error
        self.value += 1
        return f"first {self.value}", {"value": self.value}

    @staticmethod
    def replay(unit: _Unit, outcome: Outcome) -> str:
        return f"again {outcome['value']}"


def _run(store: _Store, counter: _Counter, mutation: Mutation = _MUTATION) -> str:
    return once(store, _CALL, mutation, counter.work, counter.replay)


def test_a_first_request_costs_no_look_up() -> None:
    store = _Store()
    assert _run(store, _Counter()) == "first 1"
    assert (store.reads, store.writes) == (0, 1)


def test_a_repeated_request_is_answered_from_the_log() -> None:
    store, counter = _Store(), _Counter()
    _run(store, counter)
    assert _run(store, counter) == "again 1"


def test_another_body_is_refused() -> None:
    store = _Store()
    _run(store, _Counter())
    with pytest.raises(RequestIdReused) as refusal:
        _run(store, _Counter(), Mutation("r1", "Append", body_hash("Append", b"other")))
    assert refusal.value.field == "request_id"


def test_the_same_body_of_another_method_is_another_body() -> None:
    assert body_hash("Append", b"body") != body_hash("Trim", b"body")
    assert body_hash("a", b"bc") != body_hash("ab", b"c")


def test_an_error_that_the_first_run_caused_is_answered_from_the_log() -> None:
    store, counter = _Store(), _Counter()
    _run(store, counter)
    counter.error = StaleHead("The head moved.")
    assert _run(store, counter) == "again 1"


def test_an_error_of_a_new_request_stays_itself_and_is_not_kept() -> None:
    store, counter = _Store(), _Counter(error=StaleHead("The head moved."))
    with pytest.raises(StaleHead):
        _run(store, counter)
    assert store.rows == {}
    counter.error = None
    assert _run(store, counter) == "first 1"


def test_an_error_with_another_body_tells_of_the_body() -> None:
    store, counter = _Store(), _Counter()
    _run(store, counter)
    counter.error = StaleHead("The head moved.")
    with pytest.raises(RequestIdReused):
        _run(store, counter, Mutation("r1", "Append", "other"))


def test_without_a_request_id_nothing_is_looked_up() -> None:
    store, counter = _Store(), _Counter()
    mutation = Mutation(None, "Append", "")
    assert [_run(store, counter, mutation), _run(store, counter, mutation)] == ["first 1", "first 2"]
    counter.error = StaleHead("The head moved.")
    with pytest.raises(StaleHead):
        _run(store, counter, mutation)
    assert (store.reads, store.rows) == (0, {})


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_of_unknown_outcome_is_settled_by_the_log(committed: bool) -> None:
    store = _Store(faults=[OutcomeUnknown("lost")], commits_before_fault=committed)
    assert _run(store, _Counter()) == ("again 1" if committed else "first 2")


def test_an_unknown_outcome_without_request_id_is_told() -> None:
    store = _Store(faults=[OutcomeUnknown("lost")])
    with pytest.raises(OutcomeUnknown):
        _run(store, _Counter(), Mutation(None, "Append", ""))
    assert store.writes == 1


def test_an_outcome_that_stays_unknown_is_told_so() -> None:
    store = _Store(faults=[OutcomeUnknown("lost")] * 9)
    with pytest.raises(OutcomeUnknown):
        _run(store, _Counter())


@pytest.mark.parametrize("second", [DatabaseUnavailable("away"), WriteConflict("busy")])
def test_an_outcome_stays_unknown_where_the_second_run_is_held_up(second: RametError) -> None:
    # Each of the two would promise that nothing was changed.
    store = _Store(faults=[OutcomeUnknown("lost"), second])
    with pytest.raises(OutcomeUnknown):
        _run(store, _Counter())


@pytest.mark.parametrize("error", [DatabaseUnavailable("away"), DeadlinePassed("late"), Cancelled("gone")])
def test_what_is_not_about_the_data_is_raised_without_a_look_up(error: RametError) -> None:
    store = _Store(faults=[error])
    with pytest.raises(type(error)):
        _run(store, _Counter())
    assert (store.reads, store.writes) == (0, 1)


class _ForgetfulStore(_Store):
    """A store whose rows expire just after they stood in the way."""

    def read(self, call: Call, fn: Callable[[_Unit], T]) -> T:
        self.rows = {}
        return super().read(call, fn)


def test_a_request_whose_row_expires_under_way_is_new() -> None:
    store, counter = _ForgetfulStore(), _Counter()
    _run(store, counter)
    assert _run(store, counter) == "first 3"


class _JealousStore(_Store):
    """A store in which the row always stands in the way, and is never found."""

    def write(self, call: Call, fn: Callable[[_Unit], T]) -> T:
        raise DuplicateRequest


def test_a_duplicate_that_is_never_found_ends_as_a_conflict() -> None:
    with pytest.raises(WriteConflict):
        _run(_JealousStore(), _Counter())
