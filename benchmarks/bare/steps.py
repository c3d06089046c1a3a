"""The bare steps: telemetry made durable by the driver alone, with commits that messages share.

It reads the same messages as StreamEvents and stores each step as a row of one table, by its diagnosis
and key, with all that the step tells; whatever came during a commit goes with the next one. It acknowledges
what is on disk. It checks nothing, merges nothing, adds nothing up, and would store a repeated step twice.

    python -m benchmarks.bare.steps --database mysql://root@127.0.0.1:3306/bare --listen 127.0.0.1:0
"""

import argparse
import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from benchmarks.bare.serving import serve_streams
from benchmarks.bare.stores import Log, Row, new_log
from ramet.telemetry.v1 import telemetry_pb2 as pb

_COLUMNS = (
    "id BIGINT PRIMARY KEY, session_id VARCHAR(128), step_key VARCHAR(128), step_index INT, agent_name VARCHAR(32), "
    "status INT, has_tool_call BOOLEAN, input_tokens BIGINT, output_tokens BIGINT, duration_ms BIGINT, "
    "model VARCHAR(256), started_us BIGINT, ended_us BIGINT, thought {text}, model_input {text}, model_output {text}"
)


class _Steps:
    """Messages that come while a commit is under way share the next one, whatever stream they are of."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._last_id = 0
        self._waiting: list[tuple[bytes, asyncio.Queue[bytes | None]]] = []
        self._busy = False
        # The one thread on which all is parsed, stored and answered.
        self._thread = ThreadPoolExecutor(1)

    async def behave(self, requests: AsyncIterator[bytes], _: object) -> AsyncIterator[bytes]:
        """Answers each message when what it holds is on disk."""
        replies: asyncio.Queue[bytes | None] = asyncio.Queue()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._read(requests, replies))
            while (reply := await replies.get()) is not None:
                yield reply

    async def _read(self, requests: AsyncIterator[bytes], replies: asyncio.Queue[bytes | None]) -> None:
        async for raw in requests:
            self._waiting.append((raw, replies))
            if not self._busy:
                self._busy = True
                self._task = asyncio.create_task(self._work())
        if self._busy:
            await self._task
        replies.put_nowait(None)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group, self._waiting = self._waiting, []
            answers = await loop.run_in_executor(self._thread, self._take, [raw for raw, _ in group])
            for (_, replies), answer in zip(group, answers, strict=True):
                replies.put_nowait(answer)
        self._busy = False

    def _take(self, group: Sequence[bytes]) -> list[bytes]:
        rows: list[Row] = []
        answers: list[bytes] = []
        for raw in group:
            request = pb.StreamEventsRequest.FromString(raw)
            if request.HasField("hello"):
                answers.append(pb.StreamEventsResponse(welcome=pb.Welcome(credit_bytes=64 << 20)).SerializeToString())
                continue
            for event in request.batch.events:
                self._last_id += 1
                rows.append((self._last_id, event.session_id, *_told(event.step_completed)))
            through = request.batch.first_seq + len(request.batch.events) - 1
            answers.append(pb.StreamEventsResponse(ack=pb.Ack(committed_through_seq=through)).SerializeToString())
        if rows:
            self._log.store(rows)
        return answers


def _told(step: pb.StepCompleted) -> Row:
    return (
        step.step_key,
        step.step_index,
        step.agent_name,
        step.status,
        step.has_tool_call,
        step.usage.input_tokens,
        step.usage.output_tokens,
        step.duration_ms,
        step.model,
        step.started_at.seconds * 1_000_000 + step.started_at.nanos // 1000,
        step.ended_at.seconds * 1_000_000 + step.ended_at.nanos // 1000,
        step.thought,
        step.model_input_json,
        step.model_output_json,
    )


def main() -> None:
    """Serves until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--database", required=True, help="sqlite:///FILE or mysql://USER:PASSWORD@HOST:PORT/NAME")
    arguments = parser.parse_args()
    log = new_log(arguments.database, "bare_step", _COLUMNS)
    asyncio.run(serve_streams(arguments.listen, _Steps(log).behave))


if __name__ == "__main__":
    main()
