"""Clients that write, read and fork without end, and note what they did and saw."""

import asyncio
import random
import time
from collections.abc import Sequence

import ramet
from ramet import DeletePolicy, Orchestrator, Record
from tests.crash.histories import History, Read, Seen, Write

_ABANDONED = 0.1
"""The share of failed writes that are not repeated: whether they took effect stays unknown."""


COUNTED = "count"
"""The session whose memory counts the transactions."""


class BusyClient:
    """One client; its repeated requests are answered by any server that is up."""

    def __init__(
        self, name: str, client: ramet.Client, sessions: Sequence[str], history: History, pause_s: float = 0.0
    ) -> None:
        """Takes what it is called, where it acts, and how long it rests between two acts."""
        self._name = name
        self._client = client
        self._sessions = sessions
        self._history = history
        self._pause_s = pause_s
        self._random = random.Random(name)
        self._number = 0

    async def run(self, over: asyncio.Event, least: int = 0) -> None:
        """Acts until it is over, and until there were at least so many acts."""
        acts = 0
        while not over.is_set() or acts < least:
            acts += 1
            session_id = self._random.choice(self._sessions)
            act = self._random.choices((self._write, self._transact, self._read, self._fork), (7, 1, 2, 1))[0]
            await act(session_id)
            await asyncio.sleep(self._pause_s)

    async def _write(self, session_id: str) -> None:
        self._number += 1
        contents = [f"{self._name}-{self._number}-{part}" for part in range(self._random.choice((1, 1, 3)))]
        records = [Record.user(content) for content in contents]
        request_id = f"{self._name}-{self._number}"
        began = time.monotonic()
        while True:
            try:
                done = await self._client.sessions.append_records(session_id, records, request_id=request_id)
            except ramet.RametError as error:
                _explained(error)
                if self._random.random() < _ABANDONED:
                    self._history.writes.append(Write(session_id, contents, began, None))
                    return
            else:
                self._history.writes.append(Write(session_id, contents, began, time.monotonic(), done.seqs))
                return

    async def _transact(self, session_id: str) -> None:
        """Appends to two sessions at once, and counts in one of them."""
        self._number += 1
        other = self._random.choice([each for each in self._sessions if each != session_id])
        contents = {each: f"{self._name}-{self._number}-{each}" for each in (session_id, other)}
        seqs: dict[str, Sequence[int]] = {}

        async def both(transaction: ramet.Transaction) -> None:
            count = (await transaction.get_memory(COUNTED)).content or "0"
            for each, content in contents.items():
                seqs[each] = (await transaction.append_records(each, [Record.user(content)])).seqs
            await transaction.put_memory(COUNTED, str(int(count) + 1))

        began = time.monotonic()
        request_id = f"{self._name}-{self._number}"
        while True:
            try:
                await self._client.sessions.run_in_transaction(both, attempts=1000, request_id=request_id)
            except ramet.AlreadyCommitted:
                break
            except ramet.RametError as error:
                _explained(error)
            else:
                break
        ended = time.monotonic()
        self._history.counted += 1
        self._history.writes.extend(
            Write(each, [content], began, ended, seqs[each]) for each, content in contents.items()
        )

    async def _read(self, session_id: str) -> None:
        began = time.monotonic()
        try:
            seen = await seen_in(self._client, session_id)
        except ramet.RametError as error:
            _explained(error)
        else:
            self._history.reads.append(Read(session_id, began, time.monotonic(), seen))

    async def _fork(self, session_id: str) -> None:
        """Forks, reads the fork as a state of its source, and deletes it; each is repeated until it is done."""
        self._number += 1
        fork_id = f"{self._name}-fork-{self._number}"
        orchestrator = Orchestrator(self._client)
        began = time.monotonic()
        while True:
            try:
                await orchestrator.fork(session_id, session_id=fork_id, context="inherit", request_id=f"{fork_id}-made")
                ended = time.monotonic()
                seen = await seen_in(self._client, fork_id)
            except ramet.RametError as error:
                _explained(error)
            else:
                break
        self._history.reads.append(Read(session_id, began, ended, seen))
        while True:
            try:
                await orchestrator.delete(fork_id, DeletePolicy.REFUSE, request_id=f"{fork_id}-gone")
            except ramet.RametError as error:
                _explained(error)
            else:
                return


def _explained(error: ramet.RametError) -> None:
    """Raises an error that no crash explains."""
    if not error.retryable:
        raise error


async def seen_in(client: ramet.Client, session_id: str) -> Seen:
    """Reads a whole session."""
    return [(record.seq, record.content) async for record in client.sessions.iter_records(session_id)]
