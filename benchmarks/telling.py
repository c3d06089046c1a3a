"""A client that tells telemetry steps over streams, in a process of its own.

python -m benchmarks.telling ADDRESS METHOD --streams 1 --steps 32 --seconds 3

Its messages are made from one that was made before, so that it costs little and the same whoever takes
them. It prints one JSON object; see ``Told``. It fails where a step was refused or not acknowledged.
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
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc

from ramet.telemetry.v1 import telemetry_pb2 as pb

_UNDER_WAY = 64
"""Messages of one stream that may be unacknowledged."""

_STEPS_OF_A_DIAGNOSIS = 32
_RUN, _DIAGNOSIS, _STEP = "run00000", "diag00000000", "step00000000"


@dataclass(frozen=True)
class Told:
    """What a client told."""

    steps_per_second: float
    """Steps that were acknowledged."""
    client_cpu_us: float
    """The client's own CPU time for each step."""
    steps: int
    """All steps, those of the warm-up among them."""


def _event(number: int) -> pb.Event:
    ended = datetime.now(UTC)
    started = ended - timedelta(seconds=1)
    event = pb.Event(
        event_id=f"{_RUN}-{_STEP}-{number}",
        session_id=f"{_RUN}-{_DIAGNOSIS}",
        step_completed=pb.StepCompleted(
            step_key=f"{_STEP}-{number}",
            step_index=number,
            agent_name="researcher",
            model_input_json=json.dumps({"messages": 12, "last": "x" * 150}),
            model_output_json=json.dumps({"text": "x" * 150}),
            thought="y" * 100,
            has_tool_call=True,
            status=pb.RUN_STATUS_SUCCESS,
            model="a-model-1",
            provider="a-provider",
            usage=pb.Usage(input_tokens=1200, output_tokens=80),
            duration_ms=1000,
        ),
    )
    event.occurred_at.FromDatetime(ended)
    event.step_completed.started_at.FromDatetime(started)
    event.step_completed.ended_at.FromDatetime(ended)
    return event


def messages(steps: int) -> Callable[[], bytes]:
    """Returns what makes the messages of one stream, each with so many steps that were not told before."""
    run = uuid.uuid4().hex[:8].encode()
    batch = pb.EventBatch(events=[_event(number) for number in range(steps)])
    raw = pb.StreamEventsRequest(batch=batch).SerializeToString().replace(_RUN.encode(), run)
    diagnosis, step = _DIAGNOSIS.encode(), _STEP.encode()
    number = 0

    def make() -> bytes:
        nonlocal number
        body = raw.replace(diagnosis, b"diag%08d" % (number * steps // _STEPS_OF_A_DIAGNOSIS))
        body = body.replace(step, b"step%08d" % number)
        # Two messages in a row are read as one.
        place = pb.StreamEventsRequest(batch=pb.EventBatch(first_seq=number * steps + 1)).SerializeToString()
        number += 1
        return place + body

    return make


def tell(address: str, method: str, streams: int, steps: int, seconds: float) -> Told:
    """Runs a client in a process of its own and returns what it told; raises where a step was lost."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.telling", address, method),
            *("--streams", str(streams), "--steps", str(steps), "--seconds", str(seconds)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"A client failed:\n{done.stderr}")
    return Told(**json.loads(done.stdout))


class _Stream:
    """One stream, with so many messages under way as may be."""

    def __init__(self, channel: grpc.aio.Channel, method: str, steps: int, heard: asyncio.Event) -> None:
        """Takes how many steps a message has, and what is set when some were acknowledged."""
        self._call: Any = channel.stream_stream(method)()
        self._make = messages(steps)
        self._steps = steps
        self._heard = heard
        self._room = asyncio.Semaphore(_UNDER_WAY)
        self._sent = 0
        self.acknowledged = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Tells steps until it is stopped, and waits until all are acknowledged."""
        hello = pb.StreamEventsRequest(hello=pb.Hello(producer_id=uuid.uuid4().hex))
        await self._call.write(hello.SerializeToString())
        await self._call.read()
        # In a group, so that a fault in reading ends the writing.
        async with asyncio.TaskGroup() as group:
            group.create_task(self._read())
            while not stop.is_set():
                await self._room.acquire()
                await self._call.write(self._make())
                self._sent += self._steps
            await self._call.done_writing()
        if self.acknowledged != self._sent:
            raise RuntimeError(f"{self._sent} steps were told and {self.acknowledged} acknowledged.")

    async def _read(self) -> None:
        while (raw := await self._call.read()) is not grpc.aio.EOF:
            reply = pb.StreamEventsResponse.FromString(raw)
            if reply.HasField("throttle"):
                continue
            if not reply.HasField("ack") or reply.ack.refusals:
                raise RuntimeError(f"Steps were not taken: {reply}")
            for _ in range((reply.ack.committed_through_seq - self.acknowledged) // self._steps):
                self._room.release()
            self.acknowledged = reply.ack.committed_through_seq
            self._heard.set()


async def _tell(address: str, method: str, streams: int, steps: int, seconds: float) -> Told:
    stop, heard = asyncio.Event(), asyncio.Event()
    async with grpc.aio.insecure_channel(address) as channel:
        all_streams = [_Stream(channel, method, steps, heard) for _ in range(streams)]
        running = asyncio.gather(*(stream.run(stop) for stream in all_streams))
        await asyncio.sleep(min(1.0, seconds / 3))
        heard.clear()
        before, started, cpu = sum(each.acknowledged for each in all_streams), time.perf_counter(), time.process_time()
        await asyncio.sleep(seconds)
        # A commit of many streams may take longer, on a busy machine.
        await heard.wait()
        told = sum(each.acknowledged for each in all_streams) - before
        elapsed, cpu = time.perf_counter() - started, time.process_time() - cpu
        stop.set()
        await running
    return Told(told / elapsed, cpu / told * 1e6, sum(each.acknowledged for each in all_streams))


def main() -> None:
    """Runs one client."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("method")
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=3.0)
    chosen = parser.parse_args()
    told = _tell(chosen.address, chosen.method, chosen.streams, chosen.steps, chosen.seconds)
    print(json.dumps(asdict(asyncio.run(told))))


if __name__ == "__main__":
    main()
