"""The SQL that reads diagnoses."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from ramet_server.database.tables.telemetry import diagnosis_feedback, diagnosis_session
from telemetry.rules.list_queries import DiagnosisFilter, DiagnosisQuery
from telemetry.rules.pages import Found, Place
from telemetry.rules.values import Diagnosis, Feedback, RunStatus
from telemetry.store import rows
from telemetry.store.stretches import Stretch, fitting, stretch, text_size

FEEDBACK_SHOWN = 100
"""Sources whose word comes with a diagnosis."""

_T = diagnosis_session.c
_F = diagnosis_feedback.c
_ROW_BYTES = 512


class SqlDiagnoses:
    """The diagnoses of one space; implements ``rules.answer_ports.Diagnoses``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def get(self, session_id: str) -> Diagnosis | None:
        """Returns one."""
        found = self._read(_T.space_id == self._space, _T.session_id == session_id)
        return found[0] if found else None

    def of_ids(self, ids: Sequence[int]) -> Sequence[Diagnosis]:
        """Returns those of these numbers that exist."""
        # By number alone: with the space beside it, SQLite reads all of the space.
        return self._read(_T.id.in_(ids)) if ids else ()

    def examine(self, query: DiagnosisQuery) -> Found[Diagnosis]:
        """Looks at a bounded stretch of the query's index, newest first."""
        admits = query.admits
        prefixes, more = _driving(self._space, query)
        length = query.examine if more else query.limit + 1
        part = stretch(diagnosis_session, prefixes, (admits.created_from, admits.created_before), query.after, length)
        page, goes_on_after = self._page(part, more, query)
        found = {each.id: each for each in self.of_ids(page)}
        # Without a snapshot one may be deleted between the queries.
        return Found([found[number] for number in page if number in found], goes_on_after)

    def _page(
        self, part: Stretch, more: list[ColumnElement[bool]], query: DiagnosisQuery
    ) -> tuple[list[int], Place | None]:
        size = text_size(_T.query, _T.self_evaluation, _T.error_message)
        admitted = self._connection.execute(
            select(_T.id, part.rows.c.created_at, _T.session_id, size.label("size"))
            .select_from(part.rows)
            .join(diagnosis_session, _T.id == part.rows.c.id)
            .where(*more)
            .order_by(part.rows.c.created_at.desc(), part.rows.c.id.desc())
            .limit(query.limit + 1)
        ).all()
        of_feedback = self._feedback_sizes([row.session_id for row in admitted])
        sizes = [row.size + of_feedback.get(row.session_id, 0) + _ROW_BYTES for row in admitted]
        count = fitting(sizes, query.limit, query.max_bytes)
        page = [row.id for row in admitted[:count]]
        if count < len(admitted):
            return page, Place(admitted[count - 1].created_at, admitted[count - 1].id)
        return page, part.end(self._connection) if more else None

    def _read(self, *where: ColumnElement[bool]) -> list[Diagnosis]:
        statement = select(*rows.DIAGNOSIS).where(*where)
        found = [rows.diagnosis(row) for row in self._connection.execute(statement)]
        feedback = self._feedback([each.session_id for each in found])
        return [replace(each, feedback=tuple(feedback.get(each.session_id, ()))) for each in found]

    def _feedback(self, session_ids: Sequence[str]) -> Mapping[str, list[Feedback]]:
        if not session_ids:
            return {}
        place = func.row_number().over(partition_by=_F.session_id, order_by=_F.source)
        numbered = (
            select(*rows.FEEDBACK, place.label("place"))
            .where(_F.space_id == self._space, _F.session_id.in_(session_ids))
            .subquery()
        )
        shown = select(*(c for c in numbered.c if c.name != "place")).where(numbered.c.place <= FEEDBACK_SHOWN)
        by_session: dict[str, list[Feedback]] = {}
        for row in self._connection.execute(shown.order_by(numbered.c.session_id, numbered.c.source)):
            by_session.setdefault(row.session_id, []).append(rows.feedback(row))
        return by_session

    def _feedback_sizes(self, session_ids: Sequence[str]) -> Mapping[str, int]:
        if not session_ids:
            return {}
        size = func.sum(func.length(_F.comment) + _ROW_BYTES)
        statement = (
            select(_F.session_id, size.label("size"))
            .where(_F.space_id == self._space, _F.session_id.in_(session_ids))
            .group_by(_F.session_id)
        )
        return {row.session_id: int(row.size) for row in self._connection.execute(statement)}


_NOT_ENDED = (RunStatus.PENDING, RunStatus.RUNNING)


def _driving(space: str, query: DiagnosisQuery) -> tuple[list[list[Any]], list[ColumnElement[bool]]]:
    """Returns the prefixes of the index that drives the list, and the conditions that it does not decide."""
    admits = query.admits
    here = _T.space_id == space
    more = _conditions(admits)
    statuses: tuple[RunStatus, ...] = ()
    if admits.status is RunStatus.ABANDONED:
        statuses = _NOT_ENDED
        more.append(_T.last_heard_at <= query.silent_since)
    elif admits.status is not None:
        statuses = (admits.status,)
        if admits.status in _NOT_ENDED:
            more.append(_T.last_heard_at > query.silent_since)
    # The first that is given is the one that leaves least to look at, as a rule.
    prefixes: list[tuple[bool, list[list[Any]]]] = [
        (bool(admits.conversation_id), [[here, _T.conversation_id == admits.conversation_id]]),
        (admits.feedback is not None, [[here, _T.feedback == admits.feedback]]),
        (bool(statuses), [[here, _T.status == status] for status in statuses]),
        (bool(admits.agent_flow), [[here, _T.agent_flow == admits.agent_flow]]),
    ]
    given = [branches for wanted, branches in prefixes if wanted]
    if not given:
        return [[here]], more
    for other in given[1:]:
        more.append(_T.status.in_(statuses) if other is prefixes[2][1] else other[0][1])
    return given[0], more


def _conditions(admits: DiagnosisFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if admits.min_confidence is not None:
        conditions.append(_T.confidence >= admits.min_confidence)
    if admits.max_confidence is not None:
        conditions.append(_T.confidence <= admits.max_confidence)
    if admits.query_contains:
        conditions.append(_contains(admits.query_contains))
    return conditions


def _contains(text: str) -> ColumnElement[bool]:
    """Compares without regard to the case of ASCII letters; LOWER knows more letters on one backend than on another."""
    # Both backends compare these texts byte for byte. Only the letters that are looked for matter.
    query: ColumnElement[Any] = _T.query
    for letter in sorted({each.lower() for each in text if each.isascii() and each.isalpha()}):
        query = func.replace(query, letter.upper(), letter)
        text = text.replace(letter.upper(), letter)
    return func.instr(query, text) > 0
