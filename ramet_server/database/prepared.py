"""Statements that are compiled once and then handed to the driver as they are.

SQLAlchemy's own execution of a small statement costs more than the database's: on two cores SELECT 1 took
180 us of CPU through it, and a row by its key 58 us by the driver alone. What runs once in a while has
no need of this; appends have.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Dialect, Executable
from sqlalchemy.sql.dml import Insert
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.types import TypeEngine

_NAMED = re.compile(r"%\((\w+)\)s")

Processor = Callable[[Any], Any]
Row = tuple[Any, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bound:
    """A statement with its parameters, as the driver takes them."""

    text: str
    parameters: Sequence[Row]
    """One row of them, or for an insert as many as there are rows to store."""
    stores: bool
    """Whether it is such an insert."""
    processors: Sequence[tuple[int, Processor]] = ()
    """What makes values of those columns that the driver reads as something else."""

    def read(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Returns the rows that the driver read, as values."""
        if not self.processors:
            return rows
        return [self._read(row) for row in rows]

    def _read(self, row: Row) -> Row:
        values = list(row)
        for place, process in self.processors:
            values[place] = process(values[place])
        return tuple(values)


@dataclass(frozen=True, slots=True)
class Guard:
    """A query of one number, and what the number must be."""

    query: Bound
    number: int


@dataclass(frozen=True, slots=True)
class _Compiled:
    text: str
    names: Sequence[tuple[str, Processor | None]]
    processors: Sequence[tuple[int, Processor]]
    own: Mapping[str, Any]
    """Values that the statement brings itself, such as the offset that SQLite wants beside a limit."""

    def row(self, values: Mapping[str, Any]) -> Row:
        if self.own:
            values = {**self.own, **values}
        return tuple([values[name] if process is None else process(values[name]) for name, process in self.names])

    def rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        processed = [(place, process) for place, (_, process) in enumerate(self.names) if process is not None]
        if not processed:
            return rows
        made = []
        for row in rows:
            values = list(row)
            for place, process in processed:
                values[place] = process(values[place])
            made.append(tuple(values))
        return made


class Prepared:
    """A statement of Core expressions, whose parameters have names and types."""

    def __init__(
        self, statement: Executable | Callable[[str], Executable], *, columns: Sequence[str] | None = None
    ) -> None:
        """Takes the statement, or what makes it for a dialect's name; an insert's ``columns`` get values."""
        self._statement = statement
        self._columns = None if columns is None else list(columns)
        self._compiled: WeakKeyDictionary[Dialect, _Compiled] = WeakKeyDictionary()

    def bind(self, connection: Connection, values: Mapping[str, Any]) -> Bound:
        """Returns the statement with values for its parameters."""
        compiled = self._for(connection.dialect)
        return Bound(compiled.text, (compiled.row(values),), False, compiled.processors)

    def bind_rows(self, connection: Connection, rows: Sequence[Row]) -> Bound:
        """Returns the insert of these rows, which are at least one and have the values of ``columns`` in order."""
        compiled = self._for(connection.dialect)
        return Bound(compiled.text, compiled.rows(rows), True)

    def all(self, connection: Connection, values: Mapping[str, Any]) -> Sequence[Row]:
        """Runs the statement and returns its rows."""
        bound = self.bind(connection, values)
        return bound.read(run(connection, bound))

    def _for(self, dialect: Dialect) -> _Compiled:
        compiled = self._compiled.get(dialect)
        if compiled is None:
            compiled = self._compiled[dialect] = self._compile(dialect)
        return compiled

    def _compile(self, dialect: Dialect) -> _Compiled:
        statement: Any = self._statement
        if not isinstance(statement, ClauseElement):
            statement = statement(dialect.name)
        compiled = statement.compile(dialect=dialect, column_keys=self._columns)
        text, ordered = str(compiled), compiled.positiontup
        if ordered is None:
            # By place, since a tuple of values is made faster than a dictionary.
            ordered = _NAMED.findall(text)
            text = _NAMED.sub("%s", text)
        if self._columns is not None and list(ordered) != self._columns:
            raise ValueError("The columns of an insert must be named in the order of their table.")
        names = [(name, _bind_processor(compiled.binds[name].type, dialect)) for name in ordered]
        processors = []
        if not isinstance(statement, Insert) and hasattr(statement, "selected_columns"):
            for place, column in enumerate(statement.selected_columns):
                process = column.type.dialect_impl(dialect).result_processor(dialect, None)
                if process is not None:
                    processors.append((place, process))
        own = {name: compiled.binds[name].value for name in ordered if not compiled.binds[name].required}
        return _Compiled(text, names, processors, own)


def run(connection: Connection, bound: Bound) -> Sequence[Row]:
    """Runs one statement; returns its rows as the driver read them."""
    return on_driver(connection, [bound], lambda driver: _execute(driver, bound))


def _execute(driver: Any, bound: Bound) -> Sequence[Row]:
    cursor = driver.cursor()
    try:
        if bound.stores:
            cursor.executemany(bound.text, bound.parameters)
            return ()
        cursor.execute(bound.text, bound.parameters[0])
        rows: Sequence[Row] = cursor.fetchall() if cursor.description else ()
        return rows
    finally:
        cursor.close()


def on_driver(connection: Connection, statements: Sequence[Bound], work: Callable[[Any], T]) -> T:
    """Runs ``work`` with the driver's connection, within the same hooks and faults as any statement."""
    try:
        # Whoever listens, as the check of a call's deadline does, hears of these statements as of all others.
        for hear in connection.dispatch.before_cursor_execute:
            for each in statements:
                given = each.parameters if each.stores else each.parameters[0]
                hear(connection, None, each.text, given, None, each.stores)
        return work(connection.connection.driver_connection)
    except connection.dialect.loaded_dbapi.Error as error:
        _refuse(connection, error, statements)


def _refuse(connection: Connection, error: Exception, statements: Sequence[Bound]) -> NoReturn:
    text = statements[0].text if statements else ""
    # No public way raises a driver's error as SQLAlchemy does, which also gives up a connection that broke.
    connection._handle_dbapi_exception(error, text, None, None, None)  # noqa: SLF001


def _bind_processor(kind: TypeEngine[Any], dialect: Dialect) -> Processor | None:
    return kind.dialect_impl(dialect).bind_processor(dialect)
