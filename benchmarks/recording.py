"""An agent that records itself, in a process of its own; it reads one JSON object and prints one.

What it prints is how long a call of the recorder takes at the median, in microseconds, by kind. Steps
come in bursts with pauses in between, so that nothing is dropped while the recorder's own thread is at
work. What the first call after a pause takes is told by itself: it finds all caches cold.
"""

import json
import statistics
import sys
import tempfile
import time
from itertools import pairwise

from ramet.recorder import AgentLoggingHook, Recorder, Usage, record_tool

_PAUSE_S = 0.04
_STEPS_OF_A_BURST = 20

_MESSAGES = [
    {"role": "system", "content": "You help with incidents. " * 20},
    {"role": "user", "content": "Why is the queue so long? " * 8},
    {"role": "assistant", "content": "Let me look at the deploys. " * 8},
]
_ANSWER = "The queue grew after the deploy of three hours ago. " * 10


@record_tool
def _search(query: str) -> str:
    return query


def _bare(query: str) -> str:
    return query


def measure(address: str, seconds: float) -> dict[str, float]:
    """Records steps for some seconds; returns the median time of each kind of call in microseconds."""
    took: dict[str, list[int]] = {"before_model": [], "after_model": [], "tool": [], "first": []}
    hook = AgentLoggingHook("planner", model="a-model", provider="a-provider")
    usage = Usage(input_tokens=1200, output_tokens=80)
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as spool, Recorder(address, spool=spool) as recorder:
        while time.monotonic() < until:
            with recorder.diagnosis("Why is the queue so long?", agent_flow="CHAT"):
                for step in range(_STEPS_OF_A_BURST):
                    times = [time.perf_counter_ns()]
                    hook.before_model(_MESSAGES)
                    times.append(time.perf_counter_ns())
                    _search("deploys")
                    times.append(time.perf_counter_ns())
                    _bare("deploys")
                    times.append(time.perf_counter_ns())
                    hook.after_model(_ANSWER, usage=usage)
                    times.append(time.perf_counter_ns())
                    before, tool, bare, after = (end - begin for begin, end in pairwise(times))
                    took["before_model" if step else "first"].append(before)
                    took["tool"].append(tool - bare)
                    took["after_model"].append(after)
            # An agent pauses between its steps, too, and the sender's thread gets its turn.
            time.sleep(_PAUSE_S)
        if dropped := recorder.report().dropped:
            raise RuntimeError(f"{dropped} events were dropped.")
    return {kind: statistics.median(several[len(several) // 10 :]) / 1000 for kind, several in took.items()}


if __name__ == "__main__":
    print(json.dumps(measure(**json.load(sys.stdin))))
