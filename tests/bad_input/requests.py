"""Valid requests of each RPC over the world, which fill between them every field that a client may fill."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf import empty_pb2, field_mask_pb2, timestamp_pb2
from google.protobuf.message import Message

from ramet.session.v1 import session_pb2 as s
from ramet.telemetry.v1 import telemetry_pb2 as m
from ramet.tree.v1 import tree_pb2 as t
from tests.bad_input.contract import Rpc
from tests.bad_input.world import ARCHIVED, OTHER_SESSION, PARENT, SENT, SESSION, conversation

Make = Callable[[], Message]


def valid_requests(rpc: Rpc) -> Sequence[Make]:
    """Returns what makes the valid requests of an RPC, each fresh; an empty one where none is known."""
    return _VALID.get(rpc.name, [rpc.request_class])


def has_valid_request(rpc: Rpc) -> bool:
    """Tells whether a valid request of an RPC is known."""
    return rpc.name in _VALID


def _session_filter() -> s.SessionFilter:
    long_ago = timestamp_pb2.Timestamp(seconds=1_000_000_000)
    far_off = timestamp_pb2.Timestamp(seconds=10_000_000_000)
    return s.SessionFilter(
        status=s.SESSION_STATUS_ACTIVE,
        tags=["red"],
        label_prefix="Label",
        created_from=long_ago,
        created_before=far_off,
        last_active_from=long_ago,
        last_active_before=far_off,
    )


def _list_sessions() -> Message:
    return s.ListSessionsRequest(
        filter=_session_filter(), order=s.SESSION_ORDER_CREATED_AT, descending=True, page_size=1
    )


def _put_session() -> Message:
    return s.PutSessionRequest(
        session=s.Session(id=SESSION, label=SENT, tags=["blue", "green"], metadata_json=f'["{SENT}"]'),
        update_mask=field_mask_pb2.FieldMask(paths=["label", "tags", "metadata_json"]),
        system_prompt=SENT,
    )


def _append_records() -> Message:
    return s.AppendRecordsRequest(
        session_id=SESSION,
        records=conversation(SENT),
        expected_head_seq=4,
        consume_insight_version=1,
        turn_delta=1,
    )


def _list_records() -> Message:
    return s.ListRecordsRequest(
        session_id=SESSION,
        roles=[s.ROLE_USER, s.ROLE_ASSISTANT],
        after_seq=0,
        before_seq=1000,
        order=s.RECORD_ORDER_DESCENDING,
        page_size=1,
    )


def _fork(**history: object) -> Make:
    def make() -> Message:
        request = s.ForkSessionRequest(
            source_session_id=SESSION,
            session_id="fork",
            label=SENT,
            tags=["blue"],
            metadata_json="{}",
            opening_prompt=SENT,
            system_prompt=SENT,
        )
        request.MergeFrom(s.ForkSessionRequest(**history))  # type: ignore[arg-type]  # any one member of the oneof
        return request

    return make


def _create_session() -> Message:
    return t.CreateSessionRequest(
        parent_id=PARENT,
        session_id="new",
        label=SENT,
        source_session_id=SESSION,
        config=t.Config(system_prompt=SENT, skills=t.Skills(names=["search", "write"])),
    )


def _put_config() -> Message:
    return t.PutConfigRequest(
        node_id=PARENT, config=t.Config(system_prompt=SENT, skills=t.Skills(names=["search", "write"]))
    )


def _list_nodes() -> Message:
    return t.ListNodesRequest(filter=t.NodeFilter(label_prefix="Label", source_session_id=SESSION), page_size=1)


def _list_diagnoses() -> Message:
    return m.ListDiagnosisSessionsRequest(
        filter=m.DiagnosisFilter(
            created_from=timestamp_pb2.Timestamp(seconds=1_000_000_000),
            created_before=timestamp_pb2.Timestamp(seconds=10_000_000_000),
            status=m.RUN_STATUS_SUCCESS,
            agent_flow="CHAT",
            feedback=m.FEEDBACK_VALUE_USEFUL,
            min_confidence=1,
            max_confidence=99,
            query_contains="Question",
            conversation_id=SESSION,
        ),
        page_size=1,
    )


def _list_tools() -> Message:
    return m.ListToolInvocationsRequest(
        filter=m.ToolFilter(
            session_id=SESSION,
            tool_name="search",
            layer=m.RETRIEVAL_LAYER_L0,
            is_truncated=True,
            success=True,
            created_from=timestamp_pb2.Timestamp(seconds=1_000_000_000),
            created_before=timestamp_pb2.Timestamp(seconds=10_000_000_000),
        ),
        page_size=1,
    )


def _put_feedback() -> Message:
    said = m.Feedback(source="reviewer", value=m.FEEDBACK_VALUE_NOT_USEFUL, comment=SENT)
    return m.PutFeedbackRequest(session_id=SESSION, feedback=said)


def _put_self_evaluation() -> Message:
    said = m.SelfEvaluation(confidence=50, reasoning=SENT, evidence_count=3, tools_proposed=100, tools_accepted=50)
    return m.PutSelfEvaluationRequest(session_id=SESSION, self_evaluation=said)


def _events() -> list[m.Event]:
    """Makes one event of each kind, every field of it filled."""
    early, late = timestamp_pb2.Timestamp(seconds=1_700_000_000), timestamp_pb2.Timestamp(seconds=1_700_000_009)
    used = m.Usage(input_tokens=10**12, cached_tokens=1, output_tokens=2, total_tokens=3, cost_micros=4)
    found = m.Retrieval(layer=m.RETRIEVAL_LAYER_L0, l0_match_count=1, l1_match_count=2, details_json=f'["{SENT}"]')
    step: dict[str, Any] = {
        "step_key": "step",
        "parent_step_key": "parent",
        "step_index": 1,
        "agent_name": "planner",
        "model": "small",
        "provider": "openai",
        "model_input_json": f'["{SENT}"]',
        "started_at": early,
    }
    bodies: list[dict[str, Message]] = [
        {
            "diagnosis_started": m.DiagnosisStarted(
                query=SENT, agent_flow="CHAT", conversation_id=SESSION, started_at=early
            )
        },
        {"diagnosis_completed": m.DiagnosisCompleted(status=m.RUN_STATUS_SUCCESS, ended_at=late, error_message=SENT)},
        {"step_started": m.StepStarted(**step)},
        {
            "step_completed": m.StepCompleted(
                **step,
                model_output_json=f'["{SENT}"]',
                thought=SENT,
                has_tool_call=True,
                status=m.RUN_STATUS_SUCCESS,
                error_message=SENT,
                usage=used,
                duration_ms=5,
                ended_at=late,
            )
        },
        {
            "tool_completed": m.ToolCompleted(
                invocation_key="tool",
                step_key="step",
                tool_name="search",
                input_params_json=f'["{SENT}"]',
                output_preview=SENT,
                output_length=9,
                is_truncated=True,
                retrieval=found,
                success=True,
                error_message=SENT,
                duration_ms=5,
                started_at=early,
                ended_at=late,
            )
        },
        {
            "self_evaluation": m.SelfEvaluation(
                confidence=50, reasoning=SENT, evidence_count=3, tools_proposed=100, tools_accepted=50
            )
        },
        {"feedback": m.Feedback(source="reviewer", value=m.FEEDBACK_VALUE_NOT_USEFUL, comment=SENT)},
    ]
    return [
        m.Event(event_id=f"sent-{number}", session_id="sent", occurred_at=late, **body)  # type: ignore[arg-type]  # one of the oneof
        for number, body in enumerate(bodies)
    ]


def _metrics(metric: m.Metric.ValueType, dimension: m.Dimension.ValueType, **names: str) -> Message:
    return m.QueryMetricsRequest(
        metrics=[metric],
        created_from=timestamp_pb2.Timestamp(seconds=1_700_000_000),
        created_before=timestamp_pb2.Timestamp(seconds=1_710_000_000),
        group_by=[dimension],
        agent_flow="CHAT",
        agent_name=names.get("agent_name", ""),
        tool_name=names.get("tool_name", ""),
        percentiles=[50],
    )


_VALID: Mapping[str, Sequence[Make]] = {
    "SessionStorage.GetSession": [lambda: s.GetSessionRequest(session_id=SESSION)],
    "SessionStorage.BatchGetSessions": [lambda: s.BatchGetSessionsRequest(session_ids=[SESSION, OTHER_SESSION])],
    "SessionStorage.ListSessions": [_list_sessions],
    "SessionStorage.PutSession": [_put_session],
    "SessionStorage.ArchiveSession": [lambda: s.ArchiveSessionRequest(session_id=SESSION)],
    "SessionStorage.RestoreSession": [lambda: s.RestoreSessionRequest(session_id=ARCHIVED)],
    "SessionStorage.DeleteSession": [lambda: s.DeleteSessionRequest(session_id=SESSION)],
    "SessionStorage.AppendRecords": [_append_records],
    "SessionStorage.ListRecords": [_list_records],
    "SessionStorage.TrimRecords": [lambda: s.TrimRecordsRequest(session_id=SESSION, keep_last=1)],
    "SessionStorage.TruncateRecords": [lambda: s.TruncateRecordsRequest(session_id=SESSION, after_seq=1)],
    "SessionStorage.EraseRecord": [lambda: s.EraseRecordRequest(session_id=SESSION, seq=1)],
    "SessionStorage.WatchRecords": [lambda: s.WatchRecordsRequest(session_id=SESSION, after_seq=1)],
    "SessionStorage.GetSystemPrompt": [lambda: s.GetSystemPromptRequest(session_id=SESSION)],
    "SessionStorage.PutSystemPrompt": [lambda: s.PutSystemPromptRequest(session_id=SESSION, content=SENT)],
    "SessionStorage.GetInsight": [lambda: s.GetInsightRequest(session_id=SESSION)],
    "SessionStorage.PutInsight": [lambda: s.PutInsightRequest(session_id=SESSION, content=SENT)],
    "SessionStorage.ClearInsight": [lambda: s.ClearInsightRequest(session_id=SESSION)],
    "SessionStorage.GetMemory": [lambda: s.GetMemoryRequest(session_id=SESSION)],
    "SessionStorage.PutMemory": [lambda: s.PutMemoryRequest(session_id=SESSION, content=SENT)],
    "SessionStorage.BatchGetSlots": [
        lambda: s.BatchGetSlotsRequest(session_ids=[SESSION, OTHER_SESSION], slots=[s.SLOT_NAME_MEMORY])
    ],
    "SessionStorage.GetContext": [
        lambda: s.GetContextRequest(session_id=SESSION, max_records=10, max_characters=10_000)
    ],
    "SessionStorage.ForkSession": [
        _fork(all=empty_pb2.Empty()),
        _fork(none=empty_pb2.Empty()),
        _fork(up_to_seq=1),
        _fork(last=1),
        _fork(records=s.RecordList(records=conversation(SENT))),
    ],
    "SessionStorage.DiffSessions": [
        lambda: s.DiffSessionsRequest(left_session_id=SESSION, right_session_id=OTHER_SESSION)
    ],
    "SessionStorage.GetServerInfo": [s.GetServerInfoRequest],
    "SessionTree.CreateSession": [_create_session],
    "SessionTree.GetNode": [lambda: t.GetNodeRequest(node_id=PARENT)],
    "SessionTree.ListNodes": [_list_nodes],
    "SessionTree.ListRoots": [lambda: t.ListRootsRequest(page_size=1)],
    "SessionTree.ListChildren": [lambda: t.ListChildrenRequest(node_id=PARENT, page_size=1)],
    "SessionTree.GetAncestors": [lambda: t.GetAncestorsRequest(node_id="epsilon", page_size=1)],
    "SessionTree.GetSiblings": [lambda: t.GetSiblingsRequest(node_id="beta", page_size=1)],
    "SessionTree.ListDescendants": [lambda: t.ListDescendantsRequest(node_id=PARENT, page_size=1)],
    "SessionTree.GetTree": [lambda: t.GetTreeRequest(node_id=PARENT, page_size=1)],
    "SessionTree.UpdateNode": [lambda: t.UpdateNodeRequest(node_id=PARENT, label=SENT)],
    "SessionTree.MoveNode": [lambda: t.MoveNodeRequest(node_id="gamma", parent_id="delta", index=0)],
    "SessionTree.DeleteNode": [lambda: t.DeleteNodeRequest(node_id="beta", policy=t.DELETE_POLICY_CASCADE)],
    "SessionTree.AddRef": [lambda: t.AddRefRequest(node_id="gamma", target_id="delta")],
    "SessionTree.RemoveRef": [lambda: t.RemoveRefRequest(node_id="beta", target_id="delta")],
    "SessionTree.GetConfig": [lambda: t.GetConfigRequest(node_id=PARENT)],
    "SessionTree.PutConfig": [_put_config],
    "SessionTree.WatchTree": [lambda: t.WatchTreeRequest(after_position=1)],
    "SessionTree.GetServerInfo": [t.GetServerInfoRequest],
    "Telemetry.AppendEvents": [lambda: m.AppendEventsRequest(events=_events())],
    "Telemetry.StreamEvents": [
        lambda: m.StreamEventsRequest(hello=m.Hello(producer_id="producer")),
        lambda: m.StreamEventsRequest(batch=m.EventBatch(first_seq=1, events=_events())),
        lambda: m.StreamEventsRequest(dropped=m.Dropped(from_seq=1, to_seq=1)),
    ],
    "Telemetry.GetDiagnosisSession": [lambda: m.GetDiagnosisSessionRequest(session_id=SESSION)],
    "Telemetry.ListDiagnosisSessions": [_list_diagnoses],
    "Telemetry.GetDecisionChain": [lambda: m.GetDecisionChainRequest(session_id=SESSION, page_size=1)],
    "Telemetry.ListToolInvocations": [_list_tools],
    "Telemetry.PutFeedback": [_put_feedback],
    "Telemetry.PutSelfEvaluation": [_put_self_evaluation],
    "Telemetry.QueryMetrics": [
        lambda: _metrics(m.METRIC_STEP_DURATION_MS, m.DIMENSION_MODEL, agent_name="planner"),
        lambda: _metrics(m.METRIC_TOOL_DURATION_MS, m.DIMENSION_TOOL_NAME, tool_name="search"),
    ],
    "Telemetry.TailEvents": [lambda: m.TailEventsRequest(session_id=SESSION)],
    "Telemetry.GetServerInfo": [m.GetServerInfoRequest],
}
