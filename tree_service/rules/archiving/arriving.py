"""Nodes as an archive brings them: each as the last child of its parent, and as it was otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ramet_server.domain.call import Call
from ramet_server.domain.errors import IllegalRef, InvalidField, NodeNotFound
from ramet_server.domain.ids import check_id
from ramet_server.domain.limits import Limits
from ramet_server.domain.text import check_label
from tree_service.rules.archiving.leaving import LeavingNode
from tree_service.rules.archiving.ports import ArchiveStore, ArchiveUnit, DatedRef
from tree_service.rules.configs import check_config
from tree_service.rules.ranks import enlarge
from tree_service.rules.refs import in_one_line
from tree_service.rules.showing import settled, visible
from tree_service.rules.values import ChangeKind, Node, Ref

_FIELDS = ("parent_id", "label", "source_session_id", "version")
_TIMES = ("created_at", "updated_at")

_GREATEST = (1 << 63) - 1


@dataclass(frozen=True)
class Trouble:
    """What an archive brought that does not fit what is there."""

    place: int
    """Of the node or reference in its batch; those before it were brought."""
    reason: str


class ArrivingNodes:
    """The rules of bringing nodes; every method is a transaction."""

    def __init__(self, store: ArchiveStore, limits: Limits) -> None:
        self._store = store
        self._limits = limits

    def check(self, arriving: LeavingNode) -> None:
        """Raises InvalidArgument for a node that no server could have made."""
        node, config = arriving.node, arriving.config
        check_id(node.node_id, "id")
        if node.parent_id is not None:
            check_id(node.parent_id, "parent_id")
        if node.source_session_id is not None:
            check_id(node.source_session_id, "source_session_id")
        check_label(node.label, "label", self._limits.max_label_characters)
        check_config(config, self._limits)
        if not 1 <= node.version <= _GREATEST or not 0 <= config.version <= _GREATEST:
            raise InvalidField("version is no such number.", field="version")

    def bring(self, call: Call, batch: Sequence[LeavingNode], *, dated: bool = True) -> tuple[int, Trouble | None]:
        """Stores checked nodes; those that are there and equal stay. Returns how many are new, and what was wrong.

        What comes before the trouble is stored. Times do not count where they are not ``dated``.
        """

        def work(unit: ArchiveUnit) -> tuple[int, Trouble | None]:
            unit.space.lock(make=True)
            made: list[str] = []
            trouble = None
            for place, each in enumerate(batch):
                reason, new = _bring(unit, each, dated)
                if reason is not None:
                    trouble = Trouble(place, reason)
                    break
                if new:
                    made.append(each.node.node_id)
            unit.changes.tell(ChangeKind.CREATED, made)
            return len(made), trouble

        return self._store.write(call, work)

    def bring_refs(self, call: Call, batch: Sequence[DatedRef]) -> tuple[int, Trouble | None]:
        """Stores references, as ``bring`` stores nodes."""

        def work(unit: ArchiveUnit) -> tuple[int, Trouble | None]:
            unit.space.lock(make=True)
            made: list[str] = []
            trouble = None
            for place, each in enumerate(batch):
                try:
                    if _bring_ref(unit, each):
                        made.append(each.node_id)
                except (IllegalRef, NodeNotFound) as error:
                    trouble = Trouble(place, error.message)
                    break
            unit.changes.tell(ChangeKind.UPDATED, list(dict.fromkeys(made)))
            return len(made), trouble

        return self._store.write(call, work)


def _bring(unit: ArchiveUnit, arriving: LeavingNode, dated: bool) -> tuple[str | None, bool]:
    node = arriving.node
    there = unit.nodes.find_any(node.node_id)
    if there is not None:
        config = unit.archives.configs([node.node_id])[node.node_id]
        differs = _difference(there, arriving, dated) or (None if config == arriving.config else "config")
        return (f"a node with this id is there, with another {differs}" if differs else None), False
    if unit.nodes.taken(node.node_id):
        return "the session of a deleted node with this id is still being deleted; run `ramet-server sweep`", False
    if node.parent_id is None:
        # The lock tells the number as it is by now.
        index, depth = unit.space.lock() or 0, 0
    else:
        parent = unit.nodes.find(node.parent_id)
        if parent is None:
            return "its parent_id names no node that came before", False
        parent = settled(unit, parent)
        index, depth = parent.child_count, parent.depth + 1
    unit.nodes.insert(replace(node, depth=depth, index=index, child_count=0, awaits_content=False), arriving.config)
    enlarge(unit, node.parent_id, 1)
    return None, True


def _difference(there: Node, arriving: LeavingNode, dated: bool) -> str | None:
    """Names what differs; where a node stands among its siblings depends on what else the space holds."""
    names = _FIELDS + (_TIMES if dated else ())
    if arriving.cut:
        names = tuple(name for name in names if name != "parent_id")
    return next((name for name in names if getattr(there, name) != getattr(arriving.node, name)), None)


def _bring_ref(unit: ArchiveUnit, ref: DatedRef) -> bool:
    if ref.node_id == ref.target_id:
        raise IllegalRef("A node does not refer to itself.")
    node, target = visible(unit, ref.node_id, "node"), visible(unit, ref.target_id, "id")
    if unit.refs.has(Ref(ref.node_id, ref.target_id)):
        return False
    if in_one_line(unit, node, target):
        raise IllegalRef("A node does not refer to an ancestor or a descendant.")
    settled(unit, node)
    settled(unit, target)
    unit.archives.add_ref(ref)
    return True
