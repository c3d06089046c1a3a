"""Watches of the forest: what becomes of each node, in the order of commits."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import grpc

from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1 import tree_pb2 as pb
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.conformance.backends import Backend
from tests.conformance.calling import within
from tests.conformance.refusing import bad_field, reason_of, refused
from tests.conformance.session import making as storing
from tests.conformance.tree.making import (
    CASCADE,
    REPARENT,
    add_ref,
    create,
    delete,
    entries,
    get,
    grow,
    move,
    nodes,
    roots,
)
from tests.conformance.watching import Watch, watching

TreeWatch = Watch[pb.WatchTreeResponse]

_WORDS = {
    pb.TREE_CHANGE_KIND_CREATED: "+",
    pb.TREE_CHANGE_KIND_UPDATED: "=",
    pb.TREE_CHANGE_KIND_MOVED: ">",
    pb.TREE_CHANGE_KIND_DELETED: "-",
}


def watched(tree: SessionTreeStub, after: int | None = 0) -> AbstractContextManager[TreeWatch]:
    """A watch of the forest after a position; None: from now on."""
    return watching(tree.WatchTree(pb.WatchTreeRequest(after_position=after)))


def position(tree: SessionTreeStub) -> int:
    """The position of the forest now."""
    with watched(tree, None) as watch:
        return int(watch.read().through_position)


def told(messages: list[pb.WatchTreeResponse]) -> str:
    """All changes of messages as one line, such as `+a =a -a`."""
    return " ".join(_WORDS[change.kind] + change.node_id for message in messages for change in message.changes)


def told_since(tree: SessionTreeStub, after: int) -> str:
    """What became of nodes after a position, up to now."""
    now = position(tree)
    with watched(tree, after) as watch:
        return told(watch.read_until(lambda message: message.through_position >= now))


@contextmanager
def out_of_range(reason: str, key: str, value: int) -> Iterator[None]:
    """Expect that a position is refused with what is in the way."""
    with refused(grpc.StatusCode.OUT_OF_RANGE, reason) as refusal:
        yield
    assert refusal.metadata == {key: str(value)}


class TestWatchingTheForest:
    def test_the_first_message_comes_at_once_and_then_each_change(self, tree: SessionTreeStub) -> None:
        with watched(tree) as watch:
            first = watch.read()
            assert (list(first.changes), first.through_position) == ([], 0)
            create(tree, "a")
            message = watch.read()
            (change,) = message.changes
            assert (change.position, change.kind, change.node_id) == (1, pb.TREE_CHANGE_KIND_CREATED, "a")
            assert message.through_position == 1
            assert change.changed_at.ToDatetime() >= get(tree, "a").created_at.ToDatetime()
            create(tree, "b", "a")
            assert told([watch.read()]) == "+b"

    def test_each_kind_of_change_is_told(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/b x")
        before = position(tree)
        tree.UpdateNode(pb.UpdateNodeRequest(node_id="b", label="new"))
        add_ref(tree, "x", "b")
        add_ref(tree, "x", "b")
        tree.PutConfig(pb.PutConfigRequest(node_id="a", config=pb.Config(system_prompt="p")))
        move(tree, "a", index=1)
        tree.RemoveRef(pb.RemoveRefRequest(node_id="x", target_id="b"))
        tree.RemoveRef(pb.RemoveRefRequest(node_id="x", target_id="b"))
        delete(tree, "b")
        assert told_since(tree, before) == "=b =x =a >a =x -b"

    def test_what_is_refused_or_repeated_is_not_told(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/b")
        before = position(tree)
        for fails in (partial(delete, tree, "a"), partial(move, tree, "a", "b"), partial(create, tree, "a")):
            assert reason_of(fails) is not None
        for _ in range(3):
            create(tree, "c", request_id="once")
        assert told_since(tree, before) == "+c"

    def test_refs_that_a_move_makes_illegal_are_told_of_their_nodes(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/b x x/y")
        add_ref(tree, "y", "b")
        add_ref(tree, "x", "a")
        before = position(tree)
        assert move(tree, "x", "a").removed_refs
        assert told_since(tree, before) == ">x"
        move(tree, "x")
        before = position(tree)
        assert move(tree, "b", "y").removed_refs
        assert told_since(tree, before) == ">b =y"

    def test_a_cascade_tells_every_node_from_below(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/b b/c a/d x")
        add_ref(tree, "x", "c")
        before = position(tree)
        delete(tree, "a", CASCADE)
        assert told_since(tree, before) == "=x -c -d -b -a"

    def test_children_that_take_their_parents_place_moved(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/b b/c b/d")
        before = position(tree)
        delete(tree, "b", REPARENT)
        assert told_since(tree, before) == ">c >d -b"

    def test_from_any_position_it_goes_on_behind_that(self, tree: SessionTreeStub) -> None:
        grow(tree, "a b c d")
        for after in range(5):
            assert told_since(tree, after) == " ".join(f"+{name}" for name in "abcd"[after:])

    def test_many_changes_come_in_bounded_messages(self, tree: SessionTreeStub) -> None:
        create(tree, "top")
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: create(tree, f"n{number:04}", "top"), range(550)))
        delete(tree, "top", CASCADE)
        with watched(tree) as watch:
            messages = watch.read_until(lambda message: message.through_position == 1102)
        assert [len(message.changes) for message in messages] == [1000, 102]
        positions = [change.position for message in messages for change in message.changes]
        assert positions == list(range(1, 1103))

    def test_a_position_outside_is_out_of_range(self, tree: SessionTreeStub) -> None:
        with out_of_range("ABOVE_HEAD", "head_position", 0), watched(tree, 1) as watch:
            watch.read()
        create(tree, "a")
        with out_of_range("ABOVE_HEAD", "head_position", 1), watched(tree, 2) as watch:
            watch.read()
        with bad_field("after_position"), watched(tree, -1) as watch:
            watch.read()

    def test_each_space_has_positions_of_its_own(self, tree: SessionTreeStub, backend: Backend, space: str) -> None:
        other = SessionTreeStub(within(backend.channel, f"{space}-other"))
        with watched(tree) as watch, watched(other) as elsewhere:
            assert watch.read().through_position == elsewhere.read().through_position == 0
            create(tree, "here")
            create(other, "there")
            assert told([watch.read()]) == "+here"
            assert told([elsewhere.read()]) == "+there"


class TestWatchingNodesThatAwait:
    def test_a_node_is_told_once_when_its_content_comes(
        self, tree: SessionTreeStub, storage: SessionStorageStub
    ) -> None:
        create(tree, "a")
        with watched(tree) as watch:
            assert told([watch.read()]) == "+a"
            create(tree, "h", "a", awaits_content=True)
            create(tree, "b")
            assert told([watch.read()]) == "+b"
            storing.put(storage, "h")
            assert told([watch.read()]) == "+h"
            tree.UpdateNode(pb.UpdateNodeRequest(node_id="h", label="x"))
            assert told([watch.read()]) == "=h"

    def test_a_change_of_a_node_comes_behind_its_creation(
        self, tree: SessionTreeStub, storage: SessionStorageStub
    ) -> None:
        for name in ("parent", "moved", "labelled", "deleted", "target"):
            create(tree, name, awaits_content=True)
            storing.put(storage, name)
        create(tree, "child", "parent")
        move(tree, "moved", "parent", 0)
        tree.UpdateNode(pb.UpdateNodeRequest(node_id="labelled", label="x"))
        add_ref(tree, "labelled", "target")
        delete(tree, "deleted")
        line = told_since(tree, 0).split()
        assert line.index("+parent") < line.index("+child")
        assert line.index("+moved") < line.index(">moved")
        assert line.index("+labelled") < line.index("=labelled")
        assert line.index("+deleted") < line.index("-deleted")
        created = sorted(word for word in line if word.startswith("+"))
        assert created == ["+child", "+deleted", "+labelled", "+moved", "+parent", "+target"]

    def test_what_nobody_saw_is_never_told(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/b")
        for parent in ("a", "b"):
            create(tree, f"h-{parent}", parent, awaits_content=True)
        create(tree, "back", awaits_content=True)
        tree.DeleteNode(pb.DeleteNodeRequest(node_id="back", only_awaiting=True))
        delete(tree, "b", REPARENT)
        delete(tree, "a", CASCADE)
        assert told_since(tree, 0) == "+a +b -b -a"

    def test_a_node_that_was_told_stays_when_its_session_goes(
        self, tree: SessionTreeStub, storage: SessionStorageStub
    ) -> None:
        create(tree, "by-watch", awaits_content=True)
        storing.put(storage, "by-watch")
        with watched(tree) as watch:
            watch.read_until(lambda message: message.through_position == 1)
        create(tree, "by-tree", awaits_content=True)
        storing.put(storage, "by-tree")
        assert {entry.node.id for entry in entries(tree)} == {"by-watch", "by-tree"}
        for name in ("by-watch", "by-tree"):
            storing.delete(storage, name)
        assert nodes(tree) == ["by-tree", "by-watch"]
        assert told_since(tree, 0) == "+by-watch +by-tree"


class Follower:
    """A client that read the forest once, and knows all that came after from changes alone."""

    def __init__(self, tree: SessionTreeStub) -> None:
        self._tree = tree
        first = tree.GetTree(pb.GetTreeRequest(page_size=2))
        self.position = first.position
        self.family: dict[str | None, list[str]] = {None: []}
        """The children of each node, and the roots, in order."""
        for entry in [*first.entries, *self._rest(first.next_page_token)]:
            node = entry.node
            self.family.setdefault(node.parent_id if node.HasField("parent_id") else None, []).append(node.id)
            self.family[node.id] = []

    def _rest(self, token: str) -> list[pb.TreeEntry]:
        found: list[pb.TreeEntry] = []
        while token:
            page = self._tree.GetTree(pb.GetTreeRequest(page_size=2, page_token=token))
            found += page.entries
            token = page.next_page_token
        return found

    def catch_up(self) -> None:
        """Takes in all changes up to now, by a watch of its own."""
        now = position(self._tree)
        with watched(self._tree, self.position) as watch:
            for message in watch.read_until(lambda message: message.through_position >= now):
                for change in message.changes:
                    assert change.position > self.position
                    self.position = change.position
                    self._take_in(change)

    def _take_in(self, change: pb.TreeChange) -> None:
        for children in self.family.values():
            if change.node_id in children:
                children.remove(change.node_id)
        if change.kind == pb.TREE_CHANGE_KIND_DELETED:
            self.family.pop(change.node_id, None)
            return
        try:
            node = get(self._tree, change.node_id)
        except grpc.RpcError:
            # It is gone by now, which a later change tells.
            return
        self.family.setdefault(node.id, [])
        parent = node.parent_id if node.HasField("parent_id") else None
        self.family[parent] = roots(self._tree) if parent is None else list(get(self._tree, parent).children)


class TestFollowing:
    def test_reading_once_and_then_following_comes_to_what_the_forest_is(
        self, tree: SessionTreeStub, storage: SessionStorageStub
    ) -> None:
        grow(tree, "a a/b a/c b/d x")
        create(tree, "h", "a", awaits_content=True)
        follower = Follower(tree)
        storing.put(storage, "h")
        create(tree, "e", "d")
        move(tree, "c", "x")
        add_ref(tree, "c", "d")
        follower.catch_up()
        assert follower.family == Follower(tree).family
        move(tree, "d", "a", 0)
        delete(tree, "b", REPARENT)
        move(tree, "x", index=0)
        follower.catch_up()
        assert follower.family == Follower(tree).family
        delete(tree, "a", CASCADE)
        follower.catch_up()
        assert follower.family == Follower(tree).family == {None: ["x"], "x": ["c"], "c": []}

    def test_it_does_beside_eight_writers_and_positions_ascend(
        self, tree: SessionTreeStub, storage: SessionStorageStub
    ) -> None:
        grow(tree, "a b c")
        follower = Follower(tree)

        def write(writer: int) -> None:
            for step in range(6):
                name = f"{writer}-{step}"
                if step % 3 == 2:
                    create(tree, name, "abc"[step % 3], awaits_content=True)
                    storing.put(storage, name)
                else:
                    create(tree, name, "abc"[writer % 3])
                move(tree, name, "abc"[(writer + step) % 3], 0)
            delete(tree, f"{writer}-0")

        with watched(tree) as watch, ThreadPoolExecutor(9) as pool:
            done = [pool.submit(write, writer) for writer in range(8)]
            for each in done:
                each.result()
            follower.catch_up()
            last = position(tree)
            live = watch.read_until(lambda message: message.through_position >= last)
        assert follower.family == Follower(tree).family
        positions = [change.position for message in live for change in message.changes]
        assert positions == list(range(1, last + 1))
        assert told(live) == told_since(tree, 0)
        created = [word for word in told(live).split() if word.startswith("+")]
        assert len(created) == len(set(created)) == 3 + 48
