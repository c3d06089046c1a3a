"""Moves: another parent, another place, never a cycle."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import grpc
import pytest

from ramet.tree.v1 import tree_pb2 as pb
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.conformance.refusing import bad_field, reason_of, refused, stale_version, unknown_node
from tests.conformance.tree.making import add_ref, ancestors, get, grow, move, outline


class TestMoving:
    def test_a_node_moves_with_everything_below_it(self, tree: SessionTreeStub) -> None:
        grow(tree, "a b a/x x/y y/z a/w")
        reply = move(tree, "x", "b")
        assert (reply.node.parent_id, reply.node.depth, reply.node.index) == ("b", 1, 0)
        assert list(reply.removed_refs) == []
        assert outline(tree) == "a(w) b(x(y(z)))"
        assert ancestors(tree, "z") == ["y", "x", "b"]

    def test_a_move_deeper_and_up_again_shifts_every_depth(self, tree: SessionTreeStub) -> None:
        grow(tree, "a b b/c c/d a/x x/y y/z")
        move(tree, "x", "d")
        assert outline(tree) == "a b(c(d(x(y(z)))))"
        move(tree, "x")
        assert outline(tree) == "a b(c(d)) x(y(z))"

    def test_without_a_parent_it_becomes_the_last_root(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/x x/y b")
        reply = move(tree, "x")
        assert not reply.node.HasField("parent_id")
        assert outline(tree) == "a b x(y)"

    def test_a_root_moves_below_another_and_roots_close_ranks(self, tree: SessionTreeStub) -> None:
        grow(tree, "a b c b/x")
        move(tree, "b", "c")
        assert outline(tree) == "a c(b(x))"

    @pytest.mark.parametrize(
        ("node", "index", "expected"),
        [
            ("a", 0, "a b c d"),
            ("a", 1, "b a c d"),
            ("a", 2, "b c a d"),
            ("a", 3, "b c d a"),
            ("a", 9, "b c d a"),
            ("a", None, "b c d a"),
            ("d", 0, "d a b c"),
            ("d", 1, "a d b c"),
            ("d", 3, "a b c d"),
            ("b", 2, "a c b d"),
            ("c", 1, "a c b d"),
        ],
    )
    def test_a_new_place_among_the_same_siblings(
        self, tree: SessionTreeStub, node: str, index: int | None, expected: str
    ) -> None:
        grow(tree, "p p/a p/b p/c p/d")
        reply = move(tree, node, "p", index)
        assert outline(tree) == f"p({expected})"
        assert reply.node.index == expected.split().index(node)

    @pytest.mark.parametrize(("index", "expected"), [(0, "c a b"), (1, "a c b"), (2, "a b c"), (None, "a b c")])
    def test_a_new_place_among_the_roots(self, tree: SessionTreeStub, index: int | None, expected: str) -> None:
        grow(tree, "a b c")
        move(tree, "c", None, index)
        assert outline(tree) == expected

    @pytest.mark.parametrize(
        ("index", "expected"), [(0, "x a b"), (1, "a x b"), (2, "a b x"), (7, "a b x"), (None, "a b x")]
    )
    def test_a_place_among_new_siblings(self, tree: SessionTreeStub, index: int | None, expected: str) -> None:
        grow(tree, "p p/a p/b q q/x q/y")
        move(tree, "x", "p", index)
        assert outline(tree) == f"p({expected}) q(y)"

    def test_a_move_counts_the_version(self, tree: SessionTreeStub) -> None:
        grow(tree, "a b")
        before = get(tree, "b")
        after = move(tree, "b", "a").node
        assert after.version == before.version + 1
        assert after.updated_at.ToNanoseconds() > before.updated_at.ToNanoseconds()
        assert get(tree, "b") == after

    def test_a_stale_version_is_refused(self, tree: SessionTreeStub) -> None:
        grow(tree, "a b")
        version = get(tree, "b").version
        tree.UpdateNode(pb.UpdateNodeRequest(node_id="b", label="newer"))
        with stale_version():
            tree.MoveNode(pb.MoveNodeRequest(node_id="b", parent_id="a", expected_version=version))
        assert outline(tree) == "a b"

    def test_unknown_nodes_and_parents_are_not_found_and_nothing_moves(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/b")
        with unknown_node():
            move(tree, "nobody", "a")
        with unknown_node():
            move(tree, "b", "nobody")
        assert outline(tree) == "a(b)"

    def test_bad_places_are_refused(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/b")
        with bad_field("index"):
            move(tree, "b", "a", -1)
        with bad_field("parent_id"):
            move(tree, "b", "")
        assert outline(tree) == "a(b)"


class TestCycles:
    """OpenHands#15247: self-parent, a parent below its own child, two opposing moves at once; never a cycle."""

    @pytest.mark.parametrize("target", ["a", "b", "c"])
    def test_below_itself_is_refused(self, tree: SessionTreeStub, target: str) -> None:
        grow(tree, "a a/b b/c x")
        with refused(grpc.StatusCode.FAILED_PRECONDITION, "MOVE_MAKES_CYCLE"):
            move(tree, "a", target)
        assert outline(tree) == "a(b(c)) x"

    def test_of_two_opposing_moves_at_once_one_is_refused(self, tree: SessionTreeStub) -> None:
        for number in range(8):
            left, right = f"l{number}", f"r{number}"
            grow(tree, f"{left} {right} {left}/{left}c {right}/{right}c")
            opposing = [partial(move, tree, left, f"{right}c"), partial(move, tree, right, f"{left}c")]
            with ThreadPoolExecutor(2) as pool:
                assert set(pool.map(reason_of, opposing)) == {None, "MOVE_MAKES_CYCLE"}
        told = outline(tree).replace("(", " ").replace(")", " ").split()
        assert len(told) == len(set(told)) == 32

    def test_many_moves_at_once_leave_a_forest(self, tree: SessionTreeStub) -> None:
        names = [f"n{number}" for number in range(10)]
        grow(tree, " ".join(names))

        moves = [partial(move, tree, names[n % 10], names[(n * 7 + 3) % 10], n % 3) for n in range(60)]
        with ThreadPoolExecutor(6) as pool:
            assert set(pool.map(reason_of, moves)) <= {None, "MOVE_MAKES_CYCLE"}
        told = outline(tree)
        assert sorted(told.replace("(", " ").replace(")", " ").split()) == sorted(names)


class TestMovedRefs:
    def test_refs_that_a_move_makes_illegal_are_removed_and_told(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/b x x/y z")
        add_ref(tree, "b", "y")
        add_ref(tree, "x", "a")
        add_ref(tree, "y", "z")
        add_ref(tree, "z", "y")
        reply = move(tree, "x", "b")
        told = {(ref.node_id, ref.target_id) for ref in reply.removed_refs}
        assert told == {("b", "y"), ("x", "a")}
        assert list(get(tree, "b").refs) == []
        assert list(get(tree, "x").refs) == list(reply.node.refs) == []
        assert list(get(tree, "y").refs) == ["z"]
        assert list(get(tree, "z").refs) == ["y"]

    def test_refs_within_what_moves_and_to_strangers_stay(self, tree: SessionTreeStub) -> None:
        grow(tree, "a x x/y x/w b")
        add_ref(tree, "y", "w")
        add_ref(tree, "y", "b")
        add_ref(tree, "b", "x")
        reply = move(tree, "x", "a")
        assert list(reply.removed_refs) == []
        assert list(get(tree, "y").refs) == ["w", "b"]
        assert list(get(tree, "b").refs) == ["x"]
