"""Engines: which databases are taken, and what holds on each of their connections."""

from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError

from ramet_server.database.backend import Backend
from ramet_server.database.faults import is_lost
from ramet_server.database.mysql import MySqlBackend
from ramet_server.database.sqlite import SqliteBackend

WATCH = "ramet_watch"
"""Key in ``Connection.info`` of the watch over the unit that has the connection."""


def parse_url(text: str) -> URL:
    """Returns a database URL in the form that Ramet uses; raises ValueError that says what is wrong.

    ``sqlite:///file``, ``mysql://``, ``mariadb://`` and ``mysql+pymysql://`` are taken.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # SQLAlchemy's own text repeats the URL, and with it the password.
        raise ValueError("The database URL cannot be read; expected something like mysql://user@host/name.") from None
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        if not url.database or url.database == ":memory:" or "mode" in url.query or url.database.startswith("file:"):
            raise ValueError("SQLite needs a file, as in sqlite:///ramet.db; databases in memory are not supported.")
        return url.set(drivername="sqlite+pysqlite")
    if url.drivername in ("mysql", "mariadb", "mysql+pymysql", "mariadb+pymysql"):
        if not url.database:
            raise ValueError("The database URL names no database, as in mysql://user@host/ramet.")
        # One dialect name for both servers; what differs is decided when a connection tells its version.
        return url.set(drivername="mysql+pymysql").difference_update_query(["charset", "collation"])
    raise ValueError(f"The database scheme {url.drivername!r} is not supported; use sqlite, mysql or mariadb.")


def redacted(text: str) -> str:
    """Returns a database URL fit for a log: without its password, and without options that may hold one."""
    url = parse_url(text)
    return url.set(query={}).render_as_string(hide_password=True)


def open_engine(url: str, pool_size: int = 8) -> tuple[Engine, Backend]:
    """Returns an engine under Ramet's policy, and that policy; it connects on first use.

    ``pool_size`` connections serve units of work; two more may open for probes and migrations.
    """
    parsed = parse_url(url)
    backend: Backend = SqliteBackend() if parsed.get_backend_name() == "sqlite" else MySqlBackend(parsed)
    engine = create_engine(
        parsed,
        pool_size=pool_size,
        max_overflow=2,
        pool_timeout=10,
        # The connections used last are used first, so that spare ones can idle away.
        pool_use_lifo=True,
        # Statements are logged, stored values never.
        hide_parameters=True,
        **backend.engine_options(),
    )

    @event.listens_for(engine, "connect")
    def set_up(driver: Any, _record: object) -> None:
        backend.on_connect(driver)

    @event.listens_for(engine, "before_cursor_execute")
    def refuse_late_statement(connection: Connection, *_: object) -> None:
        watch = connection.info.get(WATCH)
        if watch is not None:
            watch.check()

    @event.listens_for(engine, "handle_error")
    def know_lost_connections(context: ExceptionContext) -> None:
        if is_lost(context.original_exception):
            context.is_disconnect = True

    return engine, backend
