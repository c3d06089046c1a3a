"""Looking at the database again and again, for those who wait for a change: no thread, and one task for all of them.

Used from the event loop of one server only.
"""

import asyncio
import contextvars
import logging
import time
from collections.abc import Awaitable, Callable

from ramet_server.domain.call import Call
from ramet_server.domain.errors import Internal, RametError, Unavailable

PATIENCE_S = 10.0
"""How long a database that is away is waited for, in seconds."""

_log = logging.getLogger(__name__)

Look = Callable[[Call], Awaitable[None]]
"""Looks once, and tells those who wait what it found; what it runs in the database uses the call."""


class Poller:
    """Looks until it is stopped; one look at a time, with a pause behind each."""

    def __init__(
        self,
        look: Look,
        fail: Callable[[RametError], None],
        *,
        poll_s: float,
        space: str = "",
        patience_s: float | None = PATIENCE_S,
    ) -> None:
        """Starts at once. ``fail`` is told why nobody need wait any more, after which the poller is at its end.

        ``poll_s`` is the pause in seconds. A database that is away is waited for; for ever without ``patience_s``.
        """
        self._look = look
        self._fail = fail
        self._poll_s = poll_s
        self._patience_s = patience_s
        self._call = Call(space)
        # Not in the context of the one who happened to come first.
        self._task = asyncio.create_task(self._run(), name="poller", context=contextvars.Context())

    def stop(self) -> None:
        """Ends the looking; what runs in the database is interrupted."""
        self._call.cancelled.set()
        self._task.cancel()

    async def _run(self) -> None:
        away_since: float | None = None
        while True:
            try:
                await self._look(self._call)
                away_since = None
            except RametError as error:
                # The next look finds what this one did not tell.
                _log.info("A look at changes failed: %s", error.reason)
                away_since = away_since or time.monotonic()
                if self._is_over(error, away_since):
                    self._fail(error)
                    return
            except Exception:  # noqa: BLE001 - nobody must wait for ever for a poller that is gone
                _log.exception("A look at changes failed in a way that no rule foresaw")
                self._fail(Internal("The changes cannot be read."))
                return
            await asyncio.sleep(self._poll_s)

    def _is_over(self, error: RametError, away_since: float) -> bool:
        if self._patience_s is None or not isinstance(error, Unavailable):
            return False
        return time.monotonic() - away_since >= self._patience_s
