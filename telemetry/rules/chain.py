"""A diagnosis as it went: its steps in order, each with its tool calls."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ramet_server.domain.call import Call
from ramet_server.domain.ids import check_id
from ramet_server.domain.limits import Limits
from ramet_server.domain.paging import PageToken, check_page_size, query_fingerprint
from telemetry.rules.answer_ports import AnswersStore, AnswersUnit
from telemetry.rules.chain_queries import LightStep, LightTool, StepPlace, ToolSum
from telemetry.rules.listing import ListingRules, known_diagnosis
from telemetry.rules.pages import PageWish
from telemetry.rules.values import Diagnosis, Step, ToolCall

TOOLS_OF_A_STEP = 1000
"""Tool calls that a chain shows of one step, and of those that belong to none."""

_TOOLS_OF_A_PAGE = 10_000
_ROW_BYTES = 512
"""What a row takes beside its texts."""


@dataclass(frozen=True, slots=True)
class ChainStep:
    """A step with its tool calls."""

    step: Step
    tools: Sequence[ToolCall]


@dataclass(frozen=True, slots=True)
class Chain:
    """A page of a decision chain."""

    diagnosis: Diagnosis
    steps: Sequence[ChainStep]
    loose: Sequence[ToolCall]
    """Tool calls that name no step, or one that has not come; only on the first page."""
    next_token: str


class ChainRules:
    """Reads decision chains."""

    def __init__(self, store: AnswersStore, limits: Limits, listing: ListingRules) -> None:
        self._store = store
        self._limits = limits
        self._listing = listing

    def get(self, call: Call, session_id: str, wish: PageWish) -> Chain:
        """Returns a page of the chain; raises DiagnosisNotFound."""
        check_id(session_id, "session_id")
        limit = check_page_size(wish.size, self._limits.default_page_size, self._limits.max_page_size)
        fingerprint = query_fingerprint("GetDecisionChain", call.space, session_id)
        token = PageToken.decode(wish.token, fingerprint, (int, int))
        after = None if token is None else StepPlace(*(int(str(part)) for part in token.position))

        def read(unit: AnswersUnit) -> Chain:
            diagnosis = self._listing.shown(known_diagnosis(unit.diagnoses.get(session_id)))
            found = unit.steps.light(session_id, after, limit + 1)
            sums = unit.tools.sums(session_id, [step.step_key for step in found])
            loose = unit.tools.loose(session_id, TOOLS_OF_A_STEP) if after is None else ()
            # Half a page each, so that loose tool calls cannot push the steps out.
            loose = _fitting(loose, self._limits.max_page_bytes // 2)
            page = self._fitting_steps(found[:limit], sums)
            last = page[-1] if page and len(page) < len(found) else None
            next_token = "" if last is None else PageToken(fingerprint, (last.step_index, last.id)).encode()
            steps = self._steps(unit, diagnosis, page)
            return Chain(diagnosis, steps, _in_order(unit.tools.of_ids([tool.id for tool in loose])), next_token)

        return self._store.snapshot(call, read)

    def _fitting_steps(self, found: Sequence[LightStep], sums: Mapping[str, ToolSum]) -> Sequence[LightStep]:
        size = tools = 0
        for place, step in enumerate(found):
            of_step = sums.get(step.step_key, ToolSum(0, 0))
            tools += of_step.count
            size += step.size + of_step.size + _ROW_BYTES * (1 + of_step.count)
            if place and (size > self._limits.max_page_bytes or tools > _TOOLS_OF_A_PAGE):
                return found[:place]
        return found

    def _steps(self, unit: AnswersUnit, diagnosis: Diagnosis, page: Sequence[LightStep]) -> list[ChainStep]:
        keys = [step.step_key for step in page]
        light = unit.tools.of_steps(diagnosis.session_id, keys, TOOLS_OF_A_STEP)
        # A page fits as a whole but for a single step that is too large alone; then its first tool calls come.
        light = _fitting(light, self._limits.max_page_bytes) if len(page) == 1 else light
        by_step: dict[str, list[ToolCall]] = {}
        for tool in _in_order(unit.tools.of_ids([tool.id for tool in light])):
            by_step.setdefault(tool.step_key or "", []).append(tool)
        steps = {step.id: step for step in unit.steps.of_ids([step.id for step in page])}
        return [
            ChainStep(self._listing.shown_step(steps[each.id], diagnosis), by_step.get(each.step_key, ()))
            for each in page
            if each.id in steps
        ]


def _fitting(tools: Sequence[LightTool], max_bytes: int) -> Sequence[LightTool]:
    size = 0
    for place, tool in enumerate(tools):
        size += tool.size + _ROW_BYTES
        if place and size > max_bytes:
            return tools[:place]
    return tools


def _in_order(tools: Iterable[ToolCall]) -> list[ToolCall]:
    """Returns tool calls oldest first by the client's time; a batch gives many of them one time of the server."""
    return sorted(tools, key=lambda tool: (tool.started_at or tool.ended_at or tool.created_at, tool.id))
