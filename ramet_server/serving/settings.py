"""The settings of a server: one table for environment, flags, defaults and what is printed at start."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import click

from ramet_server.database.engine import redacted
from ramet_server.domain.limits import Limits
from ramet_server.domain.retention import KeptDays, OnDelete, Retention, read_days
from ramet_server.serving.logs import FORMATS, LEVELS

_MIB = 1024 * 1024

F = TypeVar("F", bound=Callable[..., Any])


def _setting(default: Any, kind: click.ParamType[Any], text: str) -> Any:
    return field(default=default, metadata={"kind": kind, "help": text})


class _Days(click.ParamType[str]):
    name = "days"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the text where it can be read."""
        try:
            read_days(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return value


_COUNT = click.IntRange(min=1)
_SECONDS = click.FloatRange(min=0)


@dataclass(frozen=True)
class Settings:
    """What an operator may choose; each field is ``RAMET_<NAME>`` and ``--<name>``."""

    database_url: str = _setting(
        "sqlite:///ramet.db",
        click.STRING,
        "Database: sqlite:///FILE, mysql://USER:PASSWORD@HOST:PORT/NAME or mariadb://...",
    )
    listen: str = _setting("127.0.0.1:50051", click.STRING, "Address to listen on: HOST:PORT, or unix:PATH.")
    workers: int = _setting(
        1, _COUNT, "Processes that share the address, each with a pool of its own; more than one needs HOST:PORT."
    )
    pool_size: int = _setting(8, _COUNT, "Database connections, and threads that use them.")
    queue_size: int = _setting(1024, click.IntRange(min=0), "Calls that may wait for a thread; more are refused.")
    max_message_bytes: int = _setting(32 * _MIB, click.IntRange(min=_MIB), "Largest message, either way.")
    grace_seconds: float = _setting(30.0, _SECONDS, "Time that calls in flight get to finish at shutdown.")
    lame_duck_seconds: float = _setting(
        1.0, _SECONDS, "Time at shutdown in which calls are served while health says NOT_SERVING already."
    )
    max_connection_age_seconds: float = _setting(
        0.0, _SECONDS, "Age at which connections are renewed, so that a balancer can spread them; 0 for never."
    )
    request_id_hours: int = _setting(24, _COUNT, "Hours for which a request_id is remembered.")
    await_content_seconds: int = _setting(600, _COUNT, "Age at which a node still without content is swept.")
    session_days: str = _setting(
        "0",
        _Days(),
        "Days after their last write for which sessions are kept, 0 for ever; spaces may differ: 365,team-a=30.",
    )
    transaction_seconds: float = _setting(
        60.0, click.FloatRange(min=0, min_open=True), "Age at which an open transaction is ended."
    )
    transaction_operations: int = _setting(1000, _COUNT, "Reads and writes of one transaction.")
    transaction_bytes: int = _setting(16 * _MIB, _COUNT, "Requests of one transaction, in bytes.")
    open_transaction_bytes: int = _setting(
        256 * _MIB, _COUNT, "What all open transactions may keep in memory, in bytes; more are refused for a while."
    )
    tree_change_days: int = _setting(
        7, click.IntRange(min=0), "Days for which changes of the forest are kept for watches; 0 for ever."
    )
    watch_poll_seconds: float = _setting(
        0.5,
        click.FloatRange(min=0.01),
        "Time between two looks at what is watched; only changes of other servers wait for one.",
    )
    telemetry_abandoned_seconds: int = _setting(
        900, _COUNT, "Silence after which a running diagnosis shows as abandoned."
    )
    telemetry_days: str = _setting(
        "0",
        _Days(),
        "Days after their last change for which diagnoses are kept, 0 for ever; spaces may differ: 90,team-a=14.",
    )
    telemetry_on_delete: str = _setting(
        "detach",
        click.Choice([str(each) for each in OnDelete]),
        "What becomes of the diagnoses of a deleted conversation.",
    )
    sweep_seconds: float = _setting(60.0, _SECONDS, "Time between sweeps of what is no longer needed; 0 for none.")
    log_format: str = _setting("text", click.Choice(FORMATS), "Form of the log lines.")
    log_level: str = _setting("info", click.Choice(LEVELS, case_sensitive=False), "Least level that is logged.")

    def limits(self) -> Limits:
        """Returns the limits that the services keep under these settings."""
        days, days_of = read_days(self.telemetry_days)
        return Limits(
            request_id_hours=self.request_id_hours,
            await_content_seconds=self.await_content_seconds,
            max_transaction_seconds=self.transaction_seconds,
            max_transaction_operations=self.transaction_operations,
            max_transaction_bytes=self.transaction_bytes,
            max_open_transaction_bytes=self.open_transaction_bytes,
            tree_change_days=self.tree_change_days,
            watch_poll_seconds=self.watch_poll_seconds,
            abandoned_after_seconds=self.telemetry_abandoned_seconds,
            # A batch as large as it may be must fit into a message.
            max_batch_bytes=min(Limits.max_batch_bytes, self.max_message_bytes * 3 // 4),
            retention=Retention(days, days_of, OnDelete(self.telemetry_on_delete)),
            session_age=KeptDays(*read_days(self.session_days)),
        )

    def shown(self) -> dict[str, str]:
        """Returns every setting by its environment variable's name, without any secret.

        Raises ValueError where the database URL cannot be read.
        """
        values = {environment_name(f.name): str(getattr(self, f.name)) for f in fields(self)}
        return values | {"RAMET_DATABASE_URL": redacted(self.database_url)}


def environment_name(setting: str) -> str:
    """Returns the environment variable of a setting, as in ``RAMET_POOL_SIZE``."""
    return f"RAMET_{setting.upper()}"


def environment_names() -> list[str]:
    """Returns the environment variables of all settings."""
    return [environment_name(f.name) for f in fields(Settings)]


def settings_options(*names: str) -> Callable[[F], F]:
    """Makes a decorator that gives a command the options for these settings, or for all.

    The command's function gets them by name; ``settings_from`` makes a Settings of them.
    """
    chosen = [f for f in fields(Settings) if not names or f.name in names]

    def decorate(function: F) -> F:
        for each in reversed(chosen):
            function = click.option(
                f"--{each.name.replace('_', '-')}",
                each.name,
                envvar=environment_name(each.name),
                type=each.metadata["kind"],
                default=each.default,
                help=each.metadata["help"],
                show_default=True,
                show_envvar=True,
            )(function)
        return function

    return decorate


def settings_from(values: dict[str, Any]) -> Settings:
    """Builds the settings from a command's options; what it has no option for keeps its default."""
    return Settings(**values)
