"""A backend under test: a real server over a database, a channel to it, and a look into its tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import sqlalchemy as sa

from ramet_server.database.tables import metadata
from tests.harness.server import running_server

MESSAGE_LIMIT_BYTES = 32 * 1024 * 1024


class Backend:
    """What a module of the suite is given: how to call the server, and what its database holds."""

    def __init__(self, channel: grpc.Channel, engine: sa.Engine) -> None:
        self.channel = channel
        self.engine = engine

    def tables_holding(self, text: str) -> set[str]:
        """The names of the tables in which any column of any row contains this text."""
        found = set()
        with self.engine.connect() as connection:
            for table in metadata.sorted_tables:
                texts = [column for column in table.columns if isinstance(column.type, (sa.String, sa.Text))]
                # instr, not LIKE: the text is no pattern.
                holds = sa.or_(*(sa.func.instr(column, text) > 0 for column in texts))
                if connection.execute(sa.select(sa.literal(1)).select_from(table).where(holds).limit(1)).first():
                    found.add(table.name)
        return found


@contextmanager
def serving(url: str) -> Iterator[Backend]:
    """A server over the database at this URL, with every service, for as long as the block lasts."""
    options = [
        ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
        ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
    ]
    engine = sa.create_engine(url.replace("mysql://", "mysql+pymysql://"), poolclass=sa.NullPool)
    with running_server(url) as address, grpc.insecure_channel(address, options=options) as channel:
        yield Backend(channel, engine)
    engine.dispose()
