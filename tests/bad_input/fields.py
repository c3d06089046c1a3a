"""The table: which kind each field of the contracts is.

A field is found by message and name first, then by name and type. One that is in neither fails the tests, so that
whoever adds a field says here what can be wrong with it.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from google.protobuf.descriptor import FieldDescriptor

from ramet.session.v1 import session_pb2 as s
from ramet.telemetry.v1 import telemetry_pb2 as m
from ramet.tree.v1 import tree_pb2 as t
from tests.bad_input import kinds, writes
from tests.bad_input.contract import Rpc
from tests.bad_input.kinds import MIB, Kind
from tests.bad_input.places import is_filled, is_submessage, places
from tests.bad_input.requests import has_valid_request

_SESSION = kinds.id_kind("SESSION_NOT_FOUND")
_LABEL = kinds.short_text(256, required=False)
_NODE = kinds.id_kind("NODE_NOT_FOUND")
_DIAGNOSIS = kinds.id_kind("DIAGNOSIS_NOT_FOUND")
_EVENT_JSON = kinds.json_text(64 * 1024, levels=31)
_EVENT_TEXT = kinds.text(64 * 1024)
_TOKENS = kinds.number(10**12)

_BODIES = ("DiagnosisStarted", "DiagnosisCompleted", "StepStarted", "StepCompleted", "ToolCompleted")

BY_FIELD: Mapping[str, Kind] = {
    # Output only.
    **{
        f"ramet.session.v1.Session.{name}": kinds.OUTPUT_ONLY
        for name in (
            "status",
            "turn_count",
            "head_seq",
            "floor_seq",
            "version",
            "created_at",
            "updated_at",
            "last_active_at",
        )
    },
    **{f"ramet.session.v1.Record.{name}": kinds.OUTPUT_ONLY for name in ("seq", "created_at", "erased_at")},
    "ramet.tree.v1.Config.version": kinds.OUTPUT_ONLY,
    # Ids that may be left out, or that may name what does not exist.
    "ramet.session.v1.Session.id": kinds.optional_id_kind(),
    "ramet.session.v1.ForkSessionRequest.session_id": kinds.optional_id_kind(),
    "ramet.tree.v1.CreateSessionRequest.session_id": kinds.optional_id_kind(),
    "ramet.tree.v1.CreateSessionRequest.source_session_id": kinds.optional_id_kind(),
    "ramet.tree.v1.NodeFilter.source_session_id": kinds.optional_id_kind(),
    "ramet.tree.v1.RemoveRefRequest.target_id": kinds.id_kind(None),
    "ramet.session.v1.ForkSessionRequest.source_session_id": _SESSION,
    "ramet.session.v1.BatchGetSessionsRequest.session_ids": kinds.id_list_kind(1000),
    "ramet.session.v1.BatchGetSlotsRequest.session_ids": kinds.id_list_kind(10_000),
    # Records.
    "ramet.session.v1.AppendRecordsRequest.records": kinds.messages(1000, required=True),
    "ramet.session.v1.RecordList.records": kinds.messages(1000, required=False),
    "ramet.session.v1.EraseRecordRequest.seq": kinds.number(least=1),
    "ramet.session.v1.Record.role": kinds.enum(required=True, other=s.ROLE_SYSTEM),
    "ramet.session.v1.Record.content": kinds.text(4 * MIB, of_owner=True),
    "ramet.session.v1.Record.parts_json": kinds.json_text(4 * MIB, of_owner=True),
    "ramet.session.v1.Record.tool_calls": kinds.messages(128, required=False, other=writes.clear),
    "ramet.session.v1.Record.tool_call_id": kinds.short_text(256, required=True),
    "ramet.session.v1.Record.name": kinds.short_text(256, required=False),
    "ramet.session.v1.ToolCall.id": kinds.short_text(256, required=True),
    "ramet.session.v1.ToolCall.name": kinds.short_text(256, required=True),
    "ramet.session.v1.ToolCall.arguments_json": kinds.json_text(4 * MIB, of_owner=True),
    "ramet.session.v1.ListRecordsRequest.roles": kinds.enums(other=s.ROLE_TOOL),
    "ramet.session.v1.ListRecordsRequest.order": kinds.enum(other=s.RECORD_ORDER_ASCENDING),
    "ramet.session.v1.ListRecordsRequest.offset": kinds.number(1_000_000),
    # Slots.
    "ramet.session.v1.PutInsightRequest.content": kinds.text(4 * MIB, required=True),
    "ramet.session.v1.PutMemoryRequest.content": kinds.text(4 * MIB),
    "ramet.session.v1.PutSystemPromptRequest.content": kinds.text(4 * MIB),
    "ramet.session.v1.BatchGetSlotsRequest.slots": kinds.enums(other=s.SLOT_NAME_INSIGHT),
    # Sessions.
    "ramet.session.v1.SessionFilter.status": kinds.enum(other=s.SESSION_STATUS_ARCHIVED),
    "ramet.session.v1.ListSessionsRequest.order": kinds.enum(other=s.SESSION_ORDER_ID),
    "ramet.session.v1.PutSessionRequest.update_mask": kinds.mask("label"),
    "ramet.session.v1.AppendRecordsRequest.turn_delta": kinds.number(1000),
    # Forks.
    "ramet.session.v1.ForkSessionRequest.none": kinds.MESSAGE,
    "ramet.session.v1.ForkSessionRequest.all": kinds.MESSAGE,
    "ramet.session.v1.ForkSessionRequest.up_to_seq": kinds.number(),
    "ramet.session.v1.ForkSessionRequest.last": kinds.number(),
    "ramet.session.v1.ForkSessionRequest.records": kinds.MESSAGE,
    "ramet.session.v1.ForkSessionRequest.opening_prompt": kinds.text(4 * MIB),
    # The forest.
    "ramet.tree.v1.UpdateNodeRequest.label": replace(_LABEL, bad=[*_LABEL.bad, kinds.Bad("absent", writes.clear)]),
    "ramet.tree.v1.PutConfigRequest.config": Kind([kinds.Bad("absent", writes.clear)]),
    "ramet.tree.v1.DeleteNodeRequest.policy": kinds.enum(other=t.DELETE_POLICY_REPARENT),
    "ramet.tree.v1.Skills.names": kinds.SKILL_NAMES,
    # Telemetry.
    "ramet.telemetry.v1.GetDiagnosisSessionRequest.session_id": _DIAGNOSIS,
    "ramet.telemetry.v1.GetDecisionChainRequest.session_id": _DIAGNOSIS,
    "ramet.telemetry.v1.PutFeedbackRequest.session_id": kinds.id_kind(None),
    "ramet.telemetry.v1.PutSelfEvaluationRequest.session_id": kinds.id_kind(None),
    "ramet.telemetry.v1.TailEventsRequest.session_id": kinds.optional_id_kind(),
    "ramet.telemetry.v1.ToolFilter.session_id": kinds.optional_id_kind(),
    "ramet.telemetry.v1.DiagnosisFilter.status": kinds.enum(other=m.RUN_STATUS_ABANDONED),
    "ramet.telemetry.v1.DiagnosisFilter.feedback": kinds.enum(other=m.FEEDBACK_VALUE_NOT_USEFUL),
    "ramet.telemetry.v1.DiagnosisFilter.min_confidence": kinds.number(100),
    "ramet.telemetry.v1.DiagnosisFilter.max_confidence": kinds.number(100),
    "ramet.telemetry.v1.DiagnosisFilter.query_contains": kinds.short_text(256, required=False),
    "ramet.telemetry.v1.DiagnosisFilter.conversation_id": kinds.optional_id_kind(),
    "ramet.telemetry.v1.ToolFilter.layer": kinds.enum(other=m.RETRIEVAL_LAYER_L1),
    # Events.
    "ramet.telemetry.v1.AppendEventsRequest.events": kinds.messages(1000, required=True),
    "ramet.telemetry.v1.EventBatch.events": kinds.messages(1000, required=True),
    "ramet.telemetry.v1.EventBatch.first_seq": kinds.number(least=1),
    "ramet.telemetry.v1.Dropped.from_seq": Kind([kinds.Bad("0", writes.put(0)), kinds.Bad("negative", writes.put(-1))]),
    "ramet.telemetry.v1.Dropped.to_seq": kinds.number(least=1),
    "ramet.telemetry.v1.Hello.producer_id": kinds.id_kind(None),
    "ramet.telemetry.v1.Event.event_id": kinds.id_kind(None),
    "ramet.telemetry.v1.Event.session_id": kinds.id_kind(None),
    "ramet.telemetry.v1.Event.occurred_at": replace(kinds.required_time(1_600_000_000), good=kinds.TIME.good),
    "ramet.telemetry.v1.DiagnosisStarted.query": _EVENT_TEXT,
    "ramet.telemetry.v1.DiagnosisStarted.conversation_id": kinds.optional_id_kind(),
    "ramet.telemetry.v1.DiagnosisCompleted.status": kinds.end_status(m.RUN_STATUS_FAILED),
    "ramet.telemetry.v1.StepStarted.agent_name": kinds.short_text(32, required=True),
    "ramet.telemetry.v1.StepCompleted.agent_name": kinds.short_text(32, required=True),
    "ramet.telemetry.v1.StepCompleted.status": kinds.end_status(m.RUN_STATUS_CANCELLED),
    "ramet.telemetry.v1.StepCompleted.thought": _EVENT_TEXT,
    "ramet.telemetry.v1.ToolCompleted.step_key": kinds.optional_id_kind(),
    "ramet.telemetry.v1.ToolCompleted.tool_name": kinds.short_text(64, required=True),
    "ramet.telemetry.v1.ToolCompleted.output_preview": kinds.PREVIEW,
    "ramet.telemetry.v1.ToolCompleted.output_length": kinds.number(),
    "ramet.telemetry.v1.Retrieval.layer": kinds.enum(other=m.RETRIEVAL_LAYER_L1),
    # Cached tokens are part of the input, which is all that there may be in the valid request.
    "ramet.telemetry.v1.Usage.input_tokens": replace(_TOKENS, good=(), other=None),
    "ramet.telemetry.v1.Feedback.source": kinds.id_kind(None),
    "ramet.telemetry.v1.Feedback.value": kinds.enum(required=True, other=m.FEEDBACK_VALUE_USEFUL),
    "ramet.telemetry.v1.Feedback.comment": kinds.short_text(4096, required=False),
    "ramet.telemetry.v1.Feedback.updated_at": kinds.OUTPUT_ONLY,
    "ramet.telemetry.v1.SelfEvaluation.confidence": kinds.number(100),
    "ramet.telemetry.v1.SelfEvaluation.reasoning": kinds.text(64 * 1024),
    "ramet.telemetry.v1.SelfEvaluation.evidence_count": kinds.number(),
    # At most as many are accepted as were proposed.
    "ramet.telemetry.v1.SelfEvaluation.tools_proposed": Kind(kinds.number().bad, other=writes.put(99)),
    "ramet.telemetry.v1.SelfEvaluation.tools_accepted": Kind(kinds.number().bad, other=writes.put(7)),
    "ramet.telemetry.v1.QueryMetricsRequest.metrics": kinds.METRICS,
    "ramet.telemetry.v1.QueryMetricsRequest.group_by": kinds.enums(other=m.DIMENSION_DAY),
    # The two lie at most 400 days apart.
    "ramet.telemetry.v1.QueryMetricsRequest.created_from": kinds.required_time(1_700_000_001),
    "ramet.telemetry.v1.QueryMetricsRequest.created_before": kinds.required_time(1_710_000_001),
    "ramet.telemetry.v1.QueryMetricsRequest.percentiles": kinds.PERCENTILES,
}
"""Kinds by the full name of the field."""

BY_NAME: Mapping[tuple[str, str], Kind] = {
    ("session_id", "string"): _SESSION,
    ("left_session_id", "string"): _SESSION,
    ("right_session_id", "string"): _SESSION,
    ("node_id", "string"): _NODE,
    ("parent_id", "string"): _NODE,
    ("target_id", "string"): _NODE,
    ("request_id", "string"): kinds.REQUEST_ID,
    ("label", "string"): _LABEL,
    ("label_prefix", "string"): kinds.short_text(256, required=False),
    ("tags", "repeated string"): kinds.TAGS,
    ("metadata_json", "string"): kinds.json_text(MIB),
    ("system_prompt", "string"): kinds.text(4 * MIB),
    ("page_size", "int32"): kinds.number(),
    ("page_token", "string"): kinds.PAGE_TOKEN,
    ("agent_flow", "string"): kinds.short_text(32, required=False),
    ("agent_name", "string"): kinds.short_text(32, required=False),
    ("tool_name", "string"): kinds.short_text(64, required=False),
    ("step_key", "string"): kinds.id_kind(None),
    ("parent_step_key", "string"): kinds.optional_id_kind(),
    ("invocation_key", "string"): kinds.id_kind(None),
    ("step_index", "int32"): kinds.number(),
    ("model", "string"): kinds.short_text(256, required=False),
    ("provider", "string"): kinds.short_text(256, required=False),
    ("error_message", "string"): kinds.short_text(4096, required=False),
    ("model_input_json", "string"): _EVENT_JSON,
    ("model_output_json", "string"): _EVENT_JSON,
    ("input_params_json", "string"): _EVENT_JSON,
    ("details_json", "string"): _EVENT_JSON,
    ("has_tool_call", "bool"): kinds.FLAG,
    ("is_truncated", "bool"): kinds.FLAG,
    ("success", "bool"): kinds.FLAG,
    ("duration_ms", "int64"): kinds.DURATION,
    ("cached_tokens", "int64"): _TOKENS,
    ("output_tokens", "int64"): _TOKENS,
    ("total_tokens", "int64"): _TOKENS,
    ("cost_micros", "int64"): _TOKENS,
    ("l0_match_count", "int32"): kinds.number(),
    ("l1_match_count", "int32"): kinds.number(),
    ("started_at", "google.protobuf.Timestamp"): kinds.TIME,
    ("ended_at", "google.protobuf.Timestamp"): kinds.TIME,
    **{
        (name, f"ramet.telemetry.v1.{message}"): kinds.MESSAGE
        for name, message in (
            *((re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower(), kind) for kind in _BODIES),
            ("usage", "Usage"),
            ("retrieval", "Retrieval"),
            ("hello", "Hello"),
            ("batch", "EventBatch"),
            ("dropped", "Dropped"),
        )
    },
    ("feedback", "ramet.telemetry.v1.Feedback"): kinds.MESSAGE,
    ("self_evaluation", "ramet.telemetry.v1.SelfEvaluation"): kinds.MESSAGE,
    ("filter", "ramet.telemetry.v1.DiagnosisFilter"): kinds.FILTER,
    ("filter", "ramet.telemetry.v1.ToolFilter"): kinds.FILTER,
    ("keep_last", "int32"): kinds.number(),
    ("index", "int32"): kinds.number(),
    ("max_records", "int32"): kinds.number(),
    ("max_characters", "int64"): kinds.number(),
    ("after_seq", "int64"): kinds.number(),
    ("after_position", "int64"): kinds.number(),
    ("before_seq", "int64"): kinds.number(),
    ("expected_version", "int64"): kinds.number(),
    ("expected_head_seq", "int64"): kinds.number(),
    ("consume_insight_version", "int64"): kinds.number(),
    ("descending", "bool"): kinds.FLAG,
    ("awaits_content", "bool"): kinds.FLAG,
    ("delete_sessions", "bool"): kinds.FLAG,
    ("only_awaiting", "bool"): kinds.FLAG,
    ("client_time", "google.protobuf.Timestamp"): kinds.TIME,
    ("created_from", "google.protobuf.Timestamp"): kinds.TIME,
    ("created_before", "google.protobuf.Timestamp"): kinds.TIME,
    ("last_active_from", "google.protobuf.Timestamp"): kinds.TIME,
    ("last_active_before", "google.protobuf.Timestamp"): kinds.TIME,
    ("filter", "ramet.session.v1.SessionFilter"): kinds.FILTER,
    ("filter", "ramet.tree.v1.NodeFilter"): kinds.FILTER,
    ("session", "ramet.session.v1.Session"): kinds.MESSAGE,
    ("config", "ramet.tree.v1.Config"): kinds.MESSAGE,
    ("skills", "ramet.tree.v1.Skills"): kinds.MESSAGE,
}
"""Kinds by a field's name and type, for names that mean the same wherever they stand."""

_TYPE_NAMES = {
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
}


def type_name(field: FieldDescriptor) -> str:
    """Returns the field's type as the contract writes it."""
    named = field.message_type or field.enum_type
    name = named.full_name if named is not None else _TYPE_NAMES.get(field.type, str(field.type))
    return f"repeated {name}" if field.is_repeated else name


def kind_of(field: FieldDescriptor) -> Kind:
    """Returns the field's kind, and one without bad values where the tables have none: see ``gaps``."""
    return _find(field) or Kind()


def gaps(rpc: Rpc) -> list[str]:
    """Returns what these tables do not know of an RPC: for each gap a sentence that says what to add."""
    found = []
    if not has_valid_request(rpc):
        found.append(f"{rpc.name} has no valid request: add one to tests/bad_input/requests.py.")
    for place in places(rpc):
        field = place.field
        if _find(field) is None:
            found.append(
                f"{field.full_name} ({type_name(field)}) is in neither table of tests/bad_input/fields.py: add it to "
                f"BY_FIELD, or to BY_NAME if the name means the same wherever it stands, with the kind from "
                f"tests/bad_input/kinds.py that says which values are bad in it."
            )
        elif is_submessage(field) and not is_filled(place):
            found.append(
                f"No valid request of {rpc.name} fills {place.path}, so the fields within it cannot be tried: fill it "
                f"in tests/bad_input/requests.py."
            )
    return found


def _find(field: FieldDescriptor) -> Kind | None:
    return BY_FIELD.get(field.full_name) or BY_NAME.get((field.name, type_name(field)))
