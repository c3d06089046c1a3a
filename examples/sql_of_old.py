"""The six queries that people put to the tables before there was a call for each, as they wrote them."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOOLS_OF_A_DIAGNOSIS = "SELECT * FROM tool_invocation WHERE session_id=?"
HITS_BY_LAYER = (
    "SELECT retrieval_layer, COUNT(*) FROM tool_invocation WHERE tool_name='lookup_knowledge' GROUP BY retrieval_layer"
)
THINKING_TIME = "SELECT AVG(duration_ms) FROM agent_step WHERE agent_name=?"
DECISION_CHAIN = "SELECT * FROM agent_step WHERE session_id=? ORDER BY step_index"
TRUNCATED = "SELECT COUNT(*) FROM tool_invocation WHERE is_truncated=true AND tool_name='lookup_knowledge'"
SURE_AND_WRONG = (
    "SELECT * FROM diagnosis_session WHERE JSON_EXTRACT(self_evaluation, '$.confidence') > 80 AND feedback='not_useful'"
)


class Tables:
    """A server's SQLite file, read beside it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.row_factory = sqlite3.Row

    def rows(self, query: str, *values: str) -> list[dict[str, Any]]:
        """Runs a query."""
        return [dict(row) for row in self._connection.execute(query, values)]

    def value(self, query: str, *values: str) -> Any:
        """Runs a query of one row and column."""
        (row,) = self._connection.execute(query, values)
        (value,) = row
        return value


@contextmanager
def tables(database: Path) -> Iterator[Tables]:
    """Opens a file to read it."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        yield Tables(connection)
    finally:
        connection.close()
