"""Telemetry as tests drive it: through the servicer, in few words, with a look at the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Table, select

import telemetry
from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server.database.database import Database
from ramet_server.database.tables import telemetry as tables
from ramet_server.domain.call import Call
from ramet_server.domain.limits import Limits

CHANCE = {"id", "step_id", "space_id", "created_at", "updated_at", "last_heard_at"}
"""Columns that hang on when and where an event came."""


class TurnedClock:
    """The machine's clock, turned by hand."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        """Returns the moment that tests want."""
        return datetime.now(UTC) + self.ahead


class World:
    """The diagnoses of one space."""

    def __init__(self, database: Database, space: str, clock: TurnedClock, limits: Limits | None = None) -> None:
        self.database = database
        self.space = space
        self.clock = clock
        self.limits = limits or Limits()
        self.service = telemetry.build(database, self.limits, clock)

    @property
    def call(self) -> Call:
        """A call without a deadline."""
        return Call(self.space)

    def elsewhere(self, space: str) -> World:
        """Returns another space of the same database."""
        return World(self.database, space, self.clock, self.limits)

    def with_limits(self, **limits: Any) -> World:
        """Returns the same space under other limits."""
        return World(self.database, self.space, self.clock, replace(self.limits, **limits))

    def tell(self, *events: pb.Event) -> pb.AppendEventsResponse:
        """Takes a batch of events."""
        return self.service.AppendEvents(pb.AppendEventsRequest(events=events), self.call)

    def told(self, *events: pb.Event) -> None:
        """Takes a batch of events, none of which may be refused."""
        reply = self.tell(*events)
        assert not reply.refusals, reply.refusals
        assert reply.accepted == len(events)

    def say(
        self, value: pb.FeedbackValue.ValueType, session_id: str = "d", request_id: str = "", **fields: Any
    ) -> pb.Feedback:
        """Sets what a source thinks."""
        said = pb.Feedback(**{"source": "user", "value": value, **fields})
        request = pb.PutFeedbackRequest(session_id=session_id, feedback=said, request_id=request_id)
        return self.service.PutFeedback(request, self.call)

    def judge(self, session_id: str = "d", request_id: str = "", **fields: Any) -> pb.SelfEvaluation:
        """Sets what the model thinks of its conclusion."""
        request = pb.PutSelfEvaluationRequest(
            session_id=session_id, self_evaluation=pb.SelfEvaluation(**fields), request_id=request_id
        )
        return self.service.PutSelfEvaluation(request, self.call)

    def rows(self, table: Table, *order: str) -> list[dict[str, Any]]:
        """Returns all rows of the space."""
        query = select(table).where(table.c.space_id == self.space).order_by(*(table.c[name] for name in order))
        return self.database.read(
            self.call, lambda connection: [dict(row) for row in connection.execute(query).mappings()]
        )

    def diagnosis(self) -> dict[str, Any]:
        """Returns the only diagnosis."""
        (row,) = self.rows(tables.diagnosis_session)
        return row

    def steps(self) -> list[dict[str, Any]]:
        """Returns all steps, in the order of a decision chain."""
        return self.rows(tables.agent_step, "session_id", "step_index", "id")

    def tools(self) -> list[dict[str, Any]]:
        """Returns all tool calls."""
        return self.rows(tables.tool_invocation, "session_id", "invocation_key")

    def words(self) -> list[dict[str, Any]]:
        """Returns all feedback."""
        return self.rows(tables.diagnosis_feedback, "session_id", "source")

    def everything(self) -> dict[str, list[dict[str, Any]]]:
        """Returns all rows of diagnoses, without what hangs on chance; a tool call tells the key of its step."""
        keys = {row["id"]: row["step_key"] for row in self.rows(tables.agent_step)}
        found = {
            "diagnoses": self.rows(tables.diagnosis_session, "session_id"),
            "steps": self.rows(tables.agent_step, "session_id", "step_key"),
            "tools": self.rows(tables.tool_invocation, "session_id", "invocation_key"),
            "words": self.words(),
        }
        for row in found["tools"]:
            row["found_step"] = keys.get(row["step_id"])
        for row in found["words"]:
            row["said_at"] = row["updated_at"]
        return {
            name: [{key: value for key, value in row.items() if key not in CHANCE} for row in rows]
            for name, rows in found.items()
        }


def refused(reply: pb.AppendEventsResponse) -> list[tuple[str, str, str]]:
    """Tells of each refusal the event, the reason and the field."""
    return [(refusal.event_id, refusal.reason, refusal.field) for refusal in reply.refusals]


def sizes(total: int, cuts: Sequence[int]) -> list[int]:
    """Makes the sizes of batches of places to cut at."""
    places = sorted({cut for cut in cuts if 0 < cut < total})
    return [end - begin for begin, end in zip([0, *places], places, strict=False)]
