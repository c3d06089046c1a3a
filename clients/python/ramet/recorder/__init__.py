"""Records what agents do, step by step, and brings it to a Ramet server without slowing or breaking them.

::

    hook = AgentLoggingHook("planner", model="gpt-x", provider="openai")
    model = TokenTrackingModel(client.chat.completions.create)

    @record_tool
    def lookup_knowledge(question: str) -> str:
        note_retrieval(l0_match_count=2, l0_titles=["Disk full", "Restart"])
        return "..."

    with Recorder("127.0.0.1:50051", spool="/var/spool/ramet") as recorder:
        with recorder.diagnosis("Why is it slow?", agent_flow="AI_OPS") as diagnosis:
            hook.before_model(messages)
            answer = model(messages=messages)
            hook.after_model(answer.choices[0].message.content)
            diagnosis.self_evaluation(80, evidence_count=3)
"""

from ramet.recorder.diagnosis import Diagnosis, Step
from ramet.recorder.evaluation import QUESTION
from ramet.recorder.hook import AgentLoggingHook
from ramet.recorder.models import TokenTrackingModel, usage_of
from ramet.recorder.places import carry, current_diagnosis, current_step
from ramet.recorder.recorder import Recorder
from ramet.recorder.texts import Mask
from ramet.recorder.tool_calls import ToolCall, note_output, note_retrieval
from ramet.recorder.tools import record_tool
from ramet.recorder.values import Layer, Limits, Report, Status, Usage

__all__ = [
    "QUESTION",
    "AgentLoggingHook",
    "Diagnosis",
    "Layer",
    "Limits",
    "Mask",
    "Recorder",
    "Report",
    "Status",
    "Step",
    "TokenTrackingModel",
    "ToolCall",
    "Usage",
    "carry",
    "current_diagnosis",
    "current_step",
    "note_output",
    "note_retrieval",
    "record_tool",
    "usage_of",
]
