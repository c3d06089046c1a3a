"""Nodes as an archive takes them: those that a reader may see, parents first, siblings in their order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from tree_service.rules.archiving.ports import ArchiveUnit, DatedRef
from tree_service.rules.values import Config, ForestKey, ForestRow, Node

_PAGE = 1000


@dataclass(frozen=True)
class LeavingNode:
    """A node and its frozen config. Its place among its siblings is that of its line."""

    node: Node
    config: Config
    cut: bool = False
    """Whether it is a root only because its archive does not go further up."""


class LeavingNodes:
    """Reads the forest of one space within one unit of work, so as of one moment."""

    def __init__(self, unit: ArchiveUnit) -> None:
        self._unit = unit

    def forest(self) -> Iterator[LeavingNode]:
        """Yields all nodes by depth, parent, index."""
        after: ForestKey | None = None
        while page := self._unit.lines.forest(after, _PAGE):
            yield from self._with_configs(page)
            last = page[-1].node
            after = ForestKey(last.depth, last.parent_id, last.index)

    def ids_below(self, node_id: str) -> list[str]:
        """Returns the ids of a node and of all below it by depth, parent, index; empty where no reader sees it."""
        if not self._unit.archives.nodes([node_id]):
            return []
        return [node_id, *self._unit.lines.descendant_ids(node_id)]

    def cut_out(self, node_ids: Sequence[str]) -> Iterator[LeavingNode]:
        """Yields nodes by id, the first of them as a root; those that no reader sees are passed over."""
        for start in range(0, len(node_ids), _PAGE):
            ids = node_ids[start : start + _PAGE]
            found, configs = self._unit.archives.nodes(ids), self._unit.archives.configs(ids)
            for each in ids:
                if each not in found:
                    continue
                if each == node_ids[0]:
                    yield LeavingNode(replace(found[each], parent_id=None), configs[each], cut=True)
                else:
                    yield LeavingNode(found[each], configs[each])

    def refs(self) -> Iterator[Sequence[DatedRef]]:
        """Yields the references of each node that has some, by id of the node."""
        after = ""
        while ids := self._unit.archives.referring(after, _PAGE):
            yield from _by_node(self._unit.archives.refs(ids))
            after = ids[-1]

    def refs_of(self, node_ids: Sequence[str]) -> Iterator[Sequence[DatedRef]]:
        """Yields the references of each of these nodes that has some, by id of the node."""
        ordered = sorted(node_ids)
        for start in range(0, len(ordered), _PAGE):
            yield from _by_node(self._unit.archives.refs(ordered[start : start + _PAGE]))

    def _with_configs(self, page: Sequence[ForestRow]) -> Iterator[LeavingNode]:
        configs = self._unit.archives.configs([row.node.node_id for row in page])
        for row in page:
            yield LeavingNode(row.node, configs[row.node.node_id])


def _by_node(refs: Sequence[DatedRef]) -> Iterator[Sequence[DatedRef]]:
    for _, some in groupby(refs, key=lambda ref: ref.node_id):
        yield tuple(some)
