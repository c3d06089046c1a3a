"""Large forests, made by bulk SQL."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from sqlalchemy import Connection, case, func, insert, literal, select, update

from ramet_server.database.tables.shared import space
from ramet_server.database.tables.tree import topology_node
from tests.tree_service.forest import Forest

_AT_ONCE = 5000


def plant(forest: Forest, nodes: Iterable[tuple[str, str | None]], label: str = "") -> None:
    """Stores nodes below a forest that is empty so far; each is an id and its parent, parents first."""
    depths: dict[str | None, int] = {None: -1}
    counts: dict[str | None, int] = {None: 0}
    rows: list[dict[str, Any]] = []
    now = forest.clock.now()
    for node_id, parent_id in nodes:
        depths[node_id] = depths[parent_id] + 1
        counts[node_id] = 0
        rows.append(
            {
                "space_id": forest.call.space,
                "node_id": node_id,
                "parent_id": parent_id,
                "depth": depths[node_id],
                "index": counts[parent_id],
                "label": label,
                "source_session_id": None,
                "awaits_content": False,
                "config_version": 0,
                "version": 1,
                "created_at": now,
                "updated_at": now,
            }
        )
        counts[parent_id] += 1
    for row in rows:
        row["child_count"] = counts[row["node_id"]]

    def store(connection: Connection) -> None:
        for some in _pieces(rows):
            connection.execute(insert(topology_node), some)
        connection.execute(update(space).where(space.c.space_id == forest.call.space).values(root_count=counts[None]))

    # The space comes into being with its first node.
    forest.create("seed")
    forest.delete("seed")
    forest.database.write(forest.call, store)


def multiply(forest: Forest, copies: int) -> None:
    """Adds so many copies of all that is there, within the database; the ids of a copy begin with its number."""
    t = topology_node.c
    here = forest.call.space
    names = [column.name for column in t]

    def store(connection: Connection) -> None:
        count = connection.execute(select(space.c.root_count).where(space.c.space_id == here)).scalar_one()
        original = select(func.max(t.node_id)).where(t.space_id == here)
        last = connection.execute(original).scalar_one()
        for copy in range(1, copies + 1):
            prefix = f"{copy:03}-"
            changed = {
                "node_id": literal(prefix) + t.node_id,
                "parent_id": literal(prefix) + t.parent_id,
                "index": case((t.parent_id.is_(None), t.index + copy * count), else_=t.index),
            }
            columns = [changed.get(name, t[name]).label(name) for name in names]
            # Copies sort before the original, whose ids begin with a letter.
            originals = select(*columns).where(t.space_id == here, t.node_id > "a", t.node_id <= last)
            connection.execute(insert(topology_node).from_select(names, originals))
        connection.execute(update(space).where(space.c.space_id == here).values(root_count=count * (copies + 1)))

    forest.database.write(forest.call, store)


def chain(length: int) -> Iterator[tuple[str, str | None]]:
    """Returns a line of nodes, each the only child of the one before."""
    for depth in range(length):
        yield name(depth), name(depth - 1) if depth else None


def name(number: int) -> str:
    """Returns the id of a planted node."""
    return f"n{number:06}"


def _pieces(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    ahead = iter(rows)
    while some := list(islice(ahead, _AT_ONCE)):
        yield some
