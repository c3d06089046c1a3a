"""How the database answers: by which index, in how many statements, however much there is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server.database.database import Database
from ramet_server.database.tables import metadata
from ramet_server.domain.call import Call
from ramet_server.domain.ids import new_id
from telemetry.rules.listing import ListingRules
from telemetry.rules.tailing import TailRules
from telemetry.store.answers import SqlAnswersStore
from tests.session_service.storage import statements
from tests.telemetry import events as e
from tests.telemetry.answering import chain, get, metrics, pages
from tests.telemetry.diagnosing import diagnose_all
from tests.telemetry.world import TurnedClock, World

COPIES = 40
TABLES = ("diagnosis_session", "agent_step", "tool_invocation", "diagnosis_feedback")


@pytest.fixture(scope="module")
def crowded(database: Database) -> World:
    """Thousands of diagnoses beside those of another space, and one diagnosis of thousands of steps."""
    clock = TurnedClock()
    for space in ("other", "crowded"):
        world = World(database, f"{space}-{new_id()}", clock)
        diagnose_all(world, 50)
        multiply(world)
    long = [*e.steps(900, "long"), *(e.tool(f"l{n}", f"t{n}", session_id="long", step_key=f"s{n}") for n in range(900))]
    world.told(e.started("long", session_id="long", query="long", conversation_id="main"), *long[:900])
    world.told(*long[900:])
    if database.engine.dialect.name == "mysql":
        database.read(
            world.call, lambda connection: connection.execute(text(f"ANALYZE TABLE {', '.join(TABLES)}")).all()
        )
    return world


def multiply(world: World) -> None:
    """Adds copies of all diagnoses, within the database."""

    def copy(connection: Any) -> None:
        glue = "CONCAT(session_id, '-{0}')" if connection.dialect.name == "mysql" else "session_id || '-{0}'"
        for table in TABLES:
            if "id" in (names := [column.name for column in metadata.tables[table].c]):
                changed = {"id": "id + 100 * {0}", "session_id": glue}
            else:
                changed = {"session_id": glue}
            for number in range(1, COPIES + 1):
                columns = ", ".join(changed.get(name, name).format(number) for name in names)
                # Copies have a mark in their names.
                connection.execute(
                    text(
                        f"INSERT INTO {table} ({', '.join(names)}) SELECT {columns} FROM {table} "
                        "WHERE space_id = :space AND session_id NOT LIKE '%-%'"
                    ),
                    {"space": world.space},
                )

    # The numbers of one batch follow each other; those of another lie far away.
    world.database.write(world.call, copy)


FILTERS: list[dict[str, Any]] = [
    {},
    {"agent_flow": "CHAT"},
    {"status": pb.RUN_STATUS_SUCCESS},
    {"status": pb.RUN_STATUS_RUNNING, "agent_flow": "CHAT"},
    {"status": pb.RUN_STATUS_ABANDONED},
    {"feedback": e.NOT_USEFUL, "min_confidence": 81},
    {"conversation_id": "main"},
    {"min_confidence": 20, "max_confidence": 90},
    {"created_from": {"seconds": 1}, "created_before": {"seconds": 4_000_000_000}, "query_contains": "x"},
]

TOOL_FILTERS: list[dict[str, Any]] = [
    {},
    {"session_id": "long"},
    {"session_id": "long", "tool_name": "lookup_knowledge", "success": False},
    {"tool_name": "lookup_knowledge", "is_truncated": True},
    {"layer": pb.RETRIEVAL_LAYER_L0_L1},
    {"success": False},
]


def every_call(world: World) -> Iterator[Any]:
    """Makes each kind of call, each kind of list from its middle too."""
    yield get(world, "long")
    for conditions in FILTERS:
        yield two_pages(world, pb.ListDiagnosisSessionsRequest(filter=pb.DiagnosisFilter(**conditions), page_size=5))
    for conditions in TOOL_FILTERS:
        yield two_pages(world, pb.ListToolInvocationsRequest(filter=pb.ToolFilter(**conditions), page_size=5))
    yield two_pages(world, pb.GetDecisionChainRequest(session_id="long"))
    for names, dimensions in (
        (("DIAGNOSIS_COUNT", "DIAGNOSIS_TOKENS", "TOOL_ACCEPTANCE"), ["AGENT_FLOW", "HOUR"]),
        (("STEP_DURATION_MS", "STEP_TOKENS"), ["AGENT_NAME", "MODEL"]),
        (("TOOL_DURATION_MS", "L0_HIT_RATE"), ["TOOL_NAME", "RETRIEVAL_LAYER", "DAY"]),
    ):
        yield metrics(world, *names, percentiles=[50, 99])
        yield metrics(world, *names, group_by=dimensions, percentiles=[50, 99], agent_flow="CHAT")
    yield metrics(world, "STEP_DURATION_MS", agent_name="planner", group_by=["AGENT_FLOW"])
    yield metrics(world, "TOOL_COUNT", tool_name="lookup_knowledge")
    store = SqlAnswersStore(world.database)
    rules = TailRules(store, world.clock, ListingRules(store, world.limits, world.clock))
    seen = rules.begin(world.call)
    seen.finish(rules.look(world.call, seen))
    world.told(e.step_completed(new_id(), "new"), e.tool(new_id(), "new"))
    look = rules.look(world.call, seen)
    assert {change.kind for change in look.changes} == {"DIAGNOSIS", "STEP", "TOOL"}
    yield rules.rows(world.call, look.changes)


def two_pages(world: World, request: Any) -> list[Any]:
    """Reads the first two pages of a list, or its only one."""
    return [page for page, _ in zip(pages(world, request), range(2), strict=False)]


def faults(database: Database, statement: str, parameters: Any) -> list[str]:
    """Returns what of a statement's plan reads a whole table or index."""
    explain = "EXPLAIN QUERY PLAN" if database.engine.dialect.name == "sqlite" else "EXPLAIN"

    def read(connection: Any) -> list[Any]:
        return list(connection.exec_driver_sql(f"{explain} {statement}", parameters).mappings())

    rows = database.read(Call("x"), read)
    if explain == "EXPLAIN":
        return [
            str(dict(each))
            for each in rows
            if each["type"] in ("ALL", "index") and each["table"] and not each["table"].startswith("<")
        ]
    # What a query made itself may be read whole.
    own = ("SCAN anon_", "SCAN stretch", "SCAN (subquery", "SCAN measured", "SCAN ranks")
    details = [each["detail"] for each in rows]
    whole = [detail for detail in details if detail.startswith("SCAN") and not detail.startswith(own)]
    # Of a whole space only an index is read, in the order of a list and as far as its page goes.
    return whole + [detail for detail in details if detail.endswith("(space_id=?)") and "COVERING" not in detail]


def test_no_answer_reads_a_whole_table(crowded: World) -> None:
    with statements(crowded.database) as seen:
        for _ in every_call(crowded):
            pass
    found = {
        statement: faults(crowded.database, statement, parameters)
        for statement, parameters in dict(seen).items()
        if statement.startswith("SELECT")
    }
    assert len(found) > 40
    assert not {statement: plan for statement, plan in found.items() if plan}


def rows_read(world: World, work: Any) -> int:
    """Counts the rows that MariaDB's engine touches while something runs alone."""

    def handlers() -> int:
        def read(connection: Any) -> int:
            rows = connection.execute(text("SHOW GLOBAL STATUS LIKE 'Handler_read%'")).all()
            return sum(int(value) for name, value in rows if name != "Handler_read_rnd_deleted")

        return world.database.read(world.call, read)

    handlers()
    before = handlers()
    idle = handlers() - before
    before = handlers()
    work()
    return handlers() - before - idle


@pytest.mark.parametrize(
    "request_",
    [
        *(pb.ListDiagnosisSessionsRequest(filter=pb.DiagnosisFilter(**each), page_size=5) for each in FILTERS[:3]),
        *(pb.ListToolInvocationsRequest(filter=pb.ToolFilter(**each), page_size=5) for each in TOOL_FILTERS[:2]),
        pb.GetDecisionChainRequest(session_id="long", page_size=5),
        pb.GetDiagnosisSessionRequest(session_id="long"),
    ],
    ids=lambda request: f"{type(request).__name__}-{request.SerializeToString().hex()}",
)
def test_a_page_reads_about_what_it_shows(crowded: World, request_: Any) -> None:
    method = getattr(crowded.service, type(request_).__name__.removesuffix("Request"))
    with statements(crowded.database) as seen:
        method(request_, crowded.call)
    assert len(seen) <= 10
    if crowded.database.engine.dialect.name == "mysql" and request_.SerializeToString() != b"":
        # The tool calls that belong to no step are sought among all of their diagnosis.
        most = 4000 if isinstance(request_, pb.GetDecisionChainRequest) else 300
        assert rows_read(crowded, lambda: method(request_, crowded.call)) < most


def test_a_chain_of_a_thousand_steps_is_as_many_statements_as_one_of_five(crowded: World) -> None:
    counts = []
    for size in (5, 1000):
        with statements(crowded.database) as seen:
            found = chain(crowded, "long", page_size=size)
        assert len(found.steps) == min(size, 900)
        assert all(len(step.tool_invocations) == 1 for step in found.steps)
        counts.append(len(seen))
    assert counts[0] == counts[1] <= 10
