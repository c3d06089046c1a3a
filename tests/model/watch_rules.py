"""Rules on watches: whoever goes on from the last position misses nothing and is told nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from hypothesis import strategies as st
from hypothesis.stateful import rule

from ramet.session.v1 import session_pb2 as s
from ramet.tree.v1 import tree_pb2 as t
from tests.conformance.refusing import reason_of
from tests.model.base import Base, known_sessions
from tests.model.conversation import Session
from tests.model.forest_rules import ForestRules


@dataclass
class Reader:
    """Somebody who watches a session now and then, and keeps what was told."""

    session: Session
    """The incarnation that is watched."""
    start: int
    """What stood up to here is not asked for."""
    through: int
    told: dict[int, s.Record] = field(default_factory=dict)


class WatchRules(Base):
    """Watches sessions from where a reader was, until nothing is left to tell."""

    def __init__(self) -> None:
        super().__init__()
        self._readers: dict[str, Reader] = {}

    @rule(session_id=known_sessions, forget=st.integers(0, 5))
    def watch_records(self, session_id: str, forget: int) -> None:
        """Goes on from the last position, or now and then from the floor."""
        session = self.sessions.get(session_id)
        if session is None:
            assert self._refused(session_id, 0) == "SESSION_NOT_FOUND"
            return
        reader = self._readers.get(session_id)
        if reader is None or reader.session is not session or not forget:
            reader = self._readers[session_id] = Reader(session, session.floor, session.floor)
        if reader.through < session.floor:
            assert self._refused(session_id, reader.through) == "BELOW_TRIM_FLOOR"
            reader.through = session.floor
        assert self._refused(session_id, session.head + 1) == "ABOVE_HEAD"
        self._catch_up(reader)
        told = [seq for seq in sorted(reader.told) if seq > session.floor]
        expected = [record for record in session.records if record.seq > reader.start]
        assert told == [record.seq for record in expected]
        self.compare_records(
            [record for record in expected if not record.erased],
            [reader.told[record.seq] for record in expected if not record.erased],
        )

    def _catch_up(self, reader: Reader) -> None:
        with self._watching(reader.session.id, reader.through) as answers:
            for answer in answers:
                if answer.HasField("rewound_to_seq"):
                    reader.told = {seq: held for seq, held in reader.told.items() if seq <= answer.rewound_to_seq}
                for record in answer.records:
                    assert record.seq not in reader.told, "told twice"
                    reader.told[record.seq] = record
                assert answer.through_seq >= reader.through
                reader.through = answer.through_seq
                if reader.through >= reader.session.head:
                    return

    def _refused(self, session_id: str, after: int) -> str | None:
        with self._watching(session_id, after) as answers:
            return reason_of(lambda: next(answers))

    @contextmanager
    def _watching(self, session_id: str, after: int) -> Iterator[Any]:
        request = s.WatchRecordsRequest(session_id=session_id, after_seq=after)
        call: Any = self.storage.WatchRecords(request, metadata=(("ramet-space", self.client.space),), timeout=20)
        try:
            yield call
        finally:
            call.cancel()


class TreeWatchRules(ForestRules):
    """Watches the forest from where a reader was, until nothing is left to tell."""

    def __init__(self) -> None:
        super().__init__()
        self._seen = 0
        self._told: set[str] = set()

    @rule()
    def watch_tree(self) -> None:
        """Follows what came and went; what is told then is what there is."""
        now = self.client.get(self.tree.GetTree, t.GetTreeRequest(page_size=1)).position
        request = t.WatchTreeRequest(after_position=self._seen)
        call: Any = self.tree.WatchTree(request, metadata=(("ramet-space", self.client.space),), timeout=20)
        try:
            for answer in call:
                for change in answer.changes:
                    assert change.position > self._seen
                    if change.kind == t.TREE_CHANGE_KIND_CREATED:
                        assert change.node_id not in self._told
                        self._told.add(change.node_id)
                    elif change.kind == t.TREE_CHANGE_KIND_DELETED:
                        self._told.remove(change.node_id)
                    else:
                        assert change.node_id in self._told
                self._seen = answer.through_position
                if self._seen >= now:
                    break
        except grpc.RpcError as error:
            raise AssertionError(f"a watch ended: {error}") from error
        finally:
            call.cancel()
        assert self._told == {node_id for node_id in self.forest.nodes if self.visible(node_id)}
