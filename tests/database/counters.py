"""A counter per space, in the table `space`: the smallest thing that units of work can change."""

import time
import uuid
from datetime import UTC, datetime

from sqlalchemy import Connection, insert, select, update

from ramet_server.database.database import Database
from ramet_server.database.tables.shared import space
from ramet_server.domain.call import Call


def call(within_s: float | None = None, space_id: str | None = None) -> Call:
    """A call in a space of its own, with a deadline where one is given."""
    deadline = None if within_s is None else time.monotonic() + within_s
    return Call(space_id or uuid.uuid4().hex, deadline)


def start(connection: Connection, space_id: str) -> None:
    """Makes the counter, at 0."""
    connection.execute(insert(space).values(space_id=space_id, root_count=0, created_at=datetime.now(UTC)))


def value(connection: Connection, space_id: str) -> int | None:
    """Returns the counter; None where there is none."""
    found: int | None = connection.execute(
        select(space.c.root_count).where(space.c.space_id == space_id)
    ).scalar_one_or_none()
    return found


def add(connection: Connection, space_id: str) -> int:
    """Adds one by reading, then writing, under the row's lock; returns the new value."""
    query = select(space.c.root_count).where(space.c.space_id == space_id).with_for_update()
    new: int = connection.execute(query).scalar_one() + 1
    connection.execute(update(space).where(space.c.space_id == space_id).values(root_count=new))
    return new


def stored(database: Database, space_id: str) -> int | None:
    """Returns the counter as a new unit reads it."""
    return database.read(call(), lambda connection: value(connection, space_id))


def started(database: Database) -> str:
    """Makes a counter in a new space and returns the space."""
    new = call()
    database.write(new, lambda connection: start(connection, new.space))
    return new.space
