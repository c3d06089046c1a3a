"""A client that keeps some calls in flight, in a process of its own.

python -m benchmarks.calling ADDRESS METHOD KIND --in-flight 16 --seconds 3

It sends messages that were made before, so that it costs little and the same whoever answers, and
prints one JSON object; see ``Load``.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass

import grpc

from ramet.session.v1 import session_pb2 as pb

SESSIONS = 64
"""How many sessions the calls go round."""

RECORD = pb.Record(role=pb.ROLE_USER, content="x" * 500)
"""What appends append."""

LONG_SESSION = "long"
"""The session with a history of 1,000 records."""

_SIZE = 64 << 20
_OPTIONS = (("grpc.max_receive_message_length", _SIZE), ("grpc.max_send_message_length", _SIZE))

Messages = Callable[[], bytes]


@dataclass(frozen=True)
class Load:
    """What a client did."""

    calls_per_second: float
    p50_ms: float
    p99_ms: float
    client_cpu_us: float
    """The client's own CPU time for each call."""
    calls: int
    """All calls, those of the warm-up among them."""


def session_ids() -> list[str]:
    """Returns the ids of the sessions that calls go round."""
    return [f"s{number}" for number in range(SESSIONS)]


def _appends(records: int) -> Messages:
    run = uuid.uuid4().hex[:8]
    bodies = [
        pb.AppendRecordsRequest(session_id=each, records=[RECORD] * records).SerializeToString()
        for each in session_ids()
    ]
    number = 0

    def make() -> bytes:
        nonlocal number
        number += 1
        # Two messages in a row are read as one.
        request_id = pb.AppendRecordsRequest(request_id=f"{run}-{number:023d}").SerializeToString()
        return bodies[number % SESSIONS] + request_id

    return make


def _round(bodies: list[bytes]) -> Messages:
    number = 0

    def make() -> bytes:
        nonlocal number
        number += 1
        return bodies[number % len(bodies)]

    return make


KINDS: dict[str, Callable[[], Messages]] = {
    "append": lambda: _appends(1),
    "append16": lambda: _appends(16),
    "echo": lambda: _round([b"x" * 560]),
    "slot": lambda: _round([pb.GetMemoryRequest(session_id=each).SerializeToString() for each in session_ids()]),
    "session": lambda: _round([pb.GetSessionRequest(session_id=each).SerializeToString() for each in session_ids()]),
    "history": lambda: _round([pb.ListRecordsRequest(session_id=LONG_SESSION, page_size=1000).SerializeToString()]),
    "context": lambda: _round([pb.GetContextRequest(session_id=LONG_SESSION).SerializeToString()]),
}
"""The messages that can be sent."""


def load(address: str, method: str, kind: str, in_flight: int, seconds: float) -> Load:
    """Runs a client in a process of its own and returns what it did; raises where a call failed."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.calling", address, method, kind),
            *("--in-flight", str(in_flight), "--seconds", str(seconds)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"A client failed:\n{done.stderr}")
    return Load(**json.loads(done.stdout))


async def _load(address: str, method: str, make: Messages, in_flight: int, seconds: float) -> Load:
    latencies: list[float] = []
    stop = asyncio.Event()
    async with grpc.aio.insecure_channel(address, options=_OPTIONS) as channel:
        call = channel.unary_unary(method)

        async def keep_calling() -> None:
            while not stop.is_set():
                started = time.perf_counter()
                await call(make(), timeout=60)
                latencies.append(time.perf_counter() - started)

        callers = [asyncio.create_task(keep_calling()) for _ in range(in_flight)]
        await asyncio.sleep(min(1.0, seconds / 3))
        before, started, cpu = len(latencies), time.perf_counter(), time.process_time()
        await asyncio.sleep(seconds)
        counted = sorted(latencies[before:])
        elapsed, cpu = time.perf_counter() - started, time.process_time() - cpu
        stop.set()
        await asyncio.gather(*callers)
    if not counted:
        raise RuntimeError("No call was answered in time.")
    return Load(
        calls_per_second=len(counted) / elapsed,
        p50_ms=counted[len(counted) // 2] * 1e3,
        p99_ms=counted[int(len(counted) * 0.99)] * 1e3,
        client_cpu_us=cpu / len(counted) * 1e6,
        calls=len(latencies),
    )


def main() -> None:
    """Runs one client."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("method")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--in-flight", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0)
    chosen = parser.parse_args()
    told = _load(chosen.address, chosen.method, KINDS[chosen.kind](), chosen.in_flight, chosen.seconds)
    print(json.dumps(asdict(asyncio.run(told))))


if __name__ == "__main__":
    main()
