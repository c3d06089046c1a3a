"""The sweep beside the calls of a server."""

import asyncio
import logging
import random
from collections.abc import Sequence

from ramet_server.domain.call import Call
from ramet_server.domain.errors import DatabaseUnavailable, RametError
from ramet_server.serving.listen import Background
from ramet_server.serving.logs import fields
from ramet_server.serving.workers import Workers
from ramet_server.sweeping.sweep import Counts, Step

_log = logging.getLogger(__name__)


def in_background(steps: Sequence[Step], every_s: float) -> Background:
    """Returns the work of making a pass each ``every_s`` seconds, or somewhat sooner, until it is cancelled."""

    async def sweep_on(workers: Workers) -> None:
        while True:
            # Servers that were started together must not sweep together.
            await asyncio.sleep(every_s * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, not a secret
            await make_pass(steps, workers)

    return sweep_on


async def make_pass(steps: Sequence[Step], workers: Workers) -> Counts:
    """Makes one pass, each part of a step on a worker thread; a step that fails is left to the next pass.

    A database that is away ends the pass: to try it again at each step took 28 % of a core where a pass
    begins each second. Cancelling it interrupts what runs in the database.
    """
    counts = Counts()
    call = Call(space="")
    try:
        for step in steps:
            done, goes_on = await _take(step, call, workers)
            counts += done
            if not goes_on:
                break
    except asyncio.CancelledError:
        call.cancelled.set()
        raise
    if counts != Counts():
        _log.info("Swept", extra=fields(**{name: count for name, count in vars(counts).items() if count}))
    return counts


async def _take(step: Step, call: Call, workers: Workers) -> tuple[Counts, bool]:
    """Returns what a step did, and whether the next one should be tried."""
    counts = Counts()
    more = True
    try:
        while more:
            # Bounded: where calls wait for threads already, the sweep does not come between.
            done, more = await workers.run(lambda: step.some(call))
            counts += done
    except RametError as error:
        _log.warning("A sweep was cut short", extra=fields(step=step.name, reason=error.reason))
        return counts, not isinstance(error, DatabaseUnavailable)
    except Exception:  # noqa: BLE001 - a fault in one step must end neither the other steps nor the server
        _log.exception("A sweep failed in a way that no rule foresaw", extra=fields(step=step.name))
    return counts, True
