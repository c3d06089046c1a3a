"""Whole diagnoses by the dozen, some things of them known and some not."""

from __future__ import annotations

import random
from datetime import timedelta

from ramet.telemetry.v1 import telemetry_pb2 as pb
from tests.telemetry import events as e
from tests.telemetry.world import World

AGENTS = ("planner", "executor", "supervisor")


def diagnose(world: World, number: int, chance: random.Random) -> None:
    """Tells one diagnosis."""
    name = f"d{number}"
    ended = chance.choice((e.SUCCESS, e.SUCCESS, e.FAILED, e.CANCELLED, None))
    events = [e.started(f"{name}-a", 0, name, query="?", agent_flow=("CHAT", "AI_OPS", "")[number % 3])]
    for n in range(chance.randrange(5)):
        usage = pb.Usage(input_tokens=chance.randrange(1000), output_tokens=chance.randrange(100))
        events.append(
            e.step_completed(
                f"{name}-s{n}",
                f"s{n}",
                n,
                name,
                step_index=n,
                agent_name=AGENTS[n % 3],
                model=("small", "large", "")[n % 3],
                duration_ms=chance.randrange(5000),
                usage=usage if chance.random() < 0.7 else None,
            )
        )
        layer = chance.choice((pb.RETRIEVAL_LAYER_L0, pb.RETRIEVAL_LAYER_L1, pb.RETRIEVAL_LAYER_L0_L1))
        hits = chance.choice((0, 1, 5, None))
        events.append(
            e.tool(
                f"{name}-t{n}",
                f"t{n}",
                n,
                name,
                step_key=f"s{n}",
                duration_ms=chance.randrange(900),
                is_truncated=chance.random() < 0.3,
                success=chance.random() < 0.9,
                retrieval=pb.Retrieval(layer=layer, l0_match_count=hits),
            )
        )
        events.append(e.tool(f"{name}-u{n}", f"u{n}", n, name, tool_name="queryPrometheusAlerts"))
    if ended is not None:
        events.append(e.completed(f"{name}-z", chance.randrange(1, 60), name, status=ended))
    if chance.random() < 0.7:
        proposed = chance.randrange(4)
        events.append(
            e.evaluation(
                f"{name}-v",
                8,
                name,
                confidence=chance.randrange(101),
                tools_proposed=proposed,
                tools_accepted=chance.randrange(proposed + 1),
            )
        )
    for source in ("user", "reviewer"):
        if chance.random() < 0.5:
            value = chance.choice((e.USEFUL, e.NOT_USEFUL))
            events.append(e.feedback(f"{name}-{source}", value, chance.randrange(99), name, source=source))
    world.told(*events)


def diagnose_all(world: World, count: int = 60) -> None:
    """Tells diagnoses, three minutes apart."""
    chance = random.Random(7)
    for number in range(count):
        diagnose(world, number, chance)
        world.clock.ahead += timedelta(minutes=3)
