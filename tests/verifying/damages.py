"""Every kind of damage that a verification knows, done behind the services' back."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ramet_server.database.tables import metadata
from tests.verifying.world import World

T = metadata.tables
LONG_AGO = datetime(2026, 1, 2, tzinfo=UTC)
TOLD = ("space", "tree_change")
"""What differs where those who watch the forest are told of the mending."""
OPEN_END = (1 << 63) - 1


@dataclass(frozen=True)
class Damage:
    """One kind of damage."""

    code: str
    plant: Callable[[World], str]
    """Does it, in the space named ``space``; returns the id that the finding must have."""
    left: bool = False
    """Whether it is left to people."""
    may_differ: Collection[str] = ()
    """Tables that are not as they were after the mending."""
    space: str = "space"
    along: Collection[str] = ()
    """Findings that cannot but come with it."""


DAMAGES: list[Damage] = []


def damage(code: str, **options: Any) -> Callable[[Callable[[World], str]], Callable[[World], str]]:
    """Makes a damage of a function."""

    def take(plant: Callable[[World], str]) -> Callable[[World], str]:
        DAMAGES.append(Damage(code, plant, **options))
        return plant

    return take


def session(session_id: str) -> dict[str, Any]:
    """The key of a session."""
    return {"space_id": "space", "session_id": session_id}


def node(node_id: str) -> dict[str, Any]:
    """The key of a node."""
    return {"space_id": "space", "node_id": node_id}


def diagnose_wrongly(world: World, **values: Any) -> None:
    """Changes a diagnosis, but not the time of its last change, which MySQL would set by itself."""
    (row,) = world.rows(T["diagnosis_session"], **session("d"))
    world.change(T["diagnosis_session"], session("d"), updated_at=row.updated_at, **values)


@damage("TAG_STRAY")
def a_tag_of_no_session(world: World) -> str:
    world.add(T["session_tag"], **session("never"), tag="t")
    return "never"


@damage("SLOT_STRAY")
def a_slot_of_no_session(world: World) -> str:
    world.add(T["context_slot"], **session("never"), slot="memory", content="x", version=1, updated_at=LONG_AGO)
    return "never"


@damage("SESSION_SPANS", left=True, along=["RECORD_MISSING"])
def spans_that_overlap(world: World) -> str:
    origin = world.origin("side")
    first = min(row.first_seq for row in world.rows(T["history_span"], owner_origin=origin))
    world.change(T["history_span"], {"owner_origin": origin, "first_seq": first}, last_seq=9)
    return "side"


@damage("SESSION_OPEN_SPAN", along=["RECORD_LEAKED"])
def a_session_without_its_own_span(world: World) -> str:
    world.drop(T["history_span"], owner_origin=world.origin("main"), last_seq=OPEN_END)
    return "main"


@damage("SESSION_OPEN_SPAN", left=True)
def a_session_whose_open_span_is_another_s(world: World) -> str:
    # One with records of its own would lose them too.
    own, source = world.origin("deep"), world.origin("main")
    world.change(T["history_span"], {"owner_origin": own, "last_seq": OPEN_END}, origin=source)
    return "deep"


@damage("SESSION_HEAD", may_differ=["session"])
def a_head_below_its_records(world: World) -> str:
    world.change(T["session"], session("main"), head_seq=9)
    return "main"


@damage("SESSION_FLOOR")
def a_floor_above_what_is_shown(world: World) -> str:
    (row,) = world.rows(T["session"], **session("main"))
    world.change(T["session"], session("main"), floor_seq=row.floor_seq + 1)
    return "main"


@damage("SESSION_GROUPS", may_differ=["session"])
def open_groups_of_records_that_are_not_shown(world: World) -> str:
    world.change(T["session"], session("main"), open_group_json='[[[3],["x"]]]')
    return "main"


@damage("SESSION_GROUPS", may_differ=["session"])
def open_groups_that_cannot_be_read(world: World) -> str:
    world.change(T["session"], session("main"), open_group_json="{")
    return "main"


@damage("SESSION_MARKS")
def a_mark_of_a_record_that_is_not_shown(world: World) -> str:
    world.add(T["broken_group"], origin=world.origin("main"), seq=1)
    return "main"


@damage("RECORD_MISSING", left=True)
def a_record_that_is_gone(world: World) -> str:
    origin = world.origin("main")
    world.drop(T["record"], origin=origin, seq=11)
    return origin


@damage("RECORD_MISSING", left=True)
def a_record_of_a_deleted_source_that_is_gone(world: World) -> str:
    (span, _) = sorted(world.rows(T["history_span"], owner_origin=world.origin("heir")), key=lambda row: row.first_seq)
    world.drop(T["record"], origin=span.origin, seq=4)
    return str(span.origin)


@damage("RECORD_LEAKED", may_differ=["record", "released_span"])
def a_record_that_nobody_shows(world: World) -> str:
    origin = world.origin("side")
    (own,) = world.rows(T["history_span"], owner_origin=origin, last_seq=OPEN_END)
    row = world.rows(T["record"], origin=origin)[0]
    # The seq that its rewind left empty.
    world.add(T["record"], **{**row._mapping, "seq": own.first_seq - 1})
    return origin


@damage("RECORD_LEAKED", may_differ=["record", "released_span"], space="")
def records_of_an_origin_that_is_no_session_s(world: World) -> str:
    (row,) = world.rows(T["record"], origin=world.origin("side"), seq=9)
    world.add(T["record"], **{**row._mapping, "origin": "f" * 32})
    return "f" * 32


@damage("SPAN_STRAY", may_differ=["released_span"], space="")
def spans_of_no_session(world: World) -> str:
    shown = world.origin("main")
    world.add(T["history_span"], owner_origin="f" * 32, first_seq=9, origin=shown, last_seq=9)
    return "f" * 32


@damage("MARK_STRAY", space="")
def a_mark_of_no_session(world: World) -> str:
    world.add(T["broken_group"], origin="f" * 32, seq=1)
    return "f" * 32


@damage("SPACE_ROOT_COUNT")
def a_root_too_many_counted(world: World) -> str:
    world.change(T["space"], {"space_id": "space"}, root_count=7)
    return "space"


@damage("SPACE_ROOT_COUNT", may_differ=["space"])
def a_space_without_its_row(world: World) -> str:
    world.drop(T["space"], space_id="space")
    return "space"


@damage("SPACE_TREE_POSITION", may_differ=TOLD)
def a_position_below_its_changes(world: World) -> str:
    world.change(T["space"], {"space_id": "space"}, tree_position=1)
    return "space"


@damage("SPACE_TREE_CHANGES", may_differ=TOLD)
def a_change_that_is_gone(world: World) -> str:
    world.drop(T["tree_change"], space_id="space", position=3)
    return "space"


@damage("SPACE_ROOT_INDEXES", may_differ=TOLD)
def roots_with_a_gap(world: World) -> str:
    world.change(T["topology_node"], node("lone"), index=5)
    return "space"


@damage("NODE_PARENT", left=True, along=["NODE_CHILD_COUNT"])
def a_node_whose_parent_is_gone(world: World) -> str:
    world.change(T["topology_node"], node("leaf"), parent_id="never")
    return "leaf"


@damage(
    "NODE_CYCLE",
    may_differ=["topology_node", *TOLD],
    along=["SPACE_ROOT_COUNT", "NODE_CHILD_COUNT", "SPACE_ROOT_INDEXES"],
)
def a_node_below_itself(world: World) -> str:
    world.change(T["topology_node"], node("main"), parent_id="leaf")
    return "main"


@damage("NODE_DEPTH", along=["NODE_DEPTH"])
def a_wrong_depth(world: World) -> str:
    world.change(T["topology_node"], node("side"), depth=4)
    return "side"


@damage("NODE_CHILD_COUNT")
def a_wrong_number_of_children(world: World) -> str:
    world.change(T["topology_node"], node("main"), child_count=2)
    return "main"


@damage("NODE_CHILD_INDEXES", may_differ=TOLD)
def children_with_a_gap(world: World) -> str:
    world.change(T["topology_node"], node("other"), index=4)
    return "main"


@damage("NODE_AWAITS", may_differ=TOLD)
def a_hidden_node_with_children(world: World) -> str:
    world.change(T["topology_node"], node("side"), awaits_content=True)
    return "side"


@damage("NODE_WAITS_LONG")
def a_node_that_no_sweep_took(world: World) -> str:
    world.space.forest.create("waits", "main", awaits_content=True)
    world.change(T["topology_node"], node("waits"), created_at=LONG_AGO)
    return "waits"


@damage("REF_DANGLING", may_differ=TOLD)
def a_ref_to_nowhere(world: World) -> str:
    world.add(T["node_ref"], **node("leaf"), target_id="never", created_at=LONG_AGO)
    return "leaf\N{RIGHTWARDS ARROW}never"


@damage("REF_ILLEGAL", may_differ=TOLD)
def a_ref_to_an_ancestor(world: World) -> str:
    world.add(T["node_ref"], **node("leaf"), target_id="main", created_at=LONG_AGO)
    return "leaf\N{RIGHTWARDS ARROW}main"


@damage("REF_ILLEGAL", may_differ=TOLD)
def a_ref_to_a_descendant(world: World) -> str:
    world.add(T["node_ref"], **node("main"), target_id="leaf", created_at=LONG_AGO)
    return "main\N{RIGHTWARDS ARROW}leaf"


@damage("REF_ILLEGAL", may_differ=TOLD)
def a_ref_to_itself(world: World) -> str:
    world.add(T["node_ref"], **node("leaf"), target_id="leaf", created_at=LONG_AGO)
    return "leaf\N{RIGHTWARDS ARROW}leaf"


@damage("REMOVAL_UNFINISHED")
def a_removal_that_no_sweep_finished(world: World) -> str:
    world.add(T["session_removal"], **session("never"), origin="e" * 32, requested_at=LONG_AGO)
    return "never"


@damage("DIAGNOSIS_TOTALS")
def a_wrong_total(world: World) -> str:
    diagnose_wrongly(world, step_count=7, total_token_count=1)
    return "d"


@damage("DIAGNOSIS_FEEDBACK")
def a_wrong_feedback(world: World) -> str:
    diagnose_wrongly(world, feedback=None)
    return "d"


@damage("STEP_STRAY")
def a_step_of_no_diagnosis(world: World) -> str:
    row = world.rows(T["agent_step"], **session("d"))[0]
    world.add(T["agent_step"], **{**row._mapping, "id": 1, "session_id": "never"})
    return "never"


@damage("TOOL_STRAY")
def a_tool_call_of_no_diagnosis(world: World) -> str:
    row = next(row for row in world.rows(T["tool_invocation"], **session("d")) if row.step_id is None)
    world.add(T["tool_invocation"], **{**row._mapping, "id": 1, "session_id": "never"})
    return "never"


@damage("FEEDBACK_STRAY")
def feedback_of_no_diagnosis(world: World) -> str:
    (row,) = world.rows(T["diagnosis_feedback"], **session("d"))
    world.add(T["diagnosis_feedback"], **{**row._mapping, "session_id": "never"})
    return "never"


@damage("TOOL_STEP")
def a_tool_call_without_its_step(world: World) -> str:
    row = next(row for row in world.rows(T["tool_invocation"], **session("d")) if row.step_id is not None)
    world.change(T["tool_invocation"], {"id": row.id}, step_id=None, updated_at=row.updated_at)
    return "d"


@damage("TOOL_STEP")
def a_tool_call_with_a_step_that_is_none(world: World) -> str:
    row = next(row for row in world.rows(T["tool_invocation"], **session("d")) if row.step_id is None)
    world.change(T["tool_invocation"], {"id": row.id}, step_id=5, updated_at=row.updated_at)
    return "d"
