"""Lists and their pages."""

import pytest

from ramet.tree.v1 import tree_pb2 as pb
from ramet_server.domain.errors import InvalidField, InvalidPageToken, NodeNotFound
from tests.tree_service.bulk import name, plant
from tests.tree_service.forest import Forest


def test_lists_are_complete_at_every_page_size(forest: Forest) -> None:
    forest.grow(": a b", "a: c d e", "b: f", "d: g h", "h: i")
    for size in (1, 2, 3, 5, 100):
        assert forest.nodes(size) == list("abcdefghi")
        assert forest.children("a", size) == ["c", "d", "e"]
        assert forest.siblings("d", size) == ["c", "e"]
        assert forest.ancestors("i", size) == ["h", "d", "a"]
        assert forest.descendants("a", size) == ["c", "d", "e", "g", "h", "i"]
        assert forest.tree(None, size) == list("abcdefghi")
        assert forest.tree("d", size) == ["d", "g", "h", "i"]


def test_pages_end_where_the_list_does(forest: Forest) -> None:
    forest.grow(": a b c d")
    pages = list(forest.pages("ListRoots", pb.ListRootsRequest(page_size=2)))
    assert [[node.id for node in page.nodes] for page in pages] == [["a", "b"], ["c", "d"]]
    pages = list(forest.pages("GetTree", pb.GetTreeRequest(page_size=2)))
    assert [len(page.entries) for page in pages] == [2, 2]


def test_the_forest_comes_by_depth_parent_index(forest: Forest) -> None:
    # Parents are created, and named, so that neither the order of creation nor that of ids is the right one.
    forest.grow(": z Z", "z: m b", "Z: y", "m: x1 x2", "b: w", "y: v")
    wanted = ["z", "Z", "y", "m", "b", "w", "x1", "x2", "v"]
    for size in (1, 2, 3, 4, 100):
        assert forest.tree(None, size) == wanted
    assert forest.descendants("z", 1) == ["m", "b", "w", "x1", "x2"]


def test_leaves_and_roots_have_empty_lists(forest: Forest) -> None:
    forest.grow(": a b")
    assert forest.children("a") == []
    assert forest.siblings("a") == []
    assert forest.ancestors("a") == []
    assert forest.descendants("a") == []
    assert forest.tree("a") == ["a"]


def test_lists_of_unknown_nodes_are_refused(forest: Forest) -> None:
    for read in (forest.children, forest.siblings, forest.ancestors, forest.descendants, forest.tree):
        with pytest.raises(NodeNotFound):
            read("nobody")


def test_filters_compare_exactly(forest: Forest) -> None:
    labels = ["Plan", "plan a", "plan ", "plan", "plan%", "plan_b", "pla", "Größe", "größe"]
    for position, label in enumerate(labels):
        forest.create(f"n{position}", label=label, source_session_id="s" if position % 2 else "S")
    assert forest.nodes(label_prefix="plan") == ["n1", "n2", "n3", "n4", "n5"]
    assert forest.nodes(label_prefix="plan ") == ["n1", "n2"]
    assert forest.nodes(label_prefix="plan%") == ["n4"]
    assert forest.nodes(label_prefix="plan_") == ["n5"]
    assert forest.nodes(label_prefix="gr") == ["n8"]
    assert forest.nodes(label_prefix="x') OR 1=1 --") == []
    assert forest.nodes(source_session_id="s") == ["n1", "n3", "n5", "n7"]
    assert forest.nodes(1, source_session_id="s", label_prefix="plan") == ["n1", "n3", "n5"]


def test_a_filter_that_admits_little_reads_on_in_bounded_steps(forest: Forest) -> None:
    plant(forest, ((name(position), None) for position in range(1205)))
    for position in (3, 1003, 1204):
        forest.relabel(name(position), "hit")
    request = pb.ListNodesRequest(filter=pb.NodeFilter(label_prefix="hit"), page_size=2)
    pages = [[node.id for node in page.nodes] for page in forest.pages("ListNodes", request)]
    assert pages == [["n000003"], ["n001003", "n001204"]]


def test_an_unknown_filter_condition_is_refused(forest: Forest) -> None:
    unknown = pb.NodeFilter.FromString(b"\x7a\x01x")
    with pytest.raises(InvalidField):
        forest.service.ListNodes(pb.ListNodesRequest(filter=unknown), forest.call)


def test_bad_pages_are_refused(forest: Forest) -> None:
    forest.grow(": a b", "a: c d")
    token = forest.service.ListRoots(pb.ListRootsRequest(page_size=1), forest.call).next_page_token
    with pytest.raises(InvalidField):
        forest.service.ListRoots(pb.ListRootsRequest(page_size=-1), forest.call)
    for bad in ("x", token + "x", token[:-3]):
        with pytest.raises(InvalidPageToken):
            forest.service.ListRoots(pb.ListRootsRequest(page_token=bad), forest.call)
    with pytest.raises(InvalidPageToken):
        forest.service.ListChildren(pb.ListChildrenRequest(node_id="a", page_token=token), forest.call)
    with pytest.raises(InvalidPageToken):
        forest.service.GetTree(pb.GetTreeRequest(page_token=token), forest.call)


def test_pages_are_bounded_by_bytes_too(forest: Forest) -> None:
    forest.grow(": a b c d e f")
    for target in "bcdef":
        forest.add_ref("a", target)
    tight = forest.with_limits(max_page_bytes=200)
    for method, request in (("ListRoots", pb.ListRootsRequest()), ("ListNodes", pb.ListNodesRequest())):
        pages = [[node.id for node in page.nodes] for page in tight.pages(method, request)]
        assert "".join("".join(page) for page in pages) == "abcdef"
        assert len(pages) > 1
    assert tight.tree() == list("abcdef")
    assert len(list(tight.pages("GetTree", pb.GetTreeRequest()))) > 1


def test_the_tree_shows_sessions_where_they_exist(forest: Forest) -> None:
    forest.grow(": a", "a: b c")
    forest.make_session("a", turn_count=3)
    forest.make_session("b", status="ARCHIVED")
    for entries in (forest.entries(), forest.entries("a")):
        shown = [(e.node.id, e.status, e.turn_count if e.HasField("turn_count") else None) for e in entries]
        assert shown == [
            ("a", pb.SESSION_STATUS_ACTIVE, 3),
            ("b", pb.SESSION_STATUS_ARCHIVED, 0),
            ("c", pb.SESSION_STATUS_UNSPECIFIED, None),
        ]


def test_server_info_tells_the_limits(forest: Forest) -> None:
    info = forest.service.GetServerInfo(pb.GetServerInfoRequest(), forest.call)
    assert info.limits.max_tree_page_size == 10_000
    assert info.version
    assert info.schema_revision
