"""The statements as MySQL 8 would get them, where none runs."""

from typing import Any, cast

import pytest
from sqlalchemy import Connection
from sqlalchemy.dialects import mysql

from tree_service.store.lines import SqlLines


class Compiled(Exception):
    """Carries the text of a statement that was to be executed."""


class _Printer:
    """Stands in for a connection."""

    def execute(self, statement: Any) -> None:
        """Compiles a statement for MySQL."""
        raise Compiled(" ".join(str(statement.compile(dialect=mysql.dialect())).split()))


def _text(method: str, *arguments: object) -> str:
    with pytest.raises(Compiled) as seen:
        getattr(SqlLines(cast("Connection", _Printer()), "space"), method)(*arguments)
    return str(seen.value)


def test_the_way_down_names_its_index() -> None:
    text = _text("descendant_ids", "a")
    assert text.startswith("WITH RECURSIVE below(node_id, depth, parent_id, `index`) AS (SELECT ")
    assert "JOIN topology_node AS child FORCE INDEX (topology_node_by_parent) ON " in text


def test_the_way_up_stops_at_a_depth() -> None:
    text = _text("ancestor_ids", "a", 3)
    assert text.startswith("WITH RECURSIVE above(node_id, parent_id, depth) AS (SELECT ")
    assert "above.depth > %s" in text


def test_a_page_of_ids_is_cut_before_their_rows_are_read() -> None:
    for text in (_text("subtree", "a", None, 10), _text("ancestors", "a", None, 10)):
        assert text.endswith(" LIMIT %s")
