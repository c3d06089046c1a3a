"""Whether the roots are counted right, refs are legal, and what is to be removed is removed."""

from collections.abc import Sequence
from functools import partial

from ramet_server.domain.clock import Clock
from ramet_server.domain.findings import Finding, Flaw, Page, Place
from tree_service.rules.values import ChangeKind, Ref, SessionRemoval
from tree_service.rules.verifying.nodes import GRACE, rank
from tree_service.rules.verifying.ports import Audit

_AT_ONCE = 500

ROOT_COUNT = "SPACE_ROOT_COUNT"
ROOT_INDEXES = "SPACE_ROOT_INDEXES"
TREE_POSITION = "SPACE_TREE_POSITION"
TREE_CHANGES = "SPACE_TREE_CHANGES"
DANGLING = "REF_DANGLING"
ILLEGAL = "REF_ILLEGAL"
REMOVAL = "REMOVAL_UNFINISHED"


class RootCheck:
    """Looks at the roots of one space."""

    def __init__(self, space: str, clock: Clock) -> None:
        self._space = space
        self._clock = clock

    def page(self, unit: Audit, after: Place) -> Page[Audit]:  # noqa: ARG002 - a space has but one row
        """Looks at them all."""
        return Page(self._look(unit))

    def again(self, unit: Audit, finding: Finding) -> Sequence[Flaw[Audit]]:  # noqa: ARG002 - as above
        """Looks at them all, with the space locked."""
        unit.lock()
        return self._look(unit)

    def _look(self, unit: Audit) -> list[Flaw[Audit]]:
        roots, told = unit.roots(), unit.root_count()
        flaws: list[Flaw[Audit]] = []
        if (told or 0) != roots.count or (told is None and unit.nodes("", 1)):
            found = "no row of the space" if told is None else f"root_count {told}"
            finding = Finding(ROOT_COUNT, self._space, self._space, found, f"{roots.count}")
            flaws.append(Flaw(finding, partial(self._count, roots.count)))
        if not roots.ranked:
            found = f"indexes {roots.first_index} to {roots.last_index} of {roots.count} roots"
            finding = Finding(ROOT_INDEXES, self._space, self._space, found, "from 0, each once")
            flaws.append(Flaw(finding, partial(rank, None)))
        return [*flaws, *self._changes(unit)]

    def _changes(self, unit: Audit) -> list[Flaw[Audit]]:
        kept = unit.changes()
        if kept is None:
            return []
        position = max(kept.position, kept.last)
        if kept.last > kept.position:
            found = f"tree_position {kept.position}, the last change at {kept.last}"
            finding = Finding(TREE_POSITION, self._space, self._space, found, f"{position}")
            return [Flaw(finding, lambda unit: unit.set_changes(position, position))]
        if kept.count != kept.position - kept.floor:
            found = f"{kept.count} changes from {kept.floor + 1} to {kept.position}"
            finding = Finding(TREE_CHANGES, self._space, self._space, found, "all of them")
            # Whoever watches from an earlier position is told to read the forest anew.
            return [Flaw(finding, lambda unit: unit.set_changes(position, position))]
        return []

    def _count(self, count: int, unit: Audit) -> None:
        if unit.root_count() is None:
            unit.make_space(count, self._clock.now())
        else:
            unit.set_root_count(count)


class RefCheck:
    """Looks at the references of one space."""

    def __init__(self, space: str) -> None:
        self._space = space

    def page(self, unit: Audit, after: Place) -> Page[Audit]:
        """Looks at the next references."""
        found = unit.refs((after[0], after[1]) if after else ("", ""), _AT_ONCE)
        last = (found[-1].node_id, found[-1].target_id) if len(found) == _AT_ONCE else None
        return Page(self._look(unit, found), last)

    def again(self, unit: Audit, finding: Finding) -> Sequence[Flaw[Audit]]:
        """Looks at one reference, with the space locked."""
        unit.lock()
        ref = Ref(*finding.id.split(_ARROW))
        return self._look(unit, [ref] if unit.ref(ref) else [])

    def _look(self, unit: Audit, refs: Sequence[Ref]) -> list[Flaw[Audit]]:
        nodes = unit.some({one for ref in refs for one in (ref.node_id, ref.target_id)})
        flaws: list[Flaw[Audit]] = []
        for ref in refs:
            node, target = nodes.get(ref.node_id), nodes.get(ref.target_id)
            if node is None or target is None:
                missing = ref.node_id if node is None else ref.target_id
                flaws.append(self._flaw(DANGLING, ref, f"{missing} is no node"))
            elif ref.node_id == ref.target_id:
                flaws.append(self._flaw(ILLEGAL, ref, "it refers to itself"))
            elif node.depth != target.depth:
                lower, upper = (node, target) if node.depth > target.depth else (target, node)
                if upper.node_id in unit.ancestor_ids(lower.node_id):
                    kind = "an ancestor" if upper is target else "a descendant"
                    flaws.append(self._flaw(ILLEGAL, ref, f"it refers to {kind}"))
        return flaws

    def _flaw(self, code: str, ref: Ref, found: str) -> Flaw[Audit]:
        finding = Finding(code, self._space, f"{ref.node_id}{_ARROW}{ref.target_id}", found, "no such reference")
        return Flaw(finding, partial(_remove, ref))


def _remove(ref: Ref, unit: Audit) -> None:
    unit.remove_ref(ref)
    if ref.node_id in unit.some([ref.node_id]):
        unit.tell(ChangeKind.UPDATED, [ref.node_id])


_ARROW = "\N{RIGHTWARDS ARROW}"
"""Between the two nodes of a reference; no id has it."""


class RemovalCheck:
    """Looks for sessions of one space that should long have gone with their nodes; the sweep itself finishes them."""

    def __init__(self, space: str, clock: Clock) -> None:
        self._space = space
        self._clock = clock

    def unfinished(self, unit: Audit, after_id: str) -> tuple[list[tuple[Finding, SessionRemoval]], str | None]:
        """Returns the next ones, and where it goes on."""
        found = unit.removals(self._clock.now() - GRACE, after_id, _AT_ONCE)
        told = [(self._finding(each), each) for each in found]
        return told, found[-1].session_id if len(found) == _AT_ONCE else None

    def _finding(self, removal: SessionRemoval) -> Finding:
        since = f"to be removed with its node since {removal.requested_at.isoformat()}"
        return Finding(REMOVAL, self._space, removal.session_id, since, "finished by the sweep")
