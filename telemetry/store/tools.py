"""The SQL that reads tool calls."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from ramet_server.database.tables.telemetry import tool_invocation
from telemetry.rules.chain_queries import LightTool, ToolSum
from telemetry.rules.list_queries import ToolFilter, ToolQuery
from telemetry.rules.pages import Found, Place
from telemetry.rules.values import ToolCall
from telemetry.store import rows
from telemetry.store.stretches import fitting, stretch, text_size

_T = tool_invocation.c
_SIZE = text_size(_T.input_params, _T.output_preview, _T.retrieval_details, _T.error_message)
_ROW_BYTES = 512


class SqlTools:
    """The tool calls of one space; implements ``rules.answer_ports.Tools``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def sums(self, session_id: str, step_keys: Sequence[str]) -> Mapping[str, ToolSum]:
        """Returns by step how many tool calls it made, and how large they are together."""
        if not step_keys:
            return {}
        statement = (
            select(_T.step_key, func.count().label("count"), func.sum(_SIZE).label("size"))
            .where(self._of(session_id), _T.step_key.in_(step_keys))
            .group_by(_T.step_key)
        )
        return {row.step_key: ToolSum(row[1], int(row.size)) for row in self._connection.execute(statement)}

    def of_steps(self, session_id: str, step_keys: Sequence[str], most: int) -> Sequence[LightTool]:
        """Returns the first tool calls of each step by number, at most ``most`` of each."""
        if not step_keys:
            return ()
        place = func.row_number().over(partition_by=_T.step_key, order_by=_T.id)
        numbered = (
            select(_T.id, _T.step_key, _SIZE.label("size"), place.label("place"))
            .where(self._of(session_id), _T.step_key.in_(step_keys))
            .subquery()
        )
        shown = numbered.c
        statement = select(shown.id, shown.step_key, shown.size).where(shown.place <= most).order_by(shown.id)
        return [LightTool(*row) for row in self._connection.execute(statement)]

    def loose(self, session_id: str, most: int) -> Sequence[LightTool]:
        """Returns the first tool calls that name no step, or one that has not come, by number."""
        statement = (
            select(_T.id, _T.step_key, _SIZE.label("size"))
            .where(self._of(session_id), _T.step_id.is_(None))
            .order_by(_T.id)
            .limit(most)
        )
        return [LightTool(*row) for row in self._connection.execute(statement)]

    def of_ids(self, ids: Sequence[int]) -> Sequence[ToolCall]:
        """Returns those of these numbers that exist, in any order."""
        if not ids:
            return ()
        # By number alone: with the space beside it, SQLite reads all of the space.
        statement = select(*rows.TOOL_CALL).where(_T.id.in_(ids))
        return [rows.tool_call(row) for row in self._connection.execute(statement)]

    def examine(self, query: ToolQuery) -> Found[ToolCall]:
        """Looks at a bounded stretch of the query's index, newest first."""
        admits = query.admits
        prefix, more = _driving(self._space, admits)
        length = query.examine if more else query.limit + 1
        part = stretch(tool_invocation, [prefix], (admits.created_from, admits.created_before), query.after, length)
        admitted = self._connection.execute(
            select(_T.id, part.rows.c.created_at, _SIZE.label("size"))
            .select_from(part.rows)
            .join(tool_invocation, _T.id == part.rows.c.id)
            .where(*more)
            .order_by(part.rows.c.created_at.desc(), part.rows.c.id.desc())
            .limit(query.limit + 1)
        ).all()
        count = fitting([row.size + _ROW_BYTES for row in admitted], query.limit, query.max_bytes)
        if count < len(admitted):
            goes_on_after: Place | None = Place(admitted[count - 1].created_at, admitted[count - 1].id)
        else:
            goes_on_after = part.end(self._connection) if more else None
        page = [row.id for row in admitted[:count]]
        found = {each.id: each for each in self.of_ids(page)}
        # Without a snapshot one may be deleted between the queries.
        return Found([found[number] for number in page if number in found], goes_on_after)

    def _of(self, session_id: str) -> ColumnElement[bool]:
        return (_T.space_id == self._space) & (_T.session_id == session_id)


def _driving(space: str, admits: ToolFilter) -> tuple[list[Any], list[ColumnElement[bool]]]:
    """Returns the prefix of the index that drives the list, and the conditions that it does not decide."""
    # The first that is given is the one that leaves least to look at, as a rule.
    prefixes: list[Any] = []
    if admits.session_id:
        prefixes.append(_T.session_id == admits.session_id)
    if admits.layer is not None:
        prefixes.append(_T.retrieval_layer == admits.layer)
    if admits.tool_name:
        prefixes.append(_T.tool_name == admits.tool_name)
    more: list[ColumnElement[bool]] = prefixes[1:]
    if admits.is_truncated is not None:
        more.append(_T.is_truncated == admits.is_truncated)
    if admits.success is not None:
        more.append(_T.success == admits.success)
    return [_T.space_id == space, *prefixes[:1]], more
