"""Lists of nodes: by id, by index, and up the line of ancestors."""

from collections.abc import Callable

from ramet_server.domain.call import Call
from ramet_server.domain.ids import check_id, check_optional_id
from ramet_server.domain.limits import Limits
from ramet_server.domain.paging import PageToken, Position, check_page_size, query_fingerprint
from ramet_server.domain.text import check_label
from tree_service.rules.ports import Store, UnitOfWork
from tree_service.rules.showing import show_page, visible
from tree_service.rules.values import Node, NodeFilter, NodePage, PageWish

_EXAMINED = 1000


class ListingRules:
    """Lists nodes in pages; a page ends early where it would hold too many bytes."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self._store = store
        self._limits = limits

    def by_id(self, call: Call, admits: NodeFilter, wish: PageWish) -> NodePage:
        """Lists the nodes of the space that the filter admits, by id; pages may be short."""
        check_label(admits.label_prefix, "filter.label_prefix", self._limits.max_label_characters)
        check_optional_id(admits.source_session_id, "filter.source_session_id")
        size = self._size(wish)
        fingerprint = query_fingerprint("ListNodes", call.space, admits.label_prefix, admits.source_session_id)
        token = PageToken.decode(wish.token, fingerprint, (str,))
        after = str(token.position[0]) if token else ""

        def read(unit: UnitOfWork) -> NodePage:
            nodes, goes_on = unit.nodes.by_id(admits, after, size, max(_EXAMINED, size))
            page = show_page(unit, nodes, self._limits.max_page_bytes)
            if len(page) < len(nodes):
                goes_on = page[-1].node.node_id
            return NodePage(tuple(page), PageToken(fingerprint, (goes_on,)).encode() if goes_on else "")

        return self._store.read(call, read)

    def roots(self, call: Call, wish: PageWish) -> NodePage:
        """Lists the roots by index."""

        def find(unit: UnitOfWork, after: int, limit: int) -> list[Node]:
            return unit.nodes.children(None, after, limit)

        return self._by_index(call, wish, query_fingerprint("ListRoots", call.space), find)

    def children(self, call: Call, node_id: str, wish: PageWish) -> NodePage:
        """Lists the children of a node by index."""
        check_id(node_id, "node_id")

        def find(unit: UnitOfWork, after: int, limit: int) -> list[Node]:
            visible(unit, node_id)
            return unit.nodes.children(node_id, after, limit)

        return self._by_index(call, wish, query_fingerprint("ListChildren", call.space, node_id), find)

    def siblings(self, call: Call, node_id: str, wish: PageWish) -> NodePage:
        """Lists the other children of a node's parent by index; a root has none."""
        check_id(node_id, "node_id")

        def find(unit: UnitOfWork, after: int, limit: int) -> list[Node]:
            parent_id = visible(unit, node_id).parent_id
            return [] if parent_id is None else unit.nodes.children(parent_id, after, limit, without=node_id)

        return self._by_index(call, wish, query_fingerprint("GetSiblings", call.space, node_id), find)

    def ancestors(self, call: Call, node_id: str, wish: PageWish) -> NodePage:
        """Lists the ancestors of a node, parent first."""
        check_id(node_id, "node_id")
        size = check_page_size(wish.size, self._limits.default_tree_page_size, self._limits.max_tree_page_size)
        fingerprint = query_fingerprint("GetAncestors", call.space, node_id)
        token = PageToken.decode(wish.token, fingerprint, (int,))
        below_depth = _number(token.position[0]) if token else None

        def read(unit: UnitOfWork) -> NodePage:
            visible(unit, node_id)
            found = unit.lines.ancestors(node_id, below_depth, size + 1)
            return self._page(unit, found, size, fingerprint, lambda node: node.depth)

        return self._store.read(call, read)

    def _by_index(
        self, call: Call, wish: PageWish, fingerprint: str, find: Callable[[UnitOfWork, int, int], list[Node]]
    ) -> NodePage:
        size = self._size(wish)
        token = PageToken.decode(wish.token, fingerprint, (int,))
        after = _number(token.position[0]) if token else -1

        def read(unit: UnitOfWork) -> NodePage:
            return self._page(unit, find(unit, after, size + 1), size, fingerprint, lambda node: node.index)

        return self._store.read(call, read)

    def _page(
        self, unit: UnitOfWork, found: list[Node], size: int, fingerprint: str, position: Callable[[Node], Position]
    ) -> NodePage:
        """Makes a page of the first nodes; ``found`` holds one more than ``size`` where there are more."""
        page = show_page(unit, found[:size], self._limits.max_page_bytes)
        goes_on = len(page) < len(found)
        return NodePage(tuple(page), PageToken(fingerprint, (position(page[-1].node),)).encode() if goes_on else "")

    def _size(self, wish: PageWish) -> int:
        return check_page_size(wish.size, self._limits.default_page_size, self._limits.max_page_size)


def _number(part: Position) -> int:
    return part if isinstance(part, int) else -1
