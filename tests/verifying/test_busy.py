"""A verification beside clients that write: it never tells of what is only under way."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import count
from threading import Event

import pytest

from ramet.tree.v1 import tree_pb2
from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from ramet_server.domain.errors import RametError
from ramet_server.domain.findings import Finding
from ramet_server.domain.limits import Limits
from ramet_server.sweeping import Sweep
from tests.telemetry import events as e
from tests.verifying.world import Space, World

CLIENTS = 4
DEEDS = 60
NAMES = [f"n{number}" for number in range(12)]
HISTORIES = ["u", "u a", "u a(x) t(x) a", "u a(y)", "t(z) u"]


class Client:
    """Does things at random, to few sessions and nodes, so that it meets others."""

    def __init__(self, space: Space, seed: int) -> None:
        self._space = space
        self._chance = random.Random(seed)
        self._numbers = (f"{seed}-{number}" for number in count())

    def do(self) -> None:
        """Does one thing; others may have made it impossible."""
        deeds: list[Callable[[], object]] = [
            *[self._append] * 6,
            *[self._fork] * 4,
            *[self._grow] * 4,
            *[self._tell] * 3,
            self._trim,
            self._rewind,
            self._delete,
            self._delete,
            self._move,
            *[self._refer] * 3,
            self._half_fork,
        ]
        with suppress(RametError):
            self._chance.choice(deeds)()

    def _name(self) -> str:
        return self._chance.choice(NAMES)

    def _append(self) -> None:
        session_id = self._name()
        with suppress(RametError):
            self._space.storage.put(session_id, tags=[self._name()], expected_version=0)
        self._space.storage.append(session_id, self._chance.choice(HISTORIES))

    def _fork(self) -> None:
        self._space.storage.fork(self._name(), self._name(), last=self._chance.randrange(9))

    def _trim(self) -> None:
        self._space.storage.trim(self._name(), self._chance.randrange(6))

    def _rewind(self) -> None:
        session_id = self._name()
        listed = self._space.storage.seqs(session_id)
        self._space.storage.truncate(session_id, self._chance.choice(listed) if listed else 0)

    def _delete(self) -> None:
        policy = self._chance.choice([tree_pb2.DELETE_POLICY_CASCADE, tree_pb2.DELETE_POLICY_REPARENT])
        if self._chance.random() < 0.5:
            self._space.forest.delete(self._name(), policy, delete_sessions=True)
        else:
            self._space.storage.delete(self._name())

    def _grow(self) -> None:
        self._space.forest.create(self._name(), self._chance.choice([None, *NAMES]))

    def _half_fork(self) -> None:
        self._space.forest.create(self._name(), self._name(), awaits_content=True)

    def _move(self) -> None:
        self._space.forest.move(self._name(), self._chance.choice([None, *NAMES]), self._chance.randrange(3))

    def _refer(self) -> None:
        self._space.forest.add_ref(self._name(), self._name())

    def _tell(self) -> None:
        number, key = next(self._numbers), f"s{self._chance.randrange(4)}"
        told = [
            e.step_completed(f"{number}-a", key, session_id=self._name(), usage={"input_tokens": 3}),
            e.tool(f"{number}-b", f"t{number}", session_id=self._name(), step_key=key),
            e.feedback(f"{number}-c", e.USEFUL, self._chance.random(), session_id=self._name()),
        ]
        self._space.told.tell(*told[: self._chance.randrange(1, 4)])


@pytest.fixture
def busy(database_url: str) -> Iterator[World]:
    """Two empty spaces, on each backend."""
    opened = Database.open(database_url)
    schema.prepare(opened, Call(""))
    yield World(opened)
    opened.close()


def test_clients_that_write_are_never_told_of(busy: World) -> None:
    over = Event()
    found: list[Finding] = []
    looks = 0

    def work(seed: int) -> None:
        client = Client(busy.other if seed == 0 else busy.space, seed)
        for _ in range(DEEDS):
            client.do()

    def sweep() -> None:
        # Nodes that await their content are swept at once, and some of it comes afterwards.
        hasty = replace(Limits(), await_content_seconds=0)
        while not over.is_set():
            with suppress(RametError):
                Sweep(busy.database, hasty, busy.clock).run(Call(""))

    with ThreadPoolExecutor(CLIENTS + 1) as threads:
        sweeping = threads.submit(sweep)
        working = [threads.submit(work, seed) for seed in range(CLIENTS)]
        while not all(each.done() for each in working):
            found += busy.verify()
            looks += 1
        over.set()
        for each in (sweeping, *working):
            each.result()
    assert found == []
    assert looks > 1
    assert busy.verify() == []
    for name in ("session", "history_span", "record", "topology_node", "agent_step"):
        assert busy.dump()[name], name
