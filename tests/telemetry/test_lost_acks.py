"""The cut comes between the commit and its acknowledgement: telling it all again changes nothing.

otel-collector#11056: cut after commit before the ack; resend -> rows and totals unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub
from ramet_server.commands.services import TELEMETRY
from ramet_server.database.database import Database
from ramet_server.domain.ids import new_id
from tests.conformance.calling import within
from tests.harness.mariadb import MariaDb
from tests.harness.muffle import Muffle
from tests.harness.proxy import Cut, Proxy
from tests.harness.server import running_server
from tests.harness.waiting import wait_until
from tests.telemetry import events as e
from tests.telemetry.teller import Teller
from tests.telemetry.world import TurnedClock, World

STORY = [
    e.started("e1", query="why"),
    *e.steps(5),
    e.tool("e2", "t", step_key="s1"),
    e.step_completed("e3", "bad", model_output_json="NaN"),
    e.feedback("e4", e.USEFUL),
    e.completed("e5"),
]


def _open(address: str, space: str) -> grpc.Channel:
    # Without this, channels to one address share what the test cuts.
    return within(grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]), space)


def _committed(world: World) -> bool:
    return any(row["status"] == "SUCCESS" for row in world.everything()["diagnoses"])


def test_an_ack_lost_between_server_and_client_changes_nothing(database: Database, world: World) -> None:
    url = database.engine.url.render_as_string(hide_password=False)
    with running_server(url, [TELEMETRY]) as address, Muffle(address) as muffle:
        with _open(muffle.address, world.space) as channel:
            teller = Teller(channel)
            muffle.silence()
            teller.send(1, *STORY)
            wait_until(lambda: _committed(world), "the batch is committed")
            muffle.cut()
            with pytest.raises(grpc.RpcError):
                teller.read("ack")
            teller.leave()
        before = world.everything()
        with _open(muffle.address, world.space) as channel:
            again = Teller(channel)
            assert again.welcome.committed_through_seq == len(STORY)
            # A client that does not look at the Welcome tells all again, and hears again what was refused.
            assert [refusal.event_id for refusal in again.tell(1, *STORY)] == ["e3"]
            again.close()
            # So does one that lost its own seqs.
            other = Teller(channel, "reborn")
            assert [refusal.event_id for refusal in other.tell(1, *STORY)] == ["e3"]
            other.close()
        assert world.everything() == before
        assert (before["diagnoses"][0]["step_count"], before["diagnoses"][0]["total_token_count"]) == (5, 55)


@pytest.fixture
def proxied(mariadb_server: MariaDb) -> Iterator[tuple[Proxy, str, World]]:
    """A server in this process with a door between it and MariaDB, its address, and a space seen directly."""
    url = mariadb_server.new_database()
    database = Database.open(url)
    with Proxy(mariadb_server.port) as proxy:
        through = url.replace(f":{mariadb_server.port}/", f":{proxy.port}/")
        with running_server(through, [TELEMETRY]) as address:
            yield proxy, address, World(database, f"space-{new_id()}", TurnedClock())
    database.close()
    mariadb_server.drop_database(url)


@pytest.mark.mariadb
@pytest.mark.parametrize("cut", [Cut.BEFORE_COMMIT, Cut.AFTER_COMMIT])
def test_a_connection_to_the_database_lost_in_commit_loses_and_doubles_nothing(
    proxied: tuple[Proxy, str, World], cut: Cut
) -> None:
    proxy, address, world = proxied
    expected = world.elsewhere("expected")
    expected.tell(*STORY)
    with _open(address, world.space) as channel:
        teller = Teller(channel)
        proxy.cut = cut
        assert [refusal.event_id for refusal in teller.tell(1, *STORY)] == ["e3"]
        assert proxy.cuts == 1
        assert world.everything() == expected.everything()
        proxy.cut = cut
        assert teller.tell(len(STORY) + 1, e.step_completed("e6", "late")) == []
        assert proxy.cuts == 2
        teller.close()
        # The same at the unary door.
        expected.told(e.step_completed("e6", "late"), e.step_completed("e7", "later"))
        proxy.cut = cut
        request = pb.AppendEventsRequest(events=[e.step_completed("e6", "late"), e.step_completed("e7", "later")])
        assert TelemetryStub(channel).AppendEvents(request).accepted == 2
        assert proxy.cuts == 3
    assert world.everything() == expected.everything()
