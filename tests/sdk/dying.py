"""A client that dies at a chosen write of an operation."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc

import ramet
from ramet import Orchestrator

BEFORE, AFTER = "before its request", "after its reply"


class Died(Exception):
    """The client's process is gone, as far as the test goes."""


class DiesAt(grpc.aio.UnaryUnaryClientInterceptor):
    """Dies at one write: before it is sent, or when its reply has come and nobody has seen it."""

    def __init__(self, step: int, moment: str) -> None:
        self._left = step
        self._moment = moment

    async def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        if not getattr(request, "request_id", ""):
            return await continuation(details, request)
        self._left -= 1
        if self._left < 0 or (self._left == 0 and self._moment == BEFORE):
            raise Died
        call = await continuation(details, request)
        if self._left == 0:
            await call
            raise Died
        return call


@asynccontextmanager
async def dying(address: str, space: str, step: int, moment: str) -> AsyncIterator[Orchestrator]:
    async with ramet.connect(address, space=space, interceptors=[DiesAt(step, moment)]) as client:
        yield Orchestrator(client)
