"""Whether calls may begin: only once the database was reached and its schema checked."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from ramet_server.domain.errors import Aborted, DatabaseUnavailable, Exhausted, RametError, Unavailable
from ramet_server.serving.logs import fields
from ramet_server.serving.workers import Workers

PING_SECONDS = 5.0
"""Time between two looks at a database that was found; also the longest that one look should take."""

_FIRST_DELAY_S = 0.2
_LONGEST_DELAY_S = 5.0

_NOT_YET = "The server has not reached its database yet."

_log = logging.getLogger(__name__)

Show = Callable[[bool], Awaitable[None]]


class StartRefused(Exception):
    """The server must not run like this; the text is one line for the operator."""


class Readiness:
    """Prepares the database when it can be reached, watches it from then on, and is the gate of calls."""

    def __init__(
        self, prepare: Callable[[], None], ping: Callable[[], None], show: Show, *, ping_seconds: float = PING_SECONDS
    ) -> None:
        """Takes what prepares the schema, what looks at the database, and what shows the health.

        ``prepare`` and ``ping`` block and run on a thread of their own, never on the calls' threads,
        so that a dead database cannot hold up more than itself.
        """
        self._prepare = prepare
        self._ping = ping
        self._show = show
        self._ping_seconds = ping_seconds
        self._refusal: RametError | None = DatabaseUnavailable(_NOT_YET)
        self._thread = Workers(1, 1, "ramet-readiness")
        self.looked = asyncio.Event()
        """Set once the database was looked at for the first time, whatever came out."""
        self.ready = asyncio.Event()
        """Set once calls may begin; never cleared."""

    def check(self) -> None:
        """Raises what a call gets as long as the database was never ready."""
        if self._refusal is not None:
            # A new one for each call, since a raised error collects a traceback.
            raise type(self._refusal)(self._refusal.message, retry_after_s=1.0)

    async def keep(self, *, insist: bool) -> None:
        """Makes the server ready and keeps its health true, until cancelled.

        Raises StartRefused where the first look finds a database that it cannot work with, or with
        ``insist`` none at all. A database that cannot be reached is waited for.
        """
        try:
            await self._become_ready(insist=insist)
            await self._watch()
        finally:
            self._thread.close(0)

    async def _become_ready(self, *, insist: bool) -> None:
        delay, first, told = _FIRST_DELAY_S, True, ""
        while True:
            try:
                await self._thread.run(self._prepare)
            except RametError as error:
                if first and _is_final(error, insist=insist):
                    raise StartRefused(_for_operator(error)) from error
                if first or error.reason != told:
                    _log.warning("Not serving: %s", error.message, extra=fields(reason=error.reason))
                    told = error.reason
                self._refusal = error if isinstance(error, Unavailable) else DatabaseUnavailable(_NOT_YET)
                first = first and isinstance(error, Aborted | Exhausted)
            else:
                break
            self.looked.set()
            # Replicas that wait for one database must not all come at the same moment.
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, not a secret
            delay = min(delay * 2, _LONGEST_DELAY_S)
        self._refusal = None
        self.looked.set()
        self.ready.set()
        await self._show(True)
        _log.info("Ready: the database is reached and its schema is this server's")

    async def _watch(self) -> None:
        healthy = True
        while True:
            await asyncio.sleep(self._ping_seconds)
            answers = await self._look()
            if answers is not healthy:
                await self._show(answers)
                if answers:
                    _log.info("The database answers again")
            healthy = answers

    async def _look(self) -> bool:
        try:
            await self._thread.run(self._ping)
        except RametError as error:
            _log.warning("The database does not answer: %s", error.message)
        except Exception:  # noqa: BLE001 - a fault in a look must not end a server that may serve well
            _log.exception("A look at the database failed in a way that nobody foresaw")
        else:
            return True
        return False


def _is_final(error: RametError, *, insist: bool) -> bool:
    """Tells whether what the first look met will not pass by itself."""
    if isinstance(error, DatabaseUnavailable):
        return insist
    # Other servers that set up the same database may stand in the way for a while.
    return not isinstance(error, Aborted | Exhausted)


def _for_operator(error: RametError) -> str:
    """Returns the error with the driver's own words, which clients are never told."""
    cause = getattr(error.__cause__, "orig", None)
    return f"{error.message.rstrip('.')}: {cause}." if cause is not None else error.message
