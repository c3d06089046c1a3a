"""The spans of a diagnosis, one function per kind of span."""

import re
from collections.abc import Iterable, Iterator, Mapping

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from ramet.client import AgentStep, Diagnosis, RunStatus, ToolInvocation
from ramet.otlp import content
from ramet.otlp.extents import Extent, extent_of_diagnosis, extent_of_part, extents_of_runs, nanoseconds
from ramet.otlp.ids import span_id_of, trace_id_of
from ramet.otlp.reading import Chain
from ramet.otlp.runs import Run, find_runs

__all__ = ["attributes", "spans_of"]

Value = str | int | float | bool | None

_ERROR_CLASS = re.compile(r"([A-Za-z_][\w.]*(?:Error|Exception|Timeout|Exit|Interrupt))(?::|$)")


def spans_of(chain: Chain, *, with_content: bool) -> list[Span]:
    """Makes all spans of a diagnosis, each after the one it lies in."""
    return list(_Trace(chain, with_content).spans())


def attributes(values: Mapping[str, Value]) -> list[KeyValue]:
    """Makes attributes; what is unknown, None or an empty text, is left out."""
    return [KeyValue(key=key, value=_any_value(value)) for key, value in values.items() if value not in (None, "")]


class _Trace:
    def __init__(self, chain: Chain, with_content: bool) -> None:
        self._chain = chain
        self._content = with_content
        self._runs = find_runs(chain)
        self._trace_id = trace_id_of(chain.space, chain.diagnosis.session_id)
        self._root = self._id("diagnosis")
        self._conversation = {"gen_ai.conversation.id": chain.diagnosis.conversation_id}

    def spans(self) -> Iterator[Span]:
        extents = extents_of_runs(self._runs)
        loose = self._chain.loose_tools
        yield self._diagnosis([*extents.values(), *map(extent_of_part, loose)])
        for run in self._runs:
            yield self._run(run, extents[run.key])
            for step in run.steps:
                yield self._step(step, run)
                for tool in step.tool_invocations:
                    yield from self._tool(tool, self._run_id(run), self._id("step", step.step_key))
        for tool in loose:
            yield from self._tool(tool, self._root, None)

    def _diagnosis(self, within: Iterable[Extent]) -> Span:
        diagnosis = self._chain.diagnosis
        extent = extent_of_diagnosis(diagnosis, within)
        span = self._span(self._root, b"", f"invoke_agent {diagnosis.agent_flow}".rstrip(), extent)
        span.attributes.extend(
            attributes(
                {
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.name": diagnosis.agent_flow,
                    **self._conversation,
                    "ramet.space": self._chain.space,
                    "ramet.session_id": diagnosis.session_id,
                    "ramet.status": diagnosis.status.value,
                    "ramet.total_tokens": diagnosis.total_token_count,
                    "ramet.steps_with_tokens": diagnosis.steps_with_tokens,
                    "ramet.total_cost_micros": diagnosis.total_cost_micros,
                    "ramet.step_count": diagnosis.step_count,
                    "ramet.tool_call_count": diagnosis.tool_call_count,
                    "ramet.duration_flagged": diagnosis.duration_flagged or None,
                    "gen_ai.input.messages": content.question(diagnosis.query) if self._content else None,
                }
            )
        )
        span.events.extend(_evaluations(diagnosis, extent))
        return _ended(span, diagnosis.status is RunStatus.FAILED, diagnosis.error_message)

    def _run(self, run: Run, extent: Extent) -> Span:
        parent = self._root if run.parent is None else self._run_id(run.parent)
        span = self._span(self._run_id(run), parent, f"invoke_agent {run.agent_name}", extent)
        if run.parent is not None:
            self._link(span, self._id("step", run.parent_step_key))
        last = run.steps[-1]
        span.attributes.extend(
            attributes(
                {
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.name": run.agent_name,
                    # The convention wants a provider of every agent; a run that changed its own has none.
                    "gen_ai.provider.name": _only(step.provider for step in run.steps),
                    "gen_ai.request.model": _only(step.model for step in run.steps),
                    **self._conversation,
                    "ramet.parent_step_key": run.parent_step_key,
                    "ramet.status": last.status.value,
                }
            )
        )
        # An agent that goes on after a failed step has not failed.
        return _ended(span, last.status is RunStatus.FAILED, last.error_message)

    def _step(self, step: AgentStep, run: Run) -> Span:
        name = f"chat {step.model}".rstrip()
        span = self._span(self._id("step", step.step_key), self._run_id(run), name, extent_of_part(step))
        span.kind = Span.SPAN_KIND_CLIENT
        usage = step.usage
        told = {
            "gen_ai.input.messages": content.input_messages(step),
            "gen_ai.output.messages": content.output_messages(step),
        }
        span.attributes.extend(
            attributes(
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": step.provider,
                    "gen_ai.request.model": step.model,
                    **self._conversation,
                    "gen_ai.usage.input_tokens": usage.input_tokens,
                    "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
                    "gen_ai.usage.output_tokens": usage.output_tokens,
                    "ramet.usage.total_tokens": usage.total_tokens,
                    "ramet.usage.cost_micros": usage.cost_micros,
                    "ramet.step_key": step.step_key,
                    "ramet.step_index": step.step_index,
                    "ramet.status": step.status.value,
                    "ramet.duration_flagged": step.duration_flagged or None,
                    **(told if self._content else {}),
                }
            )
        )
        return _ended(span, step.status is RunStatus.FAILED, step.error_message)

    def _tool(self, tool: ToolInvocation, parent: bytes, made_by: bytes | None) -> Iterator[Span]:
        extent, own = extent_of_part(tool), self._id("tool", tool.invocation_key)
        span = self._span(own, parent, f"execute_tool {tool.tool_name}", extent)
        if made_by is not None:
            self._link(span, made_by)
        told = {"gen_ai.tool.call.arguments": tool.input_params_json, "gen_ai.tool.call.result": tool.output_preview}
        span.attributes.extend(
            attributes(
                {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": tool.tool_name,
                    "gen_ai.tool.call.id": tool.invocation_key,
                    "ramet.step_key": tool.step_key,
                    "ramet.output_length": tool.output_length,
                    "ramet.is_truncated": tool.is_truncated,
                    "ramet.duration_flagged": tool.duration_flagged or None,
                    **(told if self._content else {}),
                }
            )
        )
        yield _ended(span, not tool.success, tool.error_message)
        if tool.retrieval is not None:
            yield self._retrieval(tool, own, extent)

    def _retrieval(self, tool: ToolInvocation, parent: bytes, extent: Extent) -> Span:
        found = tool.retrieval
        assert found is not None  # noqa: S101 - the caller asked
        span = self._span(self._id("retrieval", tool.invocation_key), parent, f"retrieval {tool.tool_name}", extent)
        told = {
            "gen_ai.retrieval.query.text": content.query_text(tool.input_params_json),
            "ramet.retrieval.details": found.details_json,
        }
        span.attributes.extend(
            attributes(
                {
                    "gen_ai.operation.name": "retrieval",
                    "ramet.retrieval.layer": found.layer.value if found.layer else None,
                    "ramet.retrieval.l0_match_count": found.l0_match_count,
                    "ramet.retrieval.l1_match_count": found.l1_match_count,
                    "ramet.is_truncated": tool.is_truncated,
                    **(told if self._content else {}),
                }
            )
        )
        span.kind = Span.SPAN_KIND_CLIENT
        return _ended(span, not tool.success, tool.error_message)

    def _span(self, span_id: bytes, parent: bytes, name: str, extent: Extent) -> Span:
        return Span(
            trace_id=self._trace_id,
            span_id=span_id,
            parent_span_id=parent,
            name=name,
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=extent.start,
            end_time_unix_nano=extent.end,
        )

    def _link(self, span: Span, to: bytes) -> None:
        span.links.append(Span.Link(trace_id=self._trace_id, span_id=to))

    def _id(self, kind: str, *keys: str) -> bytes:
        return span_id_of(self._chain.space, self._chain.diagnosis.session_id, kind, *keys)

    def _run_id(self, run: Run) -> bytes:
        return self._id("run", *run.key)


def _evaluations(diagnosis: Diagnosis, extent: Extent) -> Iterator[Span.Event]:
    said = diagnosis.self_evaluation
    if said is not None:
        yield _evaluation(
            extent.end,
            {
                "gen_ai.evaluation.name": "self_evaluation",
                "gen_ai.evaluation.score.value": None if said.confidence is None else float(said.confidence),
                "gen_ai.evaluation.explanation": said.reasoning,
                "ramet.evidence_count": said.evidence_count,
                "ramet.tools_proposed": said.tools_proposed,
                "ramet.tools_accepted": said.tools_accepted,
            },
        )
    for word in diagnosis.feedback:
        yield _evaluation(
            nanoseconds(word.updated_at) if word.updated_at else extent.end,
            {
                "gen_ai.evaluation.name": "feedback",
                "gen_ai.evaluation.score.label": word.value.value,
                "gen_ai.evaluation.explanation": word.comment,
                "ramet.feedback.source": word.source,
            },
        )


def _evaluation(time: int, values: Mapping[str, Value]) -> Span.Event:
    return Span.Event(time_unix_nano=time, name="gen_ai.evaluation.result", attributes=attributes(values))


def _ended(span: Span, failed: bool, message: str) -> Span:
    # The conventions leave a status unset where nothing failed; what was cancelled did not fail.
    if failed:
        known = _ERROR_CLASS.match(message)
        span.attributes.extend(attributes({"error.type": known[1] if known else "_OTHER"}))
        span.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message=message))
    return span


def _only(names: Iterable[str]) -> str | None:
    known = set(names)
    return known.pop() if len(known) == 1 else None


def _any_value(value: Value) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(string_value=value or "")
