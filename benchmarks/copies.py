"""Rows copied within a MariaDB database, with other ids and earlier times."""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Engine, Table

_IDS = {"session_id", "node_id", "parent_id"}
_ORIGINS = {"origin", "owner_origin"}
_NUMBERS = {"id", "step_id"}
_TIMES = {"created_at", "updated_at", "last_active_at", "started_at", "ended_at", "last_heard_at"}

# Numbers of telemetry rows begin with milliseconds; see telemetry/rules/row_ids.py.
_RANDOM_BITS = 22


@dataclass(frozen=True)
class Copies:
    """Rows and their copies, together so many times the rows."""

    times: int
    apart: timedelta
    """How much older each copy is than the one before."""

    def name(self, number: int, name: str) -> str:
        """Returns what an id is called in a copy; 0 stands for the rows themselves."""
        return f"copy-{number:03d}-{name}" if number else name

    def make(self, engine: Engine, table: Table) -> None:
        """Copies all rows of a table, which are no copies yet."""
        with engine.begin() as connection:
            connection.exec_driver_sql(f"CREATE TEMPORARY TABLE copied AS SELECT * FROM {table.name}")
        for number in range(1, self.times):
            names = ", ".join(f"`{column.name}`" for column in table.columns)
            values = ", ".join(self._value(column.name, number) for column in table.columns)
            with engine.begin() as connection:
                connection.exec_driver_sql(f"INSERT INTO {table.name} ({names}) SELECT {values} FROM copied")
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP TEMPORARY TABLE copied")

    def _value(self, column: str, number: int) -> str:
        seconds = int(self.apart.total_seconds()) * number
        if column in _IDS:
            # NULL stays NULL.
            return f"CONCAT('{self.name(number, '')}', `{column}`)"
        if column in _ORIGINS:
            return f"CONCAT('c{number:03d}', SUBSTR(`{column}`, 5))"
        if column in _TIMES:
            return f"`{column}` - INTERVAL {seconds} SECOND"
        if column in _NUMBERS:
            return f"`{column}` - {seconds * 1000 << _RANDOM_BITS}"
        if column == "index":
            return f"IF(parent_id IS NULL, {number}, `index`)"
        return f"`{column}`"
