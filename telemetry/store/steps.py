"""The SQL that reads steps."""

from collections.abc import Sequence

from sqlalchemy import Connection, or_, select

from ramet_server.database.tables.telemetry import agent_step
from telemetry.rules.chain_queries import LightStep, StepPlace
from telemetry.rules.values import Step
from telemetry.store import rows
from telemetry.store.stretches import text_size

_T = agent_step.c


class SqlSteps:
    """The steps of one space; implements ``rules.answer_ports.Steps``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def light(self, session_id: str, after: StepPlace | None, limit: int) -> Sequence[LightStep]:
        """Returns what tells how large the next steps of a diagnosis are, by step_index, then number."""
        size = text_size(_T.model_input, _T.model_output, _T.thought, _T.error_message)
        statement = select(_T.id, _T.step_key, _T.step_index, size.label("size")).where(
            _T.space_id == self._space, _T.session_id == session_id
        )
        if after is not None:
            later = or_(_T.step_index > after.step_index, _T.id > after.id)
            statement = statement.where(_T.step_index >= after.step_index, later)
        statement = statement.order_by(_T.step_index, _T.id).limit(limit)
        return [LightStep(*row) for row in self._connection.execute(statement)]

    def of_ids(self, ids: Sequence[int]) -> Sequence[Step]:
        """Returns those of these numbers that exist, in any order."""
        if not ids:
            return ()
        # By number alone: with the space beside it, SQLite reads all of the space.
        statement = select(*rows.STEP).where(_T.id.in_(ids))
        return [rows.step(row) for row in self._connection.execute(statement)]
