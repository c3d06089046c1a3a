"""Diagnoses: one by its id, and lists of them, newest first."""

from dataclasses import replace
from datetime import datetime, timedelta

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import DiagnosisNotFound, InvalidField
from ramet_server.domain.ids import check_id, check_optional_id
from ramet_server.domain.limits import Limits
from ramet_server.domain.paging import check_page_size, query_fingerprint
from ramet_server.domain.text import check_label
from telemetry.rules.answer_ports import AnswersStore
from telemetry.rules.list_queries import DiagnosisFilter, DiagnosisQuery
from telemetry.rules.pages import (
    EXAMINED,
    EXAMINED_TEXTS,
    Page,
    PageWish,
    place_of,
    token_of,
)
from telemetry.rules.values import Diagnosis, RunStatus, Step, shown_status

MAX_NAME_CHARACTERS = 32
"""Of flows and agents."""

_MAX_CONTAINS_CHARACTERS = 256


class ListingRules:
    """Reads diagnoses; their status is the one that is shown."""

    def __init__(self, store: AnswersStore, limits: Limits, clock: Clock) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock

    def get(self, call: Call, session_id: str) -> Diagnosis:
        """Returns one diagnosis; raises DiagnosisNotFound."""
        check_id(session_id, "session_id")
        found = self._store.read(call, lambda unit: unit.diagnoses.get(session_id))
        return self.shown(known_diagnosis(found))

    def list(self, call: Call, admits: DiagnosisFilter, wish: PageWish) -> Page[Diagnosis]:
        """Returns a page, maybe a short one; see the contract."""
        _check_filter(admits)
        limit = check_page_size(wish.size, self._limits.default_page_size, self._limits.max_page_size)
        fingerprint = query_fingerprint("ListDiagnosisSessions", call.space, *_parts(admits))
        query = DiagnosisQuery(
            admits,
            self._silent_since(),
            place_of(wish.token, fingerprint),
            limit,
            examine=EXAMINED_TEXTS if admits.query_contains else EXAMINED,
            max_bytes=self._limits.max_page_bytes,
        )
        found = self._store.read(call, lambda unit: unit.diagnoses.examine(query))
        return Page([self.shown(each) for each in found.rows], token_of(found.goes_on_after, fingerprint))

    def shown(self, diagnosis: Diagnosis) -> Diagnosis:
        """Returns a diagnosis as a reader sees it."""
        status = self._shown(diagnosis.status, diagnosis)
        return diagnosis if status is diagnosis.status else replace(diagnosis, status=status)

    def shown_step(self, step: Step, diagnosis: Diagnosis) -> Step:
        """Returns a step of a diagnosis as a reader sees it."""
        status = self._shown(step.status, diagnosis)
        return step if status is step.status else replace(step, status=status)

    def _shown(self, status: RunStatus, diagnosis: Diagnosis) -> RunStatus:
        silence_s = self._limits.abandoned_after_seconds
        return shown_status(status, diagnosis.last_heard_at, self._clock.now(), silence_s)

    def _silent_since(self) -> datetime:
        return self._clock.now() - timedelta(seconds=self._limits.abandoned_after_seconds)


def known_diagnosis(found: Diagnosis | None) -> Diagnosis:
    """Returns the diagnosis; raises DiagnosisNotFound where there is none."""
    if found is None:
        raise DiagnosisNotFound("Nothing was heard of a diagnosis with this id.", field="session_id")
    return found


def _check_filter(admits: DiagnosisFilter) -> None:
    check_label(admits.agent_flow, "filter.agent_flow", MAX_NAME_CHARACTERS)
    check_label(admits.query_contains, "filter.query_contains", _MAX_CONTAINS_CHARACTERS)
    check_optional_id(admits.conversation_id, "filter.conversation_id")
    for name in ("min_confidence", "max_confidence"):
        value = getattr(admits, name)
        if value is not None and not 0 <= value <= 100:
            raise InvalidField(f"filter.{name} must be 0 to 100.", field=f"filter.{name}")
    if admits.query_contains and admits.created_from is None:
        raise InvalidField("filter.query_contains needs filter.created_from.", field="filter.created_from")


def _parts(admits: DiagnosisFilter) -> list[object]:
    return [getattr(admits, name) for name in DiagnosisFilter.__dataclass_fields__]
