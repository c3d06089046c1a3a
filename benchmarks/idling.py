"""Streams that are open and idle, held by a process of their own.

    python -m benchmarks.idling ADDRESS COUNT

It opens so many watches of records, and so many streams of telemetry events, tells when all were
answered, and holds them until its standard input ends.
"""

import asyncio
import subprocess
import sys
import uuid
from types import TracebackType
from typing import Any, Self

import grpc

from benchmarks.messages import SESSIONS
from ramet.session.v1 import session_pb2
from ramet.telemetry.v1 import telemetry_pb2

_READY = "All are open."
_SETTLE_S = 2.0


class IdleStreams:
    """So many watches and so many telemetry streams, open within the block."""

    def __init__(self, address: str, count: int) -> None:
        """Takes where they are opened, and how many of each."""
        self._command = [sys.executable, "-m", "benchmarks.idling", address, str(count)]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        told = self._process.stdout.readline() if self._process.stdout else ""
        if told.strip() != _READY:
            self._process.wait()
            raise RuntimeError("The streams could not be opened.")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()


async def _watch(channel: grpc.aio.Channel, number: int) -> object:
    watch: Any = channel.unary_stream("/ramet.session.v1.SessionStorage/WatchRecords")
    request = session_pb2.WatchRecordsRequest(session_id=SESSIONS[number % len(SESSIONS)], after_seq=0)
    call = watch(request.SerializeToString())
    await call.read()
    return call


async def _tell(channel: grpc.aio.Channel) -> object:
    stream: Any = channel.stream_stream("/ramet.telemetry.v1.Telemetry/StreamEvents")
    call = stream()
    hello = telemetry_pb2.Hello(producer_id=uuid.uuid4().hex)
    await call.write(telemetry_pb2.StreamEventsRequest(hello=hello).SerializeToString())
    await call.read()
    return call


async def _hold(address: str, count: int) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        held = [await _watch(channel, number) for number in range(count)]
        held += [await _tell(channel) for _ in range(count)]
        # What opening them needed is given back.
        await asyncio.sleep(_SETTLE_S)
        print(_READY, flush=True)
        await asyncio.to_thread(sys.stdin.read)
        held.clear()


if __name__ == "__main__":
    asyncio.run(_hold(sys.argv[1], int(sys.argv[2])))
