"""Entries of the forest are nested, at any depth, and nothing gets lost unsaid."""

from collections.abc import Iterable
from itertools import pairwise

from ramet.client import Node, SessionStatus, TreeEntry
from ramet.orchestrator.forest import Forest, build_forest


def entry(node_id: str, parent_id: str | None = None, index: int = 0, depth: int = 0) -> TreeEntry:
    return TreeEntry(Node(node_id, parent_id, index=index, depth=depth), SessionStatus.ACTIVE, 0)


def ids(forest: Forest) -> list[str]:
    return [node.id for node in forest.walk()]


def test_children_stand_below_their_parents_by_index() -> None:
    forest = build_forest(
        [entry("r1"), entry("r2", index=1), entry("b", "r1", 1), entry("a", "r1", 0), entry("c", "b"), entry("d", "r2")]
    )
    assert ids(forest) == ["r1", "a", "b", "c", "r2", "d"]
    found = forest.find("b")
    assert found is not None
    assert [child.id for child in found.children] == ["c"]
    assert forest.find("nobody") is None


def test_a_chain_of_5_000_is_built_walked_and_dropped() -> None:
    names = [f"n{depth}" for depth in range(5_000)]
    chain = [entry(names[0])] + [entry(name, parent) for parent, name in pairwise(names)]
    assert ids(build_forest(chain)) == names
    assert "n4999" not in repr(build_forest(chain).roots[0])


def test_a_forest_of_100_000_is_complete() -> None:
    def entries() -> Iterable[TreeEntry]:
        for number in range(100_000):
            yield entry(f"n{number}", f"n{(number - 1) // 10}" if number >= 10 else None, number % 10)

    assert len(ids(build_forest(entries()))) == 100_000


def test_a_subtree_begins_at_the_node_asked_for() -> None:
    forest = build_forest([entry("b", "r1"), entry("c", "b")], top_id="b")
    assert ids(forest) == ["b", "c"]
    assert forest.left_out == ()


def test_a_node_without_its_parent_is_told_and_never_becomes_a_root() -> None:
    forest = build_forest([entry("r1"), entry("lost", "moved away"), entry("below", "lost")])
    assert ids(forest) == ["r1"]
    assert forest.left_out == ("below", "lost")


def test_a_node_that_is_listed_twice_stands_once_where_it_was_first() -> None:
    forest = build_forest([entry("r1"), entry("r2", index=1), entry("a", "r1"), entry("a", "r2")])
    assert ids(forest) == ["r1", "a", "r2"]


def test_a_cycle_of_two_readings_ends() -> None:
    forest = build_forest([entry("r1"), entry("a", "b"), entry("b", "a")])
    assert ids(forest) == ["r1"]
    assert forest.left_out == ("a", "b")
