"""The SQL of the row that orders the changes of one space's forest."""

from datetime import datetime

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from ramet_server.database.faults import is_duplicate
from ramet_server.database.tables.shared import space


class SpaceMissing(Exception):
    """Tells the store to make the row of the space; it never reaches a rule."""


class SqlSpace:
    """Implements ``rules.ports.Space``."""

    def __init__(self, connection: Connection, space_id: str) -> None:
        self._connection = connection
        self._space_id = space_id
        self.tree_position: int | None = None
        """The position of the last change; known once the row is locked."""

    def lock(self, *, make: bool = False) -> int | None:
        """Locks the row until the unit ends, and returns the number of roots; None where there is no row."""
        row = self._connection.execute(
            select(space.c.root_count, space.c.tree_position)
            .where(space.c.space_id == self._space_id)
            .with_for_update()
        ).one_or_none()
        if row is None:
            if make:
                raise SpaceMissing
            return None
        self.tree_position = row.tree_position
        count: int = row.root_count
        return count

    def add_roots(self, by: int) -> None:
        """Changes the number of roots."""
        self._connection.execute(
            update(space).where(space.c.space_id == self._space_id).values(root_count=space.c.root_count + by)
        )


def make_space(connection: Connection, space_id: str, now: datetime) -> None:
    """Makes the row of a space, unless another was faster."""
    try:
        connection.execute(insert(space).values(space_id=space_id, root_count=0, created_at=now))
    except IntegrityError as error:
        if not is_duplicate(error):
            raise
