"""The stage of these tests: the same world on every backend, and calls that go to all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import grpc
from google.protobuf.message import Message

from tests.bad_input.contract import Rpc
from tests.bad_input.doors import Answer, Door
from tests.bad_input.world import FOREIGN_SPACE, seed, seed_foreign

SPACE = "bad-input"
"""The space of the world that no test may change."""

_numbers = count()


@dataclass
class Stage:
    """Servers on every backend, each with the world in SPACE."""

    doors: Sequence[Door]
    _held: dict[str, dict[str, str]] = field(default_factory=dict)

    def build(self) -> None:
        """Makes the world on every backend."""
        for door in self.doors:
            seed(door.sender(SPACE))
            seed_foreign(door.sender(FOREIGN_SPACE))

    def refused(
        self,
        rpc: Rpc,
        body: bytes | Mapping[str, bytes],
        space: str | None = SPACE,
        metadata: Sequence[tuple[str, str]] = (),
    ) -> Answer:
        """Sends what must be refused to every backend; checks that all answer alike and nothing changes.

        A body may differ by the backend's name.
        """
        answers: list[Answer] = []
        for door in self.doors:
            before = self._held.get(door.name) or door.snapshot()
            answers.append(door.call(rpc, body if isinstance(body, bytes) else body[door.name], space, metadata))
            # The next test starts from what is there now, so that only the one at fault fails.
            after = self._held[door.name] = door.snapshot()
            assert answers[-1].code is not grpc.StatusCode.OK, f"{rpc} on {door.name} took it"
            assert after == before, f"{rpc} on {door.name} refused ({answers[-1].reason}) and changed something"
        for door, answer in zip(self.doors, answers, strict=True):
            assert answer.refusal == answers[0].refusal, f"{door.name} and {self.doors[0].name} answer differently"
        return answers[0]

    def fresh_space(self) -> str:
        """Makes the world in a space of its own on every backend, and returns the space."""
        space = f"fresh-{next(_numbers)}"
        for door in self.doors:
            seed(door.sender(space))
        self._held.clear()
        return space

    def unused_space(self) -> str:
        """Returns the name of a space that nobody used, for a test that writes into it."""
        self._held.clear()
        return f"unused-{next(_numbers)}"

    def succeeds(self, rpc: Rpc, request: Message, space: str) -> list[Answer]:
        """Sends what must succeed to every backend, and returns the answers."""
        self._held.clear()
        answers = [door.send(rpc, request, space) for door in self.doors]
        for door, answer in zip(self.doors, answers, strict=True):
            assert answer.code is grpc.StatusCode.OK, f"{rpc} on {door.name}: {answer}"
        return answers

    def snapshots(self) -> list[dict[str, str]]:
        """Returns what every backend holds."""
        self._held.clear()
        return [door.snapshot() for door in self.doors]
