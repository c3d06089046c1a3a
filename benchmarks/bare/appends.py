"""The bare append: records made durable by the driver alone, with commits that are shared.

It reads the message, stores its records by the next seqs, commits and answers with the seqs. It has
one table, knows its seqs from memory, and checks nothing: no locks, no versions, no request ids.

    python -m benchmarks.bare.appends --database mysql://root@127.0.0.1:3306/bare --listen 127.0.0.1:0
"""

import argparse
import asyncio
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from benchmarks.bare.serving import serve
from benchmarks.bare.stores import Log, Row, new_log
from ramet.session.v1 import session_pb2 as pb

_COLUMNS = "session VARCHAR(128), seq BIGINT, role INT, content {text} NOT NULL, PRIMARY KEY (session, seq)"


class _Appends:
    """Calls that come while a commit is under way share the next one."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._heads: dict[str, int] = defaultdict(int)
        self._waiting: list[tuple[bytes, asyncio.Future[bytes]]] = []
        self._busy = False
        # The one thread on which all is parsed, stored and answered.
        self._thread = ThreadPoolExecutor(1)

    async def behave(self, raw: bytes, _: object) -> bytes:
        """Appends what the message holds, and answers when it is on disk."""
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[bytes] = loop.create_future()
        self._waiting.append((raw, reply))
        if not self._busy:
            self._busy = True
            self._task = loop.create_task(self._work())
        return await reply

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group, self._waiting = self._waiting, []
            answers = await loop.run_in_executor(self._thread, self._append, [raw for raw, _ in group])
            for (_, reply), answer in zip(group, answers, strict=True):
                if not reply.done():
                    reply.set_result(answer)
        self._busy = False

    def _append(self, group: Sequence[bytes]) -> list[bytes]:
        rows: list[Row] = []
        answers: list[bytes] = []
        for raw in group:
            request = pb.AppendRecordsRequest.FromString(raw)
            first = self._heads[request.session_id] + 1
            self._heads[request.session_id] += len(request.records)
            for seq, record in enumerate(request.records, first):
                rows.append((request.session_id, seq, record.role, record.content))
            reply = pb.AppendRecordsResponse(seqs=range(first, first + len(request.records)))
            answers.append(reply.SerializeToString())
        self._log.store(rows)
        return answers


def main() -> None:
    """Serves until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--database", required=True, help="sqlite:///FILE or mysql://USER:PASSWORD@HOST:PORT/NAME")
    arguments = parser.parse_args()
    log = new_log(arguments.database, "bare_record", _COLUMNS)
    asyncio.run(serve(arguments.listen, _Appends(log).behave))


if __name__ == "__main__":
    main()
