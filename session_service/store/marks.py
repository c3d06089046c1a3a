"""The SQL of marks: records of broken tool-call groups, by the session that shows them."""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select

from ramet_server.database.tables.session import broken_group


class SqlMarks:
    """Marks by owner; implements ``rules.ports.Marks``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of(self, owner: str, first_seq: int, last_seq: int) -> list[int]:
        """Returns the marked seqs of a range, ascending."""
        query = select(broken_group.c.seq).where(_range(owner, first_seq, last_seq)).order_by(broken_group.c.seq)
        return list(self._connection.execute(query).scalars())

    def add(self, owner: str, seqs: Iterable[int]) -> None:
        """Marks records that are not marked yet."""
        rows = [{"origin": owner, "seq": seq} for seq in seqs]
        if rows:
            self._connection.execute(insert(broken_group), rows)

    def remove(self, owner: str, first_seq: int, last_seq: int) -> None:
        """Unmarks a range."""
        self._connection.execute(delete(broken_group).where(_range(owner, first_seq, last_seq)))


def _range(owner: str, first_seq: int, last_seq: int) -> ColumnElement[bool]:
    return and_(broken_group.c.origin == owner, broken_group.c.seq >= first_seq, broken_group.c.seq <= last_seq)
