"""Whether lists of sessions, digests and trees stay as quick as there are more of them."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

import grpc

import ramet
from benchmarks import messages
from benchmarks.comparing import Sample, Side
from benchmarks.filling import just_now, put_sessions, stamp
from benchmarks.sides import SESSIONS, Works, timed
from benchmarks.stand import Server, Stand, cpu_seconds, forget_peak, peak_mb
from ramet.orchestrator import Orchestrator
from ramet.session.v1 import session_pb2 as pb
from ramet.tree.v1 import tree_pb2
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub

_FEW, _MORE, _MANY = 1_000, 10_000, 100_000
_TREE_PAGE = 1000

_ORDERS = {
    "id": pb.SESSION_ORDER_ID,
    "created_at": pb.SESSION_ORDER_CREATED_AT,
    "last_active_at": pb.SESSION_ORDER_LAST_ACTIVE_AT,
}


@dataclass(frozen=True)
class _World:
    """A server over some sessions, and a tree of as many nodes."""

    size: int
    server: Server


def works(stand: Stand) -> Works:
    """Returns what is compared between servers with few sessions and with many."""

    @cache
    def world(size: int) -> _World:
        url = stand.new_database()
        server = stand.ramet(url)
        put_sessions(url, size, just_now())
        return _World(size, server)

    def listing(request: pb.ListSessionsRequest) -> Callable[[int], Sequence[Side]]:
        request.page_size = 50
        return lambda _: [
            timed(stand, f"of {size:,}", world(size).server, f"{SESSIONS}/ListSessions", messages.of([request]))
            for size in (_MANY, _FEW)
        ]

    def sides(measure: Callable[[Stand, _World], Sample], *sizes: int) -> Callable[[int], Sequence[Side]]:
        def side(size: int) -> Side:
            found = world(size)
            return Side(f"of {size:,}", lambda: measure(stand, found))

        return lambda _: [side(size) for size in sizes]

    return {
        **{name: listing(request) for name, request in _lists()},
        "digests": sides(_digest_queries, _MORE, _FEW),
        "digest time": sides(_digest_time, _MORE, _FEW),
        "tree": sides(_tree_time, _MANY, _MORE),
        "tree memory": sides(_tree_memory, _MANY, _MORE),
    }


def _lists() -> list[tuple[str, pb.ListSessionsRequest]]:
    orders: list[tuple[str, dict[str, Any]]] = [(name, {"order": order}) for name, order in _ORDERS.items()]
    ordered = orders + [(f"{name} descending", fields | {"descending": True}) for name, fields in orders]
    now = just_now()
    recent = {"from": stamp(now - timedelta(seconds=500)), "before": stamp(now)}
    filters = {
        "status": pb.SessionFilter(status=pb.SESSION_STATUS_ARCHIVED),
        "tag": pb.SessionFilter(tags=["of 5: 3"]),
        "two tags": pb.SessionFilter(tags=["of 2: 1", "of 5: 3"]),
        "label": pb.SessionFilter(label_prefix="topic 7"),
        "created": pb.SessionFilter(created_from=recent["from"], created_before=recent["before"]),
        "active": pb.SessionFilter(last_active_from=recent["from"], last_active_before=recent["before"]),
    }
    return [
        *((name, pb.ListSessionsRequest(**fields)) for name, fields in ordered),
        *((name, pb.ListSessionsRequest(filter=each)) for name, each in filters.items()),
    ]


def _digest_queries(stand: Stand, world: _World) -> Sample:
    before = stand.statements()
    asyncio.run(_read_digests(world))
    return Sample((stand.statements() - before) / world.size * 1000)


def _digest_time(_: Stand, world: _World) -> Sample:
    started = time.perf_counter()
    asyncio.run(_read_digests(world))
    return Sample((time.perf_counter() - started) / world.size * 1e6)


async def _read_digests(world: _World) -> None:
    async with ramet.connect(world.server.address) as client:
        found = sum([1 async for _ in Orchestrator(client).iter_digests()])
    if found != world.size:
        raise RuntimeError(f"{world.size} sessions have {found} digests.")


def _tree_time(_: Stand, world: _World) -> Sample:
    started, cpu = time.perf_counter(), cpu_seconds(world.server.pids)
    _read_tree(world)
    used = (cpu_seconds(world.server.pids) - cpu) / (world.size / _TREE_PAGE) * 1e6
    return Sample((time.perf_counter() - started) / world.size * 1e6, {"server": used})


def _tree_memory(_: Stand, world: _World) -> Sample:
    forget_peak(world.server.pids)
    _read_tree(world)
    return Sample(peak_mb(world.server.pids))


def _read_tree(world: _World) -> None:
    found, token = 0, ""
    with grpc.insecure_channel(world.server.address) as channel:
        stub = SessionTreeStub(channel)
        while True:
            page = stub.GetTree(tree_pb2.GetTreeRequest(page_size=_TREE_PAGE, page_token=token))
            found += len(page.entries)
            if not (token := page.next_page_token):
                break
    if found != world.size:
        raise RuntimeError(f"A tree of {world.size} nodes was told to have {found}.")
