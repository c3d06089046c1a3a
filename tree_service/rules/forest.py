"""The forest in one order: by depth, parent, index, so that parents come before their children."""

from collections.abc import Callable

from ramet_server.domain.call import Call
from ramet_server.domain.errors import Aborted, Unavailable
from ramet_server.domain.ids import check_id
from ramet_server.domain.limits import Limits
from ramet_server.domain.paging import PageToken, check_page_size, query_fingerprint
from tree_service.rules.ports import Store, UnitOfWork
from tree_service.rules.showing import settle_arrived, show_page, visible
from tree_service.rules.values import ForestKey, ForestRow, Node, NodePage, PageWish, TreeEntry, TreePage

_Find = Callable[[UnitOfWork, ForestKey | None, int], list[ForestRow]]


class ForestRules:
    """Lists the forest, and what stands below a node."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self._store = store
        self._limits = limits

    def tree(self, call: Call, node_id: str | None, wish: PageWish) -> TreePage:
        """Lists the forest, or a node and everything below it."""
        if node_id is None:
            return self._settled_page(call, wish, query_fingerprint("GetTree", call.space), _whole)
        check_id(node_id, "node_id")

        def find(unit: UnitOfWork, after: ForestKey | None, limit: int) -> list[ForestRow]:
            visible(unit, node_id)
            return unit.lines.subtree(node_id, after, limit)

        return self._settled_page(call, wish, query_fingerprint("GetTree", call.space, node_id), find)

    def descendants(self, call: Call, node_id: str, wish: PageWish) -> NodePage:
        """Lists everything below a node."""
        check_id(node_id, "node_id")

        def find(unit: UnitOfWork, after: ForestKey | None, limit: int) -> list[ForestRow]:
            # In this order the node itself stands before all that is below it.
            return unit.lines.subtree(node_id, after or _key(visible(unit, node_id)), limit)

        page = self._page(call, wish, query_fingerprint("ListDescendants", call.space, node_id), find)
        return NodePage(tuple(entry.shown for entry in page.entries), page.next_token)

    def _settled_page(self, call: Call, wish: PageWish, fingerprint: str, find: _Find) -> TreePage:
        """Returns a page with a position from which a watch can go on.

        What it shows must not hide again, as a node may whose session is deleted: no change would tell of that. So
        the first to read a node whose content has come settles it.
        """
        while True:
            page = self._page(call, wish, fingerprint, find)
            if not page.arrived:
                return page
            try:
                if self._store.write(call, lambda unit, page=page: settle_arrived(unit, page.arrived)):  # type: ignore[misc]  # bound now
                    return page
            except (Unavailable, Aborted):
                # A database that takes no writes now can be read all the same.
                return page

    def _page(self, call: Call, wish: PageWish, fingerprint: str, find: _Find) -> TreePage:
        size = check_page_size(wish.size, self._limits.default_tree_page_size, self._limits.max_tree_page_size)
        after = _after(PageToken.decode(wish.token, fingerprint, (int, str, int)))

        def read(unit: UnitOfWork) -> TreePage:
            rows = _fill(unit, after, size + 1, find)
            page = show_page(unit, [row.node for row in rows[:size]], self._limits.max_page_bytes)
            entries = tuple(TreeEntry(shown, row.session) for shown, row in zip(page, rows, strict=False))
            arrived = tuple(shown.node.node_id for shown in page if shown.node.awaits_content)
            token = ""
            if len(page) < len(rows):
                key = _key(page[-1].node)
                token = PageToken(fingerprint, (key.depth, key.parent_id or "", key.index)).encode()
            return TreePage(entries, token, unit.changes.extent().position, arrived)

        return self._store.read(call, read)


def _whole(unit: UnitOfWork, after: ForestKey | None, limit: int) -> list[ForestRow]:
    return unit.lines.forest(after, limit)


def _fill(unit: UnitOfWork, after: ForestKey | None, limit: int, find: _Find) -> list[ForestRow]:
    """Reads on until there are so many rows that a reader may see, or no more."""
    shown: list[ForestRow] = []
    while True:
        rows = find(unit, after, limit)
        shown += [row for row in rows if not row.hidden]
        if len(rows) < limit or len(shown) >= limit:
            return shown[:limit]
        after = _key(rows[-1].node)


def _key(node: Node) -> ForestKey:
    return ForestKey(node.depth, node.parent_id, node.index)


def _after(token: PageToken | None) -> ForestKey | None:
    if token is None:
        return None
    depth, parent_id, index = token.position
    # The kinds were checked as the token was decoded.
    assert isinstance(depth, int) and isinstance(parent_id, str) and isinstance(index, int)  # noqa: S101, PT018
    return ForestKey(depth, parent_id or None, index)
