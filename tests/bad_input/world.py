"""The small world that bad requests are aimed at, and how it is made through the contracts."""

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from ramet.session.v1 import session_pb2 as s
from ramet.telemetry.v1 import telemetry_pb2 as m
from ramet.tree.v1 import tree_pb2 as t

STORED = "stored-and-never-told"
"""Stands in every text that the world stores; no error may repeat it."""

SENT = "sent-and-never-told"
"""Stands in every text that a valid request sends; no error may repeat it."""

SESSION = "alpha"
"""An active session with the records 1 to 4, a tool-call group among them, and all slots set."""

OTHER_SESSION = "beta"
"""A fork of SESSION with a record of its own."""

ARCHIVED = "archived"
"""An archived session with records and slots."""

FOREIGN = "abroad"
"""A session and a node that exist in FOREIGN_SPACE only."""

FOREIGN_SPACE = "elsewhere"

PARENT = "alpha"
"""A root with the children beta, gamma and zeta; epsilon stands under beta."""

Send = Callable[[str, Message], Any]
"""Calls an RPC by its name in the world's space, and returns the first message of the answer."""


def seed(send: Send) -> None:
    """Makes the world."""
    _seed_sessions(send)
    _seed_forest(send)
    _seed_telemetry(send)


def seed_foreign(send: Send) -> None:
    """Makes what lies in another space, out of the world's reach."""
    send("SessionStorage.PutSession", s.PutSessionRequest(session=s.Session(id=FOREIGN, label=STORED)))
    send("SessionTree.CreateSession", t.CreateSessionRequest(session_id=FOREIGN, label=STORED))
    send("Telemetry.AppendEvents", m.AppendEventsRequest(events=_diagnosis(FOREIGN)))


def conversation(mark: str) -> list[s.Record]:
    """Returns four records that fill every field of a record between them."""
    asked = s.Record(
        role=s.ROLE_USER,
        content=f"question {mark}",
        parts_json=f'[{{"text": "{mark}"}}]',
        metadata_json=f'{{"trace": "{mark}"}}',
    )
    asked.client_time.FromSeconds(1_700_000_000)
    called = s.ToolCall(id="call-1", name="search", arguments_json=f'{{"q": "{mark}"}}')
    return [
        asked,
        s.Record(role=s.ROLE_ASSISTANT, tool_calls=[called]),
        s.Record(role=s.ROLE_TOOL, content=f"found {mark}", tool_call_id="call-1", name="search"),
        s.Record(role=s.ROLE_ASSISTANT, content=f"answer {mark}"),
    ]


def _seed_sessions(send: Send) -> None:
    for session_id in (SESSION, ARCHIVED):
        session = s.Session(id=session_id, label=f"Label {STORED}", tags=["red"], metadata_json=f'{{"k": "{STORED}"}}')
        send("SessionStorage.PutSession", s.PutSessionRequest(session=session, system_prompt=f"prompt {STORED}"))
        records = conversation(STORED)
        send("SessionStorage.AppendRecords", s.AppendRecordsRequest(session_id=session_id, records=records))
        send("SessionStorage.PutInsight", s.PutInsightRequest(session_id=session_id, content=f"insight {STORED}"))
        send("SessionStorage.PutMemory", s.PutMemoryRequest(session_id=session_id, content=f"memory {STORED}"))
    fork = s.ForkSessionRequest(
        source_session_id=SESSION,
        session_id=OTHER_SESSION,
        tags=["red"],
        label=f"Label {STORED}",
        opening_prompt=STORED,
    )
    fork.all.SetInParent()
    send("SessionStorage.ForkSession", fork)
    send("SessionStorage.ArchiveSession", s.ArchiveSessionRequest(session_id=ARCHIVED))


def _seed_forest(send: Send) -> None:
    label = f"Label {STORED}"
    config = t.Config(system_prompt=f"prompt {STORED}", skills=t.Skills(names=["search"]))
    send("SessionTree.CreateSession", t.CreateSessionRequest(session_id=PARENT, label=label, config=config))
    for node_id, parent_id in (("beta", PARENT), ("gamma", PARENT), ("zeta", PARENT), ("epsilon", "beta")):
        send(
            "SessionTree.CreateSession",
            t.CreateSessionRequest(session_id=node_id, parent_id=parent_id, label=label, source_session_id=SESSION),
        )
    send("SessionTree.CreateSession", t.CreateSessionRequest(session_id="delta", label=label))
    send("SessionTree.AddRef", t.AddRefRequest(node_id="beta", target_id="delta"))


def _seed_telemetry(send: Send) -> None:
    # Two that any filter of the valid requests admits, so that lists have a second page.
    for session_id in (SESSION, OTHER_SESSION):
        reply = send("Telemetry.AppendEvents", m.AppendEventsRequest(events=_diagnosis(session_id)))
        assert not reply.refusals, reply


def _diagnosis(session_id: str) -> list[m.Event]:
    """Returns a whole diagnosis of two steps and two tool calls."""
    step = m.StepCompleted(agent_name="planner", status=m.RUN_STATUS_SUCCESS, model="small", thought=STORED)
    tool = m.ToolCompleted(
        step_key="step-0",
        tool_name="search",
        success=True,
        is_truncated=True,
        output_preview=STORED,
        retrieval=m.Retrieval(layer=m.RETRIEVAL_LAYER_L0),
    )
    bodies: list[m.Event] = [
        m.Event(
            diagnosis_started=m.DiagnosisStarted(query=f"question {STORED}", agent_flow="CHAT", conversation_id=SESSION)
        ),
        m.Event(self_evaluation=m.SelfEvaluation(confidence=50, reasoning=STORED)),
        m.Event(feedback=m.Feedback(source="user", value=m.FEEDBACK_VALUE_USEFUL, comment=STORED)),
        m.Event(diagnosis_completed=m.DiagnosisCompleted(status=m.RUN_STATUS_SUCCESS)),
    ]
    for number in range(2):
        done = m.StepCompleted(step_key=f"step-{number}", step_index=number)
        done.MergeFrom(step)
        bodies.append(m.Event(step_completed=done))
        called = m.ToolCompleted(invocation_key=f"tool-{number}")
        called.MergeFrom(tool)
        bodies.append(m.Event(tool_completed=called))
    for number, event in enumerate(bodies):
        event.event_id, event.session_id = f"{session_id}-{number}", session_id
        event.occurred_at.FromSeconds(1_700_000_000 + number)
    return bodies
