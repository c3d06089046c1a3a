"""Whether telemetry answers as quickly when its past is long."""

from collections.abc import Sequence
from datetime import timedelta
from functools import cache

from benchmarks import messages
from benchmarks.comparing import Side
from benchmarks.filling import just_now, put_diagnoses, stamp
from benchmarks.messages import Messages
from benchmarks.sides import TELEMETRY, Works, timed
from benchmarks.stand import Server, Stand
from ramet.telemetry.v1 import telemetry_pb2 as pb

_FEW, _MANY = 10_000, 1_000_000
_READ = 64


def works(stand: Stand) -> Works:
    """Returns what is compared between servers with a short and with a long past of equal traffic."""
    now = just_now()

    @cache
    def world(steps: int) -> tuple[Server, list[str]]:
        url = stand.new_database()
        server = stand.ramet(url)
        return server, put_diagnoses(url, steps, now)

    def side(steps: int, method: str, sent: Messages) -> Side:
        return timed(stand, f"{steps:,} steps", world(steps)[0], f"{TELEMETRY}/{method}", sent)

    def chain(_: int) -> Sequence[Side]:
        return [side(steps, "GetDecisionChain", _chains(world(steps)[1])) for steps in (_MANY, _FEW)]

    def hourly(_: int) -> Sequence[Side]:
        query = pb.QueryMetricsRequest(
            metrics=[pb.METRIC_STEP_COUNT, pb.METRIC_STEP_DURATION_MS],
            created_from=stamp(now - timedelta(days=1)),
            created_before=stamp(now),
            group_by=[pb.DIMENSION_HOUR],
        )
        return [side(steps, "QueryMetrics", messages.of([query])) for steps in (_MANY, _FEW)]

    return {"chain": chain, "hourly": hourly}


def _chains(ids: list[str]) -> Messages:
    """Returns the reading of diagnoses from all over the past."""
    chosen = ids[:: max(1, len(ids) // _READ)]
    return messages.of([pb.GetDecisionChainRequest(session_id=each) for each in chosen])
