"""What an event must be to be taken: each is checked by itself, and what is wrong has its field."""

from dataclasses import replace
from typing import Any, TypeVar

from ramet_server.domain.errors import InvalidField
from ramet_server.domain.ids import check_id, check_optional_id
from ramet_server.domain.json_text import check_json
from ramet_server.domain.limits import Limits
from ramet_server.domain.text import check_label, check_text
from telemetry.rules.events import (
    Body,
    DiagnosisCompleted,
    DiagnosisStarted,
    Event,
    StepCompleted,
    StepStarted,
    ToolCompleted,
)
from telemetry.rules.values import ENDS, Feedback, Retrieval, RunStatus, SelfEvaluation, Usage

LARGEST_COUNT = 10**12
"""Most tokens or millionths of a dollar of one step: a million such steps still add up within a BIGINT."""

LARGEST_INT64 = (1 << 63) - 1

JSON_LEVELS = 31
"""Most arrays and objects that may stand inside each other: MariaDB takes no deeper JSON in a JSON column."""

_AGENT_NAME, _TOOL_NAME, _MODEL = 32, 64, 256

S = TypeVar("S", StepStarted, StepCompleted)


class EventChecks:
    """Checks events under the limits of the service."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def event(self, event: Event) -> Event:
        """Returns the event as it is kept: names trimmed, the preview cut. Raises InvalidField or TooLarge."""
        check_id(event.event_id, "event_id")
        check_id(event.session_id, "session_id")
        body = self._body(event.body)
        return event if body is event.body else replace(event, body=body)

    def feedback(self, said: Feedback) -> Feedback:
        """Returns what a source says if it can be kept."""
        check_id(said.source, "feedback.source")
        check_label(said.comment, "feedback.comment", self._limits.max_error_characters)
        return said

    def self_evaluation(self, said: SelfEvaluation) -> SelfEvaluation:
        """Returns what a model says of its conclusion if it can be kept."""
        where = "self_evaluation."
        if said.confidence is not None and not 0 <= said.confidence <= 100:
            raise InvalidField(f"{where}confidence must be 0 to 100.", field=f"{where}confidence")
        self._text(said.reasoning, where + "reasoning")
        for name in ("evidence_count", "tools_proposed", "tools_accepted"):
            _check_count(getattr(said, name), where + name)
        proposed, accepted = said.tools_proposed, said.tools_accepted
        if proposed is not None and accepted is not None and accepted > proposed:
            raise InvalidField(
                f"{where}tools_accepted must not be more than were proposed.", field=f"{where}tools_accepted"
            )
        return said

    def _body(self, body: Body) -> Body:
        match body:
            case DiagnosisStarted():
                return self._diagnosis_started(body)
            case DiagnosisCompleted():
                _check_end(body.status, "diagnosis_completed.status")
                self._error(body.error_message, "diagnosis_completed.error_message")
                return body
            case StepStarted():
                return self._step(body, "step_started.")
            case StepCompleted():
                return self._step_completed(body)
            case ToolCompleted():
                return self._tool_completed(body)
            case SelfEvaluation():
                return self.self_evaluation(body)
            case Feedback():
                return self.feedback(body)

    def _diagnosis_started(self, body: DiagnosisStarted) -> DiagnosisStarted:
        where = "diagnosis_started."
        self._text(body.query, where + "query")
        check_optional_id(body.conversation_id, where + "conversation_id")
        return replace(body, agent_flow=_name(body.agent_flow, where + "agent_flow", _AGENT_NAME))

    def _step(self, body: S, where: str) -> S:
        check_id(body.step_key, where + "step_key")
        check_optional_id(body.parent_step_key, where + "parent_step_key")
        _check_count(body.step_index, where + "step_index")
        self._json(body.model_input_json, where + "model_input_json")
        agent_name = _required_name(body.agent_name, where + "agent_name", _AGENT_NAME)
        model, provider = _name(body.model, where + "model", _MODEL), _name(body.provider, where + "provider", _MODEL)
        if (agent_name, model, provider) == (body.agent_name, body.model, body.provider):
            # Most names are right as they are, and a copy takes 11 us.
            return body
        return replace(body, agent_name=agent_name, model=model, provider=provider)

    def _step_completed(self, body: StepCompleted) -> StepCompleted:
        where = "step_completed."
        self._json(body.model_output_json, where + "model_output_json")
        self._text(body.thought, where + "thought")
        _check_end(body.status, where + "status")
        self._error(body.error_message, where + "error_message")
        if body.usage is not None:
            _check_usage(body.usage, where + "usage.")
        return self._step(body, where)

    def _tool_completed(self, body: ToolCompleted) -> ToolCompleted:
        where = "tool_completed."
        check_id(body.invocation_key, where + "invocation_key")
        check_optional_id(body.step_key, where + "step_key")
        self._json(body.input_params_json, where + "input_params_json")
        _check_count(body.output_length, where + "output_length", LARGEST_INT64)
        self._error(body.error_message, where + "error_message")
        if body.retrieval is not None:
            self._check_retrieval(body.retrieval, where + "retrieval.")
        preview = body.output_preview[: self._limits.max_preview_characters]
        check_label(preview, where + "output_preview", self._limits.max_preview_characters)
        return replace(
            body,
            tool_name=_required_name(body.tool_name, where + "tool_name", _TOOL_NAME),
            input_params_json=body.input_params_json or "{}",
            output_preview=preview,
        )

    def _check_retrieval(self, retrieval: Retrieval, where: str) -> None:
        _check_count(retrieval.l0_match_count, where + "l0_match_count")
        _check_count(retrieval.l1_match_count, where + "l1_match_count")
        self._json(retrieval.details_json or "", where + "details_json")

    def _json(self, text: str, field: str) -> None:
        if text:
            check_json(text, field, self._limits.max_event_text_bytes, levels=JSON_LEVELS)

    def _text(self, text: str, field: str) -> None:
        check_text(text, field, self._limits.max_event_text_bytes)

    def _error(self, text: str, field: str) -> None:
        check_label(text, field, self._limits.max_error_characters)


def _name(value: str, field: str, limit: int) -> str:
    return check_label(value.strip(), field, limit)


def _required_name(value: str, field: str, limit: int) -> str:
    name = _name(value, field, limit)
    if not name:
        raise InvalidField(f"{field} is required.", field=field)
    return name


def _check_end(status: RunStatus, field: str) -> None:
    if status not in ENDS:
        raise InvalidField(f"{field} must be SUCCESS, FAILED or CANCELLED.", field=field)


def _check_count(value: int | None, field: str, largest: int = LARGEST_COUNT) -> None:
    if value is not None and not 0 <= value <= largest:
        raise InvalidField(f"{field} must be 0 to {largest}.", field=field)


def _check_usage(usage: Usage, where: str) -> None:
    names: tuple[Any, ...] = ("input_tokens", "cached_tokens", "output_tokens", "total_tokens", "cost_micros")
    for name in names:
        _check_count(getattr(usage, name), where + name)
    if usage.input_tokens is not None and (usage.cached_tokens or 0) > usage.input_tokens:
        raise InvalidField(
            f"{where}cached_tokens is part of input_tokens and must not be more.", field=f"{where}cached_tokens"
        )
