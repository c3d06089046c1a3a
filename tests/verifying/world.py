"""A database with a little of everything, what lies in it row by row, and a look at whether it is whole."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Table, delete, insert, select, update

from ramet_server.database.database import Database
from ramet_server.database.tables import metadata
from ramet_server.domain.call import Call
from ramet_server.domain.findings import Finding
from ramet_server.domain.limits import Limits
from ramet_server.sweeping import Sweep
from ramet_server.verifying import Verification
from tests.session_service.storage import Storage
from tests.telemetry import events as e
from tests.telemetry.world import World as Told
from tests.tree_service.forest import Forest, TurnedClock

Rows = dict[str, list[tuple[Any, ...]]]


class Space:
    """The services in one space."""

    def __init__(self, database: Database, name: str, clock: TurnedClock) -> None:
        self.name = name
        self.forest = Forest(database, Call(name), Limits(), clock)
        self.storage = Storage(database, name, Limits(), clock)  # type: ignore[arg-type]  # a clock like theirs
        self.told = Told(database, name, clock)  # type: ignore[arg-type]  # as above

    def fill(self) -> None:
        """Makes sessions, forks of living and of deleted ones, a forest over them, and what an agent tells."""
        storage, forest = self.storage, self.forest
        forest.grow(": main lone", "main: side deep other", "side: leaf")
        forest.add_ref("leaf", "lone")
        storage.put("main", "u a(x) u a u a(y) t(y) u", tags=["t", "v"], system_prompt="be brief")
        storage.put_insight("main", "see")
        storage.put("gone", "u a u a")
        storage.fork("gone", "heir", last=2)
        storage.append("heir", "u")
        storage.fork("main", "side")
        storage.append("side", "u a")
        storage.fork("side", "deep", up_to_seq=6)
        storage.append("main", "a u a(z)")
        storage.trim("main", 4)
        storage.truncate("side", 9)
        storage.append("side", "u")
        storage.delete("gone")
        self.told.told(
            e.started("e1", conversation_id="main"),
            *e.steps(2),
            e.tool("e4", "i1", step_key="s0"),
            e.feedback("e5", e.USEFUL),
            e.completed("e6"),
        )
        self.told.told(e.tool("e7", "i2", step_key="never"))


class World:
    """Two spaces in one database of their own."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = TurnedClock()
        self.space = Space(database, "space", self.clock)
        self.other = Space(database, "other", self.clock)

    def fill(self) -> None:
        """Puts the same into both spaces, and lets the sweep do its work."""
        self.space.fill()
        self.other.fill()
        Sweep(self.database, Limits(), self.clock).run(Call(""))

    def verify(self, *, space: str | None = None, repair: bool = False) -> list[Finding]:
        """Looks at everything."""
        verification = Verification(self.database, Limits(), self.clock)
        return list(verification.run(Call(""), space=space, repair=repair))

    def later(self, **by: float) -> None:
        """Lets time pass."""
        self.clock.ahead += timedelta(**by)

    def dump(self) -> Rows:
        """Returns every row of every table."""

        def read(connection: Any) -> Rows:
            return {
                table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))]
                for table in metadata.sorted_tables
            }

        return self.database.read(Call(""), read, snapshot=True)

    def restore(self, rows: Rows) -> None:
        """Makes every table hold just these rows, as ``dump`` returned them."""
        differing = {name for name, now in self.dump().items() if now != rows[name]}

        def write(connection: Connection) -> None:
            for table in metadata.sorted_tables:
                if table.name in differing:
                    connection.execute(delete(table))
                    names = [column.name for column in table.columns]
                    made = [dict(zip(names, row, strict=True)) for row in rows[table.name]]
                    if made:
                        connection.execute(insert(table), made)

        self.database.write(Call(""), write)

    def rows(self, table: Table, **where: Any) -> Sequence[Any]:
        """Returns some rows of a table."""
        wanted = select(table).where(*(table.c[name] == value for name, value in where.items()))
        return self.database.read(Call(""), lambda connection: connection.execute(wanted).all())

    def change(self, table: Table, where: dict[str, Any], **values: Any) -> None:
        """Changes rows behind the services' back; there must be some."""
        here = [table.c[name] == value for name, value in where.items()]
        statement = update(table).where(*here).values({table.c[name]: value for name, value in values.items()})
        assert self._write(statement) > 0

    def add(self, table: Table, **values: Any) -> None:
        """Adds a row behind the services' back."""
        self._write(insert(table).values({table.c[name]: value for name, value in values.items()}))

    def drop(self, table: Table, **where: Any) -> None:
        """Removes rows behind the services' back; there must be some."""
        assert self._write(delete(table).where(*(table.c[name] == value for name, value in where.items()))) > 0

    def origin(self, session_id: str, space: str = "space") -> str:
        """Returns the internal id of a session."""
        (row,) = self.rows(metadata.tables["session"], space_id=space, session_id=session_id)
        return str(row.origin)

    def _write(self, statement: Any) -> int:
        return self.database.write(Call(""), lambda connection: int(connection.execute(statement).rowcount))
