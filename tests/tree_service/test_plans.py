"""How the database answers: by which index, and in how many statements."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import event, insert, text

from ramet.tree.v1 import tree_pb2 as pb
from ramet_server.database.database import Database
from ramet_server.database.tables.session import session
from ramet_server.database.tables.tree import node_ref
from ramet_server.domain.call import Call
from ramet_server.domain.ids import new_id, new_origin
from ramet_server.domain.limits import Limits
from tests.tree_service.bulk import multiply, name, plant
from tests.tree_service.forest import Forest, TurnedClock
from tree_service.rules.watching import WatchRules
from tree_service.store import SqlBacklog, TreeStore

COPIES = 30
Statement = tuple[str, Any]


@pytest.fixture(scope="module")
def crowded(database: Database) -> Forest:
    """A space of three thousand nodes, beside another one."""
    for space in ("other", "crowded"):
        forest = Forest(database, Call(f"{space}-{new_id()}"), Limits(), TurnedClock())
        plant(forest, ((name(n), name((n - 1) // 3) if n else None) for n in range(100)))
        multiply(forest, COPIES)
        _refer(forest)
        _talk(forest)
    if database.engine.dialect.name == "mysql":
        every = "topology_node, node_ref, session, session_removal, space, tree_change"
        database.read(Call("x"), lambda connection: connection.execute(text(f"ANALYZE TABLE {every}")).all())
    return forest


def _talk(forest: Forest) -> None:
    """Gives sessions to the nodes of all trees but the first."""
    row = forest.session_row("")
    ids = [f"{copy:03}-{name(n)}" for copy in range(1, COPIES + 1) for n in range(100)]
    rows = [row | {"session_id": session_id, "origin": new_origin()} for session_id in ids]
    forest.database.write(forest.call, lambda connection: connection.execute(insert(session), rows))


def _refer(forest: Forest) -> None:
    """Adds references from each tree to the next one, at the same place."""
    rows = [
        {
            "space_id": forest.call.space,
            "node_id": f"{copy:03}-{name(n)}",
            "target_id": f"{copy + 1:03}-{name(n)}",
            "created_at": forest.clock.now(),
        }
        for copy in range(1, COPIES)
        for n in range(100)
    ]
    forest.database.write(forest.call, lambda connection: connection.execute(insert(node_ref), rows))


@contextmanager
def statements(database: Database) -> Iterator[list[Statement]]:
    """Collects the statements that run within the block, with their parameters."""
    seen: list[Statement] = []

    def see(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        seen.append((statement, parameters))

    event.listen(database.engine, "before_cursor_execute", see)
    try:
        yield seen
    finally:
        event.remove(database.engine, "before_cursor_execute", see)


def every_call(forest: Forest) -> None:
    """Makes each kind of call once, each kind of list from its middle too."""
    middle = name(20)
    for kind, method, request in (
        ("nodes", "ListNodes", pb.ListNodesRequest()),
        ("nodes", "ListNodes", pb.ListNodesRequest(filter=pb.NodeFilter(label_prefix="x"))),
        ("nodes", "ListNodes", pb.ListNodesRequest(filter=pb.NodeFilter(source_session_id="x"))),
        ("nodes", "ListRoots", pb.ListRootsRequest()),
        ("nodes", "ListChildren", pb.ListChildrenRequest(node_id=name(0))),
        ("nodes", "GetSiblings", pb.GetSiblingsRequest(node_id=name(1))),
        ("nodes", "GetAncestors", pb.GetAncestorsRequest(node_id=name(99))),
        ("nodes", "ListDescendants", pb.ListDescendantsRequest(node_id=name(0))),
        ("entries", "GetTree", pb.GetTreeRequest()),
        ("entries", "GetTree", pb.GetTreeRequest(node_id=name(0))),
    ):
        request.page_size = 2
        for _, page in zip(range(2), forest.pages(method, request), strict=False):
            assert getattr(page, kind) or "filter" in str(request)
    forest.get(middle)
    forest.create("new", middle, config=pb.Config(), request_id=new_id())
    forest.create("waits", middle, awaits_content=True)
    forest.make_session("new")
    forest.relabel("new", "label")
    forest.add_ref("new", name(2))
    forest.move("new", name(98), 0)
    forest.move(name(20), name(1), 0)
    forest.move("new")
    forest.remove_ref("new", name(2))
    forest.add_ref("new", name(50))
    forest.put_config("new", pb.Config())
    forest.config("new")
    forest.delete("new", delete_sessions=True)
    forest.delete(name(1), pb.DELETE_POLICY_REPARENT)
    forest.delete(name(2), pb.DELETE_POLICY_CASCADE, delete_sessions=True)
    forest.sweep.waiting(forest.call, 10)
    for removal in forest.sweep.pending_removals(forest.call, 10):
        forest.sweep.finish_removal(forest.call, removal)
    watch(forest)


def watch(forest: Forest) -> None:
    """Reads all changes as a watcher does, looks at what is watched, and forgets a few changes."""
    rules = WatchRules(TreeStore(forest.database, forest.limits, forest.clock), SqlBacklog(forest.database))
    assert rules.begin(forest.call, None) > rules.begin(forest.call, 0)
    assert rules.news(forest.call, 0).changes
    assert rules.extents(forest.call, [forest.call.space])
    forest.clock.ahead += timedelta(days=8)
    assert forest.sweep.forget_changes(forest.call, 10) >= 10
    forest.clock.ahead -= timedelta(days=8)


def faults(database: Database, statement: str, parameters: Any) -> Sequence[str]:
    """Returns what of a statement's plan reads a whole table or index, or all that a space has of it."""
    explain = "EXPLAIN QUERY PLAN" if database.engine.dialect.name == "sqlite" else "EXPLAIN"
    first = parameters[0] if isinstance(parameters, list) else parameters

    def read(connection: Any) -> list[Any]:
        return list(connection.exec_driver_sql(f"{explain} {statement}", first).mappings())

    rows = database.read(Call("x"), read)
    if explain == "EXPLAIN":
        return [
            str(dict(row))
            for row in rows
            if row["table"]
            and not row["table"].startswith("<")
            # 130 bytes of a key are the space alone.
            and (row["type"] in ("ALL", "index") or (row["type"] == "ref" and row["key_len"] == "130"))
        ]
    # What a query made itself (a recursion, a page) may be read whole.
    own = ("SCAN below", "SCAN above", "SCAN page", "SCAN CONSTANT ROW")
    return [
        row["detail"]
        for row in rows
        if (row["detail"].startswith("SCAN") and not row["detail"].startswith(own))
        or (row["detail"].endswith("(space_id=?)") and " space " not in row["detail"])
    ]


def test_no_call_reads_a_whole_table(crowded: Forest) -> None:
    with statements(crowded.database) as seen:
        every_call(crowded)
    found = {
        statement: faults(crowded.database, statement, parameters)
        for statement, parameters in dict(seen).items()
        if statement.startswith(("SELECT", "UPDATE", "DELETE", "WITH"))
    }
    assert len(found) > 25
    bad = {statement: plan for statement, plan in found.items() if plan}
    # The removals of all spaces are read by age, as many as are taken.
    assert not {statement: plan for statement, plan in bad.items() if "FROM session_removal ORDER BY" not in statement}


def test_calls_are_few_statements(crowded: Forest) -> None:
    parent, leaf = f"002-{name(7)}", f"001-{name(99)}"
    for most, work in (
        # Of each, two open a snapshot or begin, which are not always statements.
        (3, partial(crowded.get, leaf)),
        (5, partial(crowded.get, parent)),
        (4, partial(crowded.children, parent)),
        (4, partial(crowded.nodes, 1000, source_session_id="nobody")),
        # Two more tell those who watch.
        (7 + 2, partial(crowded.create, "a", parent, request_id=new_id())),
        (8 + 2, partial(crowded.relabel, "a", "x", request_id=new_id())),
    ):
        with statements(crowded.database) as seen:
            work()
        told = [statement for statement, _ in seen if not statement.startswith(("BEGIN", "START", "SET"))]
        assert len(told) <= most, told
    crowded.delete("a")
