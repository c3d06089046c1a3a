"""When a function runs again in a transaction, and which run's value is the one that counts."""

import grpc
import pytest

from ramet.client.errors import Aborted, AlreadyCommitted, AlreadyExists, InvalidArgument, RametError, Unavailable
from ramet.client.reruns import Found, Reruns


def error(kind: type[RametError], reason: str = "", retry_after_s: float | None = None) -> RametError:
    return kind("What happened.", code=grpc.StatusCode.ABORTED, reason=reason, retry_after_s=retry_after_s)


CONFLICT = error(Aborted, "TRANSACTION_CONFLICT")
LOST = error(Unavailable)
REUSED = error(AlreadyExists, "REQUEST_ID_REUSED")


def test_a_conflict_runs_again_after_a_growing_pause_until_the_attempts_are_used_up() -> None:
    reruns: Reruns[int] = Reruns(5, None)
    pauses = [reruns.pause_after(CONFLICT) for _ in range(4)]
    for number, pause in enumerate(pauses):
        assert 0.005 * 2**number <= pause <= 0.015 * 2**number
    with pytest.raises(Aborted):
        reruns.pause_after(CONFLICT)


@pytest.mark.parametrize("helped", [error(Aborted, "WRITE_CONFLICT"), LOST, error(Unavailable, "DRAINING")])
def test_what_may_pass_runs_again(helped: RametError) -> None:
    reruns: Reruns[int] = Reruns(2, None)
    assert reruns.pause_after(helped) > 0


def test_the_servers_own_pause_is_kept() -> None:
    reruns: Reruns[int] = Reruns(2, None)
    assert reruns.pause_after(error(Unavailable, "DRAINING", 1.0)) >= 0.5


def test_a_server_that_stays_away_ends_the_runs_however_many_are_left() -> None:
    reruns: Reruns[int] = Reruns(1000, None, patience_s=0)
    assert reruns.pause_after(LOST) > 0
    with pytest.raises(Unavailable):
        reruns.pause_after(LOST, begun=False)
    patient: Reruns[int] = Reruns(1000, None)
    assert patient.pause_after(LOST, begun=False) > 0


@pytest.mark.parametrize("final", [error(Aborted, "STALE_HEAD"), error(Aborted, "TRANSACTION_EXPIRED"), REUSED])
def test_what_no_run_can_help_is_raised(final: RametError) -> None:
    reruns: Reruns[int] = Reruns(10, None)
    with pytest.raises(type(final)):
        reruns.pause_after(final)


def test_a_commit_that_seemed_lost_counts_where_a_later_run_finds_it() -> None:
    reruns: Reruns[str] = Reruns(9, "id")
    for number in (1, 2):
        reruns.lost(f"run-{number}", f"value {number}")
        reruns.pause_after(LOST)
    # Other writes stand under the id, since that commit was still under way when the later run began.
    reruns.pause_after(REUSED)
    with pytest.raises(Found) as found:
        reruns.pause_after(AlreadyCommitted("id", "run-1"))
    assert found.value.value == "value 1"


def test_what_somebody_else_committed_under_the_id_is_not_taken_for_an_own_run() -> None:
    reruns: Reruns[str] = Reruns(9, "id")
    reruns.lost("run-1", "value 1")
    with pytest.raises(AlreadyCommitted):
        reruns.pause_after(AlreadyCommitted("id", "somebody"))


def test_all_runs_share_one_request_id() -> None:
    assert Reruns[int](1, "mine").request_id == "mine"
    assert Reruns[int](1, None).request_id
    with pytest.raises(InvalidArgument, match="attempts"):
        Reruns[int](0, None)
