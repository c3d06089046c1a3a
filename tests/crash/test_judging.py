"""The judge of histories finds each kind of fault, so that its silence means something."""

import pytest

from tests.crash.histories import History, Read, Seen, Write, faults

FINAL: Seen = [(1, "a"), (2, "b"), (3, "c")]
WRITES = [Write("s", ["a"], 1.0, 2.0, [1]), Write("s", ["b", "c"], 3.0, 4.0, [2, 3])]


def test_a_history_that_can_be_explained_has_no_faults() -> None:
    reads = [Read("s", 0.0, 9.0, FINAL), Read("s", 2.5, 3.5, FINAL[:1]), Read("s", 0.0, 0.5, [])]
    assert faults(History([*WRITES, Write("s", ["lost"], 5.0, None)], reads), {"s": FINAL}) == []


@pytest.mark.parametrize(
    ("writes", "reads", "final", "told"),
    [
        (WRITES, [], FINAL[:2], "acknowledged at"),
        (WRITES, [], [], "acknowledged at"),
        (WRITES, [], [*FINAL, (4, "a")], "more than once"),
        (WRITES, [], [*FINAL, (4, "x")], "nobody wrote"),
        ([Write("s", ["b", "c"], 1.0, None)], [], [(1, "b")], "in part"),
        ([Write("s", ["a"], 3.0, 4.0, [1]), Write("s", ["b"], 1.0, 2.0, [2])], [], FINAL[:2], "after a write"),
        (WRITES, [Read("s", 5.0, 6.0, FINAL[:2])], FINAL, "did not see"),
        (WRITES, [Read("s", 0.0, 6.0, FINAL[1:])], FINAL, "no beginning"),
        (WRITES, [Read("s", 0.0, 0.5, FINAL[:1])], FINAL, "before it was written"),
    ],
)
def test_each_kind_of_fault_is_told(writes: list[Write], reads: list[Read], final: Seen, told: str) -> None:
    found = faults(History(writes, reads), {"s": final})
    assert any(told in fault for fault in found), found
