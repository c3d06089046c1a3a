"""A client that keeps some calls in flight, in a process of its own: it reads one JSON object and prints one."""

import asyncio
import json
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count, cycle
from typing import Any

import grpc

from benchmarks.messages import Messages, text_field

_SIZE = 64 << 20
_OPTIONS = (
    ("grpc.max_receive_message_length", _SIZE),
    ("grpc.max_send_message_length", _SIZE),
    # Else all channels to one address share a connection, which one worker would serve.
    ("grpc.use_local_subchannel_pool", 1),
)
_TIMEOUT_S = 60.0


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


def load(address: str, method: str, messages: Messages, in_flight: int, seconds: float, connections: int = 1) -> Load:
    """Runs a client in a process of its own and returns what it did; raises where a call failed."""
    asked = {
        "address": address,
        "method": method,
        "messages": messages.to_json(),
        "in_flight": in_flight,
        "seconds": seconds,
        "connections": connections,
    }
    return Load(**run_client("benchmarks.calling", asked))


def run_client(module: str, asked: dict[str, Any]) -> Any:
    """Runs a module that reads a JSON object and prints one; raises where it fails."""
    command = [sys.executable, "-m", module]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"A client failed:\n{done.stderr}")
    return json.loads(done.stdout)


def _bodies(messages: Messages) -> Iterator[bytes]:
    run = uuid.uuid4().hex[:8]
    for number, body in zip(count(), cycle(messages.bodies)):
        yield body + b"".join(text_field(field, f"{run}-{number:023d}") for field in messages.fresh)


async def _load(
    address: str, method: str, messages: Messages, in_flight: int, seconds: float, connections: int
) -> Load:
    latencies: list[float] = []
    bodies = _bodies(messages)
    stop, answered = asyncio.Event(), asyncio.Event()
    channels = [grpc.aio.insecure_channel(address, options=_OPTIONS) for _ in range(connections)]

    async def keep_calling(channel: "grpc.aio.Channel") -> None:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
        while not stop.is_set():
            body = next(bodies)
            started = time.perf_counter()
            await call(body, timeout=_TIMEOUT_S)
            latencies.append(time.perf_counter() - started)
            answered.set()

    callers = [asyncio.create_task(keep_calling(channels[each % connections])) for each in range(in_flight)]
    await asyncio.sleep(min(1.0, seconds / 3))
    answered.clear()
    before, started, cpu = len(latencies), time.perf_counter(), time.process_time()
    await asyncio.sleep(seconds)
    # A call may take longer than a short measurement; a caller ends early only where its call failed.
    waiting = asyncio.create_task(answered.wait())
    await asyncio.wait([waiting, *callers], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    counted = sorted(latencies[before:])
    elapsed, cpu = time.perf_counter() - started, time.process_time() - cpu
    stop.set()
    await asyncio.gather(*callers)
    for channel in channels:
        await channel.close()
    return Load(
        calls_per_second=len(counted) / elapsed,
        p50_ms=counted[len(counted) // 2] * 1e3,
        p99_ms=counted[int(len(counted) * 0.99)] * 1e3,
        client_cpu_us=cpu / len(counted) * 1e6,
        calls=len(latencies),
    )


def main() -> None:
    """Runs one client."""
    asked = json.load(sys.stdin)
    asked["messages"] = Messages.from_json(asked["messages"])
    print(json.dumps(asdict(asyncio.run(_load(**asked)))))


if __name__ == "__main__":
    main()
