"""The second act: a help desk of agents is asked five questions, and the telemetry of them is read back and checked."""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import night_shift as night
import sql_of_old as sql
from chain_drawing import draw_chain
from help_desk import HelpDesk
from ledger import Ledger
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import ramet
from ramet.client import DiagnosisFilter, Dimension, FeedbackValue, Metric, MetricRow, RunStatus, ToolFilter
from ramet.otlp import export_diagnosis
from ramet.recorder import Recorder

CONVERSATION = "incident"
LOOKUP = "lookup_knowledge"


class Diagnoses:
    """What the agents of the help desk do, told by the recorder and read back by the client."""

    def __init__(self, client: ramet.Client, address: str, database: Path | None, ledger: Ledger) -> None:
        self.telemetry = client.telemetry
        self.client = client
        self.address = address
        self.database = database
        self.same = ledger.same
        self.ids: dict[str, str] = {}
        """The diagnosis of each question."""

    async def play(self) -> None:
        """Plays the night and looks at it."""
        async with Recorder(self.address, space=self.client.space) as recorder:
            await self.ask(night.staff(recorder), recorder)
            report = await recorder.flush_async(30)
        told = (report.acked, report.pending, report.rejected, report.dropped)
        print(f"- Told {report.acked} events: every step, tool call and word of five diagnoses")
        self.same("events acknowledged, pending, rejected, dropped", told, (55, 0, 0, 0))
        word = await self.telemetry.put_feedback(
            self.ids[night.SLOW], "user", FeedbackValue.NOT_USEFUL, "It was the TTL. 不是连接池。"
        )
        self.same("feedback by a call", word.value, FeedbackValue.NOT_USEFUL)
        await self.totals()
        await self.chains()
        await self.lists()
        await self.measures()
        await self.trace()
        if self.database is not None:
            await self.queries(self.database)

    async def ask(self, desk: HelpDesk, recorder: Recorder) -> None:
        """Asks the night's questions; one of them nobody waits for."""
        print("\n- Five questions to a help desk of agents, by their complexity to one assistant or to a team")
        for question in (night.RESTART, night.ROTA, night.SLOW, night.RETRIES):
            self.ids[question] = (await desk.ask(question, CONVERSATION)).diagnosis_id
        recorder.feedback(self.ids[night.RESTART], "user", useful=True, comment="谢谢 🙏")
        heard = asyncio.Event()

        async def listen() -> None:
            async for answer in desk.chat.stream(night.SUMMARY, CONVERSATION):
                self.ids[night.SUMMARY] = answer.diagnosis_id
                heard.set()

        listener = asyncio.create_task(listen())
        await heard.wait()
        listener.cancel()
        await asyncio.gather(listener, return_exceptions=True)
        self.same("whoever listened has left", listener.cancelled(), True)

    async def totals(self) -> None:
        """Each diagnosis with totals that the server computed from its rows."""
        chat, ops = "CHAT", "AI_OPS"
        expected = {
            night.RESTART: (chat, RunStatus.SUCCESS, 2, 1, 480, 2, 2160),
            night.ROTA: (chat, RunStatus.SUCCESS, 1, 0, None, 0, None),
            night.SLOW: (ops, RunStatus.SUCCESS, 9, 4, 4260, 9, 15900),
            night.RETRIES: (ops, RunStatus.FAILED, 5, 1, 1335, 4, 5025),
            night.SUMMARY: (chat, RunStatus.CANCELLED, 1, 0, None, 0, None),
        }
        for question, numbers in expected.items():
            found = await self.telemetry.get_diagnosis(self.ids[question])
            got = (
                *(found.agent_flow, found.status, found.step_count, found.tool_call_count),
                *(found.total_token_count, found.steps_with_tokens, found.total_cost_micros),
            )
            self.same(f"{question}: flow, status, steps, tools, tokens, of steps, cost", got, numbers)
            self.same(f"{question}: its question", found.query, question)
            self.same(f"{question}: conversation", found.conversation_id, CONVERSATION)
            lasted = found.total_duration_ms
            self.same(f"{question}: lasted", lasted is not None and 0 <= lasted < 60_000, True)
        failed = await self.telemetry.get_diagnosis(self.ids[night.RETRIES])
        self.same("why it failed", failed.error_message, "ModelDownError: 503 from the provider")

    async def chains(self) -> None:
        """The decision chains of the two diagnoses of the team, drawn."""
        print("\nThe decision chains of the team:\n")
        for question in (night.SLOW, night.RETRIES):
            chain = await self.telemetry.get_decision_chain(self.ids[question])
            for line in draw_chain(chain.diagnosis, chain.steps):
                print(line)
            print()
            keys = {step.step_key: step for step in chain.steps}
            parents = [
                (step.agent_name, keys[step.parent_step_key].step_index if step.parent_step_key else None)
                for step in chain.steps
            ]
            self.same(f"{question}: who ran under which step", parents, _PARENTS[question])
            self.same(f"{question}: indexes", [step.step_index for step in chain.steps], list(range(len(parents))))
            self.same(f"{question}: no tool is loose", chain.loose_tool_invocations, ())
            tools = {step.step_index: [tool.tool_name for tool in step.tool_invocations] for step in chain.steps}
            used = {index: names for index, names in tools.items() if names}
            self.same(f"{question}: tools by step", used, _TOOLS[question])
        failed = [step for step in chain.steps if step.status is RunStatus.FAILED]
        told = [(step.agent_name, step.error_message, step.usage.total_tokens) for step in failed]
        self.same("the failed step", told, [("executor", "ModelDownError: 503 from the provider", None)])
        (left,) = (await self.telemetry.get_decision_chain(self.ids[night.SUMMARY])).steps
        self.same("the stream that was left", (left.status, left.error_message), (RunStatus.CANCELLED, ""))
        first, second = (await self.telemetry.get_decision_chain(self.ids[night.RESTART])).steps
        self.same(
            "cached tokens are part of the input", (second.usage.input_tokens, second.usage.cached_tokens), (300, 100)
        )
        self.same("what the assistant thought", first.thought, "知识库里应该有。")

    async def lists(self) -> None:
        """What people look for: sure and wrong, failed tools, cut lookups."""
        wrong = DiagnosisFilter(min_confidence=81, feedback=FeedbackValue.NOT_USEFUL)
        self.same("sure, and not useful", await self.diagnoses(wrong), [self.ids[night.SLOW]])
        mine = DiagnosisFilter(conversation_id=CONVERSATION)
        self.same("diagnoses of the conversation", sorted(await self.diagnoses(mine)), sorted(self.ids.values()))
        failed = await self.telemetry.list_tool_invocations(ToolFilter(success=False))
        told = [(tool.tool_name, tool.error_message) for tool in failed.invocations]
        why = "TimeoutError: prometheus:9090 did not answer within 5 s"
        self.same("failed tools", told, [("queryPrometheusAlerts", why)])
        cut = await self.telemetry.list_tool_invocations(ToolFilter(tool_name=LOOKUP, is_truncated=True))
        sizes = [(tool.output_length, len(tool.output_preview)) for tool in cut.invocations]
        self.same("cut lookups: whole length, preview", sizes, [(784, 500)])

    async def diagnoses(self, where: DiagnosisFilter) -> list[str]:
        """Ids of the diagnoses that a filter admits."""
        return [found.session_id async for found in self.telemetry.iter_diagnoses(where)]

    async def measures(self) -> None:
        """The metrics, printed with what they cover, every one checked."""
        rows = await self.query(_MEASURES)
        print("The metrics of the night:\n")
        for row in rows:
            value = "unknown" if row.value is None else f"{row.value:,.3f}".rstrip("0").rstrip(".")
            partial = f", {row.partial} in part" if row.partial else ""
            print(f"   {row.metric:24} {value:>9}   covers {row.covered}, unknown {row.unknown}{partial}")
            expected = _MEASURES[row.metric]
            # Not every database divides to the last digit.
            got = (row.value if expected is None else round(row.value or 0, 3), row.covered, row.unknown)
            self.same(f"{row.metric}: value, covered, unknown", got, expected or (row.value, *_COVERED[row.metric]))
        by_layer = await self.query([Metric.TOOL_COUNT], Dimension.RETRIEVAL_LAYER, tool_name=LOOKUP)
        layers = {row.group[0]: row.value for row in by_layer}
        print(
            f"\n   {LOOKUP} by layer: "
            + ", ".join(f"{name or 'none'} {count:g}" for name, count in layers.items() if count)
        )
        self.same("lookups by layer", layers, {"": 1, "L0": 1, "L0+L1": 1, "L1": 1})
        by_agent = await self.query([Metric.STEP_COUNT], Dimension.AGENT_NAME)
        steps = {row.group[0]: row.value for row in by_agent}
        self.same("steps by agent", steps, {"executor": 5, "intelligent_assistant": 4, "planner": 4, "supervisor": 5})
        by_model = await self.query([Metric.STEP_TOKENS], Dimension.MODEL)
        tokens = {row.group[0]: row.sum for row in by_model}
        self.same("tokens by model", tokens, {"claude-opus": 2920, "claude-sonnet": 2675, "qwen-plus": 480})

    async def query(
        self, metrics: Iterable[Metric], *group_by: Dimension, tool_name: str = "", agent_name: str = ""
    ) -> tuple[MetricRow, ...]:
        """Asks for measures of the night."""
        now = datetime.now(UTC)
        night_long = (now - timedelta(hours=1), now + timedelta(hours=1))
        return await self.telemetry.query_metrics(
            metrics, *night_long, group_by=group_by, tool_name=tool_name, agent_name=agent_name
        )

    async def trace(self) -> None:
        """The same diagnosis for tools that speak OpenTelemetry."""
        trace = ExportTraceServiceRequest.FromString(await export_diagnosis(self.client, self.ids[night.SLOW]))
        spans = trace.resource_spans[0].scope_spans[0].spans
        print(f"\n- The diagnosis as an OpenTelemetry trace of {len(spans)} spans")
        kinds = [span.name.split()[0] for span in spans]
        counts = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
        self.same("spans", counts, {"chat": 9, "execute_tool": 4, "invoke_agent": 4, "retrieval": 2})

    async def queries(self, database: Path) -> None:
        """The six queries of old over the tables give what the calls give."""
        print("- The six SQL queries of old give the numbers of the calls")
        with sql.tables(database) as tables:
            for question, name in self.ids.items():
                tools = await self.telemetry.list_tool_invocations(ToolFilter(session_id=name))
                rows = tables.rows(sql.TOOLS_OF_A_DIAGNOSIS, name)
                ids = sorted(tool.id for tool in tools.invocations)
                self.same(f"SQL: tools of {question}", sorted(row["id"] for row in rows), ids)
                chain = await self.telemetry.get_decision_chain(name)
                steps = [(step.id, step.step_index, step.agent_name, step.duration_ms) for step in chain.steps]
                told = [
                    (row["id"], row["step_index"], row["agent_name"], row["duration_ms"])
                    for row in tables.rows(sql.DECISION_CHAIN, name)
                ]
                self.same(f"SQL: decision chain of {question}", told, steps)
            layers = {row["retrieval_layer"] or "": row["COUNT(*)"] for row in tables.rows(sql.HITS_BY_LAYER)}
            by_layer = await self.query([Metric.TOOL_COUNT], Dimension.RETRIEVAL_LAYER, tool_name=LOOKUP)
            self.same("SQL: hits by layer", layers, {row.group[0]: row.value for row in by_layer})
            for row in await self.query([Metric.STEP_DURATION_MS], Dimension.AGENT_NAME):
                average = tables.value(sql.THINKING_TIME, row.group[0])
                self.same(f"SQL: thinking time of {row.group[0]}", round(average, 3), round(row.value or 0, 3))
            (share,) = await self.query([Metric.TRUNCATION_RATE], tool_name=LOOKUP)
            self.same("SQL: cut lookups", tables.value(sql.TRUNCATED), share.sum)
            wrong = DiagnosisFilter(min_confidence=81, feedback=FeedbackValue.NOT_USEFUL)
            rows = tables.rows(sql.SURE_AND_WRONG)
            self.same("SQL: sure and wrong", [row["session_id"] for row in rows], await self.diagnoses(wrong))


_PARENTS: Mapping[str, list[tuple[str, int | None]]] = {
    night.SLOW: [
        ("supervisor", None),
        *[("planner", 0)] * 2,
        ("supervisor", None),
        *[("executor", 3)] * 4,
        ("supervisor", None),
    ],
    night.RETRIES: [("supervisor", None), *[("planner", 0)] * 2, ("supervisor", None), ("executor", 3)],
}

_TOOLS: Mapping[str, Mapping[int, list[str]]] = {
    night.SLOW: {1: [LOOKUP], 4: ["queryPrometheusAlerts"], 5: ["queryPrometheusAlerts"], 6: [LOOKUP]},
    night.RETRIES: {1: [LOOKUP]},
}

_MEASURES: Mapping[Metric, tuple[float, int, int] | None] = {
    Metric.DIAGNOSIS_COUNT: (5, 5, 0),
    Metric.DIAGNOSIS_DURATION_MS: None,
    Metric.DIAGNOSIS_TOKENS: (2025, 3, 2),
    Metric.DIAGNOSIS_COST_MICROS: (7695, 3, 2),
    Metric.SUCCESS_RATE: (0.6, 5, 0),
    Metric.SATISFACTION: (0.5, 2, 3),
    Metric.TOOL_ACCEPTANCE: (0.8, 2, 3),
    Metric.CONFIDENCE: (90, 2, 3),
    Metric.STEP_COUNT: (18, 18, 0),
    Metric.STEP_DURATION_MS: None,
    Metric.STEP_TOKENS: (405, 15, 3),
    Metric.TOOL_COUNT: (6, 6, 0),
    Metric.TOOL_DURATION_MS: None,
    Metric.TOOL_SUCCESS_RATE: (0.833, 6, 0),
    Metric.L0_HIT_RATE: (0.5, 4, 0),
    Metric.TRUNCATION_RATE: (0.167, 6, 0),
}
"""What each measure must be, cover, and of how many it must know nothing. None: clocks decide the value."""

_COVERED = {
    Metric.DIAGNOSIS_DURATION_MS: (5, 0),
    Metric.STEP_DURATION_MS: (18, 0),
    Metric.TOOL_DURATION_MS: (6, 0),
}
