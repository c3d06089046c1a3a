"""Large forests, made by bulk SQL."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from sqlalchemy import Connection, insert, update

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
