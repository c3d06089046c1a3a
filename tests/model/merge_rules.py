"""Rules on merges: a fork's own records are told of once in another session, whatever is repeated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import rule

import ramet
from ramet.orchestrator import Merged, RefOutcome
from ramet.session.v1 import session_pb2 as s
from ramet.tree.v1 import tree_pb2 as t
from tests.model.base import known_sessions, moment
from tests.model.conversation import Rec, Session, diff
from tests.model.forest_rules import ForestRules


class MergeRules(ForestRules):
    """Merges sessions, forks of each other or not."""

    @rule(fork_id=known_sessions, into=known_sessions, repeats=st.integers(0, 2))
    def merge(self, fork_id: str, into: str, repeats: int) -> None:
        """Merges a session into another, and sends the same again."""
        fork, target = self.sessions.get(fork_id), self.sessions.get(into)
        request_id = f"merge-{next(self._numbers)}"
        note(f"  merge {fork_id} into {into}, and {repeats} times again")
        with ramet.connect_blocking(self.surroundings.address, space=self.client.space) as client:
            orchestrator = ramet.BlockingOrchestrator(client)
            if fork is None or target is None or target.archived:
                with pytest.raises((ramet.NotFound, ramet.FailedPrecondition)) as refusal:
                    orchestrator.merge(fork_id, into=into, summarize="never", request_id=request_id)
                archived = target is not None and target.archived
                assert refusal.value.reason == ("SESSION_ARCHIVED" if archived else "SESSION_NOT_FOUND")
                return self.check_sessions(*{fork_id, into})
            own, common = _own(fork, target)
            asked: list[list[int]] = []

            def summarize(records: Sequence[ramet.Record]) -> str:
                asked.append([record.seq for record in records])
                return f"summary {len(asked)}"

            before = _merged(fork, target)
            merged = orchestrator.merge(fork_id, into=into, summarize=summarize, request_id=request_id)
            assert asked == ([[record.seq for record in own]] if own else [])
            assert (merged.nothing_new, merged.common_through_seq) == (not own, common)
            if own:
                assert (merged.first_seq, merged.last_seq) == (own[0].seq, own[-1].seq)
                self._take_summary(target, merged, request_id, fork_id)
            self._take_ref(merged.ref, into, fork_id, tried=bool(own or before))
            for _ in range(repeats if own else 0):
                assert orchestrator.merge(fork_id, into=into, summarize=summarize, request_id=request_id) == merged
            assert len(asked) == bool(own)
        self.check_sessions(*{fork_id, into})
        return self.check_forest()

    def _take_summary(self, target: Session, merged: Merged, request_id: str, fork_id: str) -> None:
        assert merged.record_seq is not None
        assert merged.record_seq > target.head
        request = s.ListRecordsRequest(session_id=target.id, after_seq=target.head, page_size=1000)
        (told,) = self.client.get(self.storage.ListRecords, request).records
        assert (told.seq, told.role, told.content) == (merged.record_seq, s.ROLE_ASSISTANT, "summary 1")
        provenance = json.loads(told.metadata_json)["ramet_merge"]
        del provenance["merged_at"]
        assert provenance == {
            "fork_id": fork_id,
            "first_seq": merged.first_seq,
            "last_seq": merged.last_seq,
            "common_through_seq": merged.common_through_seq,
            "request_id": request_id,
        }
        message = s.Record()
        message.CopyFrom(told)
        for name in ("seq", "created_at"):
            message.ClearField(name)
        target.records = [*target.records, Rec(told.seq, message)]
        target.head = told.seq
        session = self.client.get(self.storage.GetSession, s.GetSessionRequest(session_id=target.id))
        target.last_active_at = moment(session.last_active_at)

    def _take_ref(self, ref: RefOutcome, from_id: str, to_id: str, *, tried: bool) -> None:
        if not tried:
            assert ref is RefOutcome.NOT_TRIED
            return
        node, target = self.node(from_id), self.node(to_id)
        if node is None or target is None:
            assert ref is RefOutcome.NO_NODE or (ref is RefOutcome.ILLEGAL and from_id == to_id)
        elif self.forest.related(from_id, to_id):
            assert ref is RefOutcome.ILLEGAL
        else:
            assert ref is RefOutcome.THERE
            new = to_id not in node.refs
            node.refs += [to_id] if new else []
            node.awaits = target.awaits = False
            got = self.client.get(self.tree.GetNode, t.GetNodeRequest(node_id=from_id))
            # A repetition may count as another write.
            self._take_version(node, got.version, changed=new, may_stay=not new)


def _own(fork: Session, target: Session) -> tuple[list[Rec], int]:
    """Returns the records that a merge covers, and through which seq both show the same."""
    common = diff(fork, target)[0]
    before = _merged(fork, target)
    covered = max(common, fork.floor, before["last_seq"] if before else 0)
    return [record for record in fork.records if record.seq > covered], common


def _merged(fork: Session, target: Session) -> dict[str, Any]:
    """Returns what the target's newest record of a merge of the fork tells; empty where there is none."""
    after = max(diff(fork, target)[0], target.floor)
    for record in reversed(target.records):
        if record.seq > after and "ramet_merge" in record.message.metadata_json:
            told: dict[str, Any] = json.loads(record.message.metadata_json)["ramet_merge"]
            if told["fork_id"] == fork.id:
                return told
    return {}
