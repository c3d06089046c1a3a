"""The application: questions go to one assistant or to a team of agents, by how complex they are.

Of Ramet it knows the recorder alone: its hook, its wrappers around tools and models, the scope of a diagnosis.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scripted_model import ModelDownError, ScriptedModel, cost_micros, read

from ramet.recorder import AgentLoggingHook, Recorder, TokenTrackingModel

Tool = Callable[..., Awaitable[str] | str]

_ASKS_WHY = ("why", "root cause", "为什么", "原因")
_MORE_THAN_ONE = (" and ", "而且", "together", "同时")


@dataclass(frozen=True)
class Answer:
    """What came of a question."""

    diagnosis_id: str
    text: str


class Agent:
    """One agent: its model is called until it wants no more tools."""

    def __init__(self, name: str, model: ScriptedModel, tools: Mapping[str, Tool]) -> None:
        self.hook = AgentLoggingHook(name, model=model.name, provider=model.shape)
        self.ask_model = TokenTrackingModel(model.complete, cost_micros=cost_micros)
        self.stream_model = TokenTrackingModel(model.stream, cost_micros=cost_micros)
        self._tools = tools

    async def run(self, question: str) -> str:
        """Works on a question and returns the last word."""
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": f"You are the {self.hook.agent_name}."},
            {"role": "user", "content": question},
        ]
        while True:
            self.hook.before_model(messages)
            reply = read(await self.ask_model(messages))
            self.hook.after_model(
                reply.text,
                tool_calls=[{"name": call.name, "arguments": call.arguments} for call in reply.calls],
                thought=reply.thought,
            )
            messages.append({"role": "assistant", "content": reply.text})
            if not reply.calls:
                return reply.text
            for call in reply.calls:
                messages.append({"role": "tool", "content": await self._use(call.name, call.arguments)})

    async def _use(self, name: str, arguments: Mapping[str, Any]) -> str:
        try:
            result = self._tools[name](**arguments)
            return result if isinstance(result, str) else await result
        except (TimeoutError, ValueError) as error:
            # The model is told, and may try again.
            return f"{type(error).__name__}: {error}"


class ChatService:
    """One assistant for simple questions."""

    def __init__(self, recorder: Recorder, assistant: Agent) -> None:
        self._recorder = recorder
        self._assistant = assistant

    async def ask(self, question: str, conversation_id: str) -> Answer:
        """Answers; where the answer says how sure it is, that is recorded."""
        with self._recorder.diagnosis(question, agent_flow="CHAT", conversation_id=conversation_id) as diagnosis:
            text = await self._assistant.run(question)
            diagnosis.self_evaluation_in(text)
        return Answer(diagnosis.session_id, text)

    async def stream(self, question: str, conversation_id: str) -> AsyncIterator[Answer]:
        """Answers word by word."""
        with self._recorder.diagnosis(question, agent_flow="CHAT", conversation_id=conversation_id) as diagnosis:
            messages = [{"role": "user", "content": question}]
            self._assistant.hook.before_model(messages)
            words = ""
            async for part in self._assistant.stream_model(messages):
                word = part["choices"][0]["delta"]["content"]
                words += word
                yield Answer(diagnosis.session_id, word)
            self._assistant.hook.after_model(words)


class AiOpsService:
    """A supervisor that asks a planner and an executor, for questions that one agent would not answer."""

    def __init__(
        self, recorder: Recorder, supervisor: ScriptedModel, planner: Agent, executor: Agent, judge: ScriptedModel
    ) -> None:
        self._recorder = recorder
        self._judge = judge
        self._team = {"ask_planner": planner, "ask_executor": executor}
        self._supervisor = Agent(
            "supervisor", supervisor, {name: self._asking(agent) for name, agent in self._team.items()}
        )

    async def ask(self, question: str, conversation_id: str) -> Answer:
        """Works on a question; a failed model ends it as failed. How sure the team is, a second call asks."""
        with self._recorder.diagnosis(question, agent_flow="AI_OPS", conversation_id=conversation_id) as diagnosis:
            try:
                text = await self._supervisor.run(question)
            except ModelDownError as error:
                diagnosis.fail(error)
                text = "The diagnosis failed; a person is on it."
            else:
                await diagnosis.evaluate_async(self._judge_conclusion)
        return Answer(diagnosis.session_id, text)

    @staticmethod
    def _asking(agent: Agent) -> Tool:
        async def ask(task: str) -> str:
            with agent.hook:
                return await agent.run(task)

        return ask

    async def _judge_conclusion(self, question: str) -> str:
        return read(await self._judge.complete([{"role": "user", "content": question}])).text


def is_complex(question: str) -> bool:
    """Tells a question for the team: it asks why, of more than one thing."""
    asked = question.lower()
    return any(word in asked for word in _ASKS_WHY) and any(word in asked for word in _MORE_THAN_ONE)


@dataclass(frozen=True)
class HelpDesk:
    """Both services, and the choice between them."""

    chat: ChatService
    ai_ops: AiOpsService

    async def ask(self, question: str, conversation_id: str) -> Answer:
        """Answers a question by the service that fits it."""
        service = self.ai_ops if is_complex(question) else self.chat
        return await service.ask(question, conversation_id)
