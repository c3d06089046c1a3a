"""What a call of the recorder costs the agent that makes it."""

from collections.abc import Callable, Sequence
from functools import cache, partial

from benchmarks.calling import run_client
from benchmarks.comparing import Sample, Side
from benchmarks.sides import Works
from benchmarks.stand import Stand

# The port of discard, where nobody listens.
_AWAY = "127.0.0.1:9"


def works(stand: Stand) -> Works:
    """Returns the kinds of calls, each with the service up and away."""

    @cache
    def up() -> str:
        return stand.ramet(stand.new_database()).address

    return {name: partial(_kind, up, stand, name) for name in ("before_model", "first", "after_model", "tool")}


def _kind(up: Callable[[], str], stand: Stand, name: str, _: int) -> Sequence[Side]:
    return [_side("service up", up(), name, stand), _side("service away", _AWAY, name, stand)]


def _side(name: str, address: str, kind: str, stand: Stand) -> Side:
    def measure() -> Sample:
        found = run_client("benchmarks.recording", {"address": address, "seconds": stand.seconds})
        return Sample(found[kind])

    return Side(name, measure)
