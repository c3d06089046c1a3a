"""Streams of events over real channels, on both backends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from sqlalchemy import select

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub
from ramet_server.commands.services import TELEMETRY
from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.database.tables import telemetry as tables
from tests.conformance.calling import within
from tests.harness.server import running_server
from tests.telemetry import events as e
from tests.telemetry.teller import Teller
from tests.telemetry.world import World


@pytest.fixture(scope="module")
def address(database: Database) -> Iterator[str]:
    """A server over the module's database."""
    url = database.engine.url.render_as_string(hide_password=False)
    with running_server(url, [TELEMETRY]) as served:
        yield served


@pytest.fixture
def channel(address: str, world: World) -> Iterator[grpc.Channel]:
    """A channel into the test's space."""
    with grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as opened:
        yield within(opened, world.space)


def _producer(world: World) -> dict[str, object]:
    (row,) = world.rows(tables.telemetry_producer)
    return row


def test_a_stream_is_welcomed_committed_and_acknowledged(channel: grpc.Channel, world: World) -> None:
    teller = Teller(channel)
    assert teller.welcome.committed_through_seq == 0
    assert (teller.welcome.max_batch_events, teller.welcome.max_batch_bytes) == (1000, 4 * 1024 * 1024)
    assert teller.welcome.credit_bytes >= teller.welcome.max_batch_bytes
    assert teller.tell(1, e.started("e1", query="why"), *e.steps(3)) == []
    assert teller.tell(5, e.completed("e2")) == []
    teller.close()
    assert (world.diagnosis()["step_count"], world.diagnosis()["status"]) == (3, "SUCCESS")
    later = Teller(channel)
    assert later.welcome.committed_through_seq == 5
    later.close()


def test_many_messages_under_way_are_all_committed(channel: grpc.Channel, world: World) -> None:
    teller = Teller(channel)
    teller.tell_all([[step] for step in e.steps(300)])
    teller.close()
    assert world.diagnosis()["step_count"] == 300


def test_refusals_come_with_their_seq_and_neighbours_stay(channel: grpc.Channel, world: World) -> None:
    teller = Teller(channel)
    refusals = teller.tell(
        1,
        e.step_completed("e1", "a"),
        e.step_completed("e2", "b", model_output_json="NaN"),
        e.step_completed("e1", "c"),
        e.step_completed("e1", "a"),
        e.step_completed("e5", "d"),
    )
    told = [(refusal.seq, refusal.event_id, refusal.reason, refusal.field) for refusal in refusals]
    assert told == [
        (2, "e2", "INVALID_FIELD", "step_completed.model_output_json"),
        (3, "e1", "EVENT_CONFLICT", "event_id"),
    ]
    assert {row["step_key"] for row in world.steps()} == {"a", "d"}
    # A client whose Ack was lost sends again, and is told again.
    again = teller.tell(2, e.step_completed("e2", "b", model_output_json="NaN"), e.step_completed("e1", "c"))
    assert [refusal.seq for refusal in again] == [2, 3]


def test_a_gap_is_answered_with_the_seq_expected_and_the_stream_stays(channel: grpc.Channel, world: World) -> None:
    teller = Teller(channel)
    teller.tell(1, e.step_completed("e1", "a"))
    teller.send(4, e.step_completed("e4", "d"))
    assert teller.read("ack").committed_through_seq == 1
    assert teller.read("gap").expected_seq == 2
    assert [row["step_key"] for row in world.steps()] == ["a"]
    teller.tell(2, e.step_completed("e2", "b"), e.step_completed("e3", "c"), e.step_completed("e4", "d"))
    assert len(world.steps()) == 4
    teller.close()


def test_dropped_closes_a_gap_and_is_counted(channel: grpc.Channel, world: World) -> None:
    teller = Teller(channel)
    teller.drop(1, 7)
    assert teller.read("ack").committed_through_seq == 7
    teller.tell(8, e.step_completed("e8", "a"))
    # Said again, or of what was committed, it counts nothing twice.
    teller.drop(3, 9)
    teller.read_through(9)
    teller.drop(20, 21)
    teller.read("ack")
    assert teller.read("gap").expected_seq == 10
    teller.close()
    assert (_producer(world)["dropped_count"], _producer(world)["committed_through_seq"]) == (8, 9)


def test_what_is_sent_again_is_skipped_and_acknowledged(channel: grpc.Channel, world: World) -> None:
    teller, events = Teller(channel), e.steps(10)
    teller.tell(1, *events[:6])
    before = world.everything()
    teller.send(1, *events[:3])
    assert teller.read("ack").committed_through_seq == 6
    assert world.everything() == before
    teller.tell(4, *events[3:])
    assert world.diagnosis()["step_count"] == 10


def test_the_newest_stream_of_a_producer_wins(channel: grpc.Channel, world: World) -> None:
    old = Teller(channel)
    old.tell(1, e.step_completed("e1", "a"))
    new = Teller(channel)
    assert new.welcome.committed_through_seq == 1
    old.send(2, e.step_completed("e2", "b"))
    assert old.end() == (grpc.StatusCode.ABORTED, "PRODUCER_REPLACED")
    assert [row["step_key"] for row in world.steps()] == ["a"]
    new.tell(2, e.step_completed("e2", "b"))
    new.close()


def test_producers_and_spaces_do_not_meet(address: str, channel: grpc.Channel, world: World) -> None:
    one, two = Teller(channel, "one"), Teller(channel, "two")
    elsewhere = world.elsewhere(f"{world.space}-2")
    with grpc.insecure_channel(address) as opened:
        three = Teller(within(opened, elsewhere.space), "one")
        for teller in (one, two, three):
            assert teller.welcome.committed_through_seq == 0
            teller.tell(1, e.step_completed("e1", "a"))
            teller.close()
    assert len(world.steps()) == len(elsewhere.steps()) == 1


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (pb.StreamEventsRequest(), "step"),
        (pb.StreamEventsRequest(hello=pb.Hello(producer_id="p")), "hello"),
        (pb.StreamEventsRequest(batch=pb.EventBatch(first_seq=1)), "events"),
        (pb.StreamEventsRequest(batch=pb.EventBatch(first_seq=0, events=e.steps(1))), "batch.first_seq"),
        (pb.StreamEventsRequest(batch=pb.EventBatch(first_seq=2**63 - 1, events=e.steps(2))), "batch.first_seq"),
        (pb.StreamEventsRequest(dropped=pb.Dropped(from_seq=3, to_seq=2)), "dropped.from_seq"),
        (pb.StreamEventsRequest(batch=pb.EventBatch(first_seq=1, events=e.steps(1001))), "events"),
    ],
    ids=["empty", "second-hello", "no-events", "seq-0", "seq-overflow", "backwards", "too-many"],
)
def test_a_message_that_makes_no_sense_ends_the_stream_after_what_came_before_it(
    channel: grpc.Channel, world: World, message: pb.StreamEventsRequest, field: str
) -> None:
    teller = Teller(channel)
    teller.send(1, e.step_completed("good", "g"))
    teller._queue.put(message)
    code, reason = teller.end()
    assert code is grpc.StatusCode.INVALID_ARGUMENT, field
    assert reason in ("INVALID_FIELD", "TOO_LARGE")
    assert [row["step_key"] for row in world.steps()] == ["g"]


def test_a_stream_without_hello_is_refused(channel: grpc.Channel) -> None:
    stub = TelemetryStub(channel)
    for first in (pb.StreamEventsRequest(), pb.StreamEventsRequest(batch=pb.EventBatch(first_seq=1))):
        with pytest.raises(grpc.RpcError) as refusal:
            list(stub.StreamEvents(iter([first])))
        assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert list(stub.StreamEvents(iter([]))) == []


def test_twelve_producers_lose_nothing(channel: grpc.Channel, world: World) -> None:
    def produce(number: int) -> None:
        teller = Teller(channel, f"producer-{number}")
        own = e.steps(40, f"d{number}")
        shared = e.steps(40, "shared", f"p{number}-")
        teller.tell_all([[mine, ours] for mine, ours in zip(own, shared, strict=True)])
        teller.close()

    with ThreadPoolExecutor(12) as threads:
        list(threads.map(produce, range(12)))
    counts = {row["session_id"]: row["step_count"] for row in world.rows(tables.diagnosis_session)}
    assert counts == {"shared": 480} | {f"d{number}": 40 for number in range(12)}
    assert len(world.steps()) == 960


def test_two_hundred_idle_streams_cost_no_thread(address: str, world: World) -> None:
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_concurrent_streams", 1000)]
    with grpc.insecure_channel(address, options=options) as opened:
        channel = within(opened, world.space)
        first = Teller(channel, "p0")
        before = _server_threads()
        # The client's own threads are here too, so only the server's kinds are counted.
        tellers = [Teller(channel, f"p{number}") for number in range(1, 200)]
        assert _server_threads() == before
        assert first.tell(1, e.step_completed("e1", "a")) == []
        assert tellers[-1].tell(1, e.step_completed("e2", "b")) == []
        for teller in [first, *tellers]:
            teller.leave()


def _server_threads() -> list[str]:
    names = ("ramet", "server-under-test", "asyncio")
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith(names))


def test_a_client_that_leaves_holds_nothing_and_is_no_fault(
    channel: grpc.Channel, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    gone = Teller(channel)
    gone.send(1, *e.steps(20))
    gone.leave()
    back = Teller(channel)
    begin = back.welcome.committed_through_seq
    assert begin in (0, 20)
    back.tell(1, *e.steps(20))
    back.close()
    assert world.diagnosis()["step_count"] == 20
    assert [record.message for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")] == []


def test_the_rows_are_there_when_the_ack_is(channel: grpc.Channel, world: World) -> None:
    teller = Teller(channel)
    query = select(tables.telemetry_event.c.event_id).where(tables.telemetry_event.c.space_id == world.space)
    for number in range(1, 6):
        teller.tell(number, e.step_completed(f"e{number}", f"s{number}"))
        found = world.database.read(world.call, lambda connection: connection.execute(query).scalars().all())
        assert len(found) == number
    teller.close()


def test_server_info_tells_the_limits(channel: grpc.Channel) -> None:
    info = TelemetryStub(channel).GetServerInfo(pb.GetServerInfoRequest())
    assert info.version
    assert info.schema_revision == schema.head()
    assert info.limits == pb.Limits(
        max_batch_events=1000,
        max_batch_bytes=4 * 1024 * 1024,
        max_text_bytes=64 * 1024,
        max_preview_characters=500,
        abandoned_after_seconds=900,
    )
