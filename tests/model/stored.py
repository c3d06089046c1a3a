"""What a database holds behind the contracts: how many rows, so that nothing is left of what is gone."""

from collections import Counter
from collections.abc import Callable

from sqlalchemy import Engine, func, select

from ramet_server.database.tables import session as sessions
from ramet_server.database.tables import tree as trees

TABLES = (
    sessions.session,
    sessions.session_tag,
    sessions.record,
    sessions.history_span,
    sessions.broken_group,
    sessions.released_span,
    sessions.context_slot,
    trees.topology_node,
    trees.node_ref,
)


def row_counter(engine: Engine) -> Callable[[], Counter[str]]:
    """Returns a function that counts the rows of each table."""

    def rows() -> Counter[str]:
        with engine.connect() as connection:
            return Counter(
                {
                    table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                    for table in TABLES
                }
            )

    return rows
