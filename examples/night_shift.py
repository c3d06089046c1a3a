"""The night's questions, and the script that the models of the help desk follow."""

import json
from collections.abc import Callable
from typing import Any

from help_desk import Agent, AiOpsService, ChatService, HelpDesk
from knowledge import lookup_knowledge
from scripted_model import Call, Reply, ScriptedModel

from ramet.recorder import Recorder, record_tool

RESTART = "如何重启 checkout 服务?"
ROTA = "Who is on call tonight?"
SLOW = "为什么结账 p99 到了 4 秒, 而且错误率也在上升? Find the root cause."
RETRIES = "Why do payment retries and cache misses rise together since the deploy?"
SUMMARY = "Summarize the incident for the status page."


def staff(recorder: Recorder) -> HelpDesk:
    """Makes the help desk as it is this night."""
    tools: dict[str, Callable[..., Any]] = {
        "lookup_knowledge": lookup_knowledge,
        "queryPrometheusAlerts": record_tool(name="queryPrometheusAlerts")(_Prometheus().alerts),
    }
    assistant = Agent("intelligent_assistant", ScriptedModel("qwen-plus", "openai", _ASSISTANT), tools)
    planner = Agent("planner", ScriptedModel("claude-sonnet", "anthropic", _PLANNER), tools)
    executor = Agent("executor", ScriptedModel("claude-sonnet", "anthropic", _EXECUTOR), tools)
    team = AiOpsService(
        recorder,
        ScriptedModel("claude-opus", "anthropic", _SUPERVISOR),
        planner,
        executor,
        ScriptedModel("claude-opus", "anthropic", _JUDGE),
    )
    return HelpDesk(ChatService(recorder, assistant), team)


class _Prometheus:
    """A metrics server that does not answer the first time."""

    def __init__(self) -> None:
        self._asked = 0

    async def alerts(self, service: str) -> str:
        """A tool: the alerts of a service."""
        self._asked += 1
        if self._asked == 1:
            raise TimeoutError("prometheus:9090 did not answer within 5 s")
        return json.dumps([{"service": service, "alert": "PoolExhausted", "since": "17:53"}])


_ASSISTANT = (
    # RESTART
    Reply(calls=(Call("lookup_knowledge", {"query": RESTART}),), tokens=(120, 0, 20), thought="知识库里应该有。"),
    Reply(
        text="一次一个 pod: drain, wait, 继续。\n"
        '{"confidence": 92, "reasoning": "the article says so", "evidence_count": 1, '
        '"tools_proposed": 1, "tools_accepted": 1}',
        tokens=(300, 100, 40),
    ),
    # ROTA: this answer tells no tokens.
    Reply(text="林薇 (lin.wei), database: Priya N."),
    # SUMMARY
    Reply(text="Checkout in cn-east-1 was slow because every query scanned its table."),
)

_SUPERVISOR = (
    # SLOW
    Reply(calls=(Call("ask_planner", {"task": "Plan: p99 of checkout"}),), tokens=(400, 0, 30), thought="Plan first."),
    Reply(calls=(Call("ask_executor", {"task": "Measure the pool, then look for its cause"}),), tokens=(600, 400, 30)),
    Reply(
        text="根因: the pool is exhausted, because a charset of latin1 makes every query scan. 🔥",
        tokens=(900, 600, 60),
    ),
    # RETRIES
    Reply(calls=(Call("ask_planner", {"task": "Plan: retries"}),), tokens=(350, 0, 25)),
    Reply(calls=(Call("ask_executor", {"task": "Compare with the deploy before"}),), tokens=(500, 350, 25)),
)

_PLANNER = (
    # SLOW: named, and near
    Reply(
        calls=(Call("lookup_knowledge", {"query": "p99 of checkout makes a scan of connections"}),), tokens=(200, 0, 35)
    ),
    Reply(text="1. pool 2. slow queries 3. cache", tokens=(450, 200, 25)),
    # RETRIES: nothing is known of it
    Reply(calls=(Call("lookup_knowledge", {"query": "支付重试"}),), tokens=(180, 0, 20)),
    Reply(text="1. deploy 2. TTL", tokens=(220, 180, 15)),
)

_EXECUTOR = (
    # SLOW: the first call of the tool fails, the second does not; then near articles alone
    Reply(calls=(Call("queryPrometheusAlerts", {"service": "checkout"}),), tokens=(250, 0, 15)),
    Reply(calls=(Call("queryPrometheusAlerts", {"service": "checkout"}),), tokens=(300, 250, 15), thought="Again."),
    Reply(calls=(Call("lookup_knowledge", {"query": "every query scans the table"}),), tokens=(380, 300, 20)),
    Reply(text="PoolExhausted since 17:53; the charset fits.", tokens=(520, 380, 30)),
    # RETRIES
    Reply(down=True),
)

_JUDGE = (
    Reply(
        text='{"confidence": 88, "reasoning": "pool and charset fit", "evidence_count": 3, '
        '"tools_proposed": 4, "tools_accepted": 3}'
    ),
)
