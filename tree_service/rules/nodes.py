"""Single nodes: create, get, label."""

from dataclasses import replace

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import InvalidField, NodeExists, SessionExists
from ramet_server.domain.idempotency import Mutation, Outcome, once
from ramet_server.domain.ids import check_id, check_optional_id, new_id
from ramet_server.domain.limits import Limits
from ramet_server.domain.text import check_label
from tree_service.rules.configs import check_config
from tree_service.rules.ports import Store, UnitOfWork
from tree_service.rules.ranks import enlarge
from tree_service.rules.showing import (
    check_expected,
    check_version,
    lock_space,
    remember,
    settled,
    show,
    show_again,
    show_stored,
    visible,
)
from tree_service.rules.values import ChangeKind, NewNode, Node, ShownNode


class NodeRules:
    """Creates, reads and labels nodes."""

    def __init__(self, store: Store, limits: Limits, clock: Clock) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock

    def create(self, call: Call, mutation: Mutation, new: NewNode) -> ShownNode:
        """Creates a node as the last child of its parent, or as the last root.

        Raises NodeNotFound for an unknown parent, NodeExists for a taken id, even where its node is hidden, and
        SessionExists for a node that awaits a session which is there. The id of
        a deleted node whose session is still to be deleted is taken: a new node would show the old session, and what
        was written to that would go with it.
        """
        if new.parent_id is not None:
            check_id(new.parent_id, "parent_id")
        node_id = check_optional_id(new.node_id, "session_id") or new_id()
        check_label(new.label, "label", self._limits.max_label_characters)
        source = check_optional_id(new.source_session_id, "source_session_id")
        config = None if new.config is None else replace(check_config(new.config, self._limits), version=1)

        def work(unit: UnitOfWork) -> tuple[ShownNode, Outcome]:
            if new.parent_id is None:
                index, depth = unit.space.lock(make=True) or 0, 0
            else:
                lock_space(unit, "parent_id")
                parent = settled(unit, visible(unit, new.parent_id, "parent_id"))
                index, depth = parent.child_count, parent.depth + 1
            if unit.nodes.taken(node_id):
                raise NodeExists("This session_id is taken, or its session is being deleted.", field="session_id")
            now = self._clock.now()
            node = Node(
                node_id=node_id,
                parent_id=new.parent_id,
                depth=depth,
                index=index,
                child_count=0,
                label=new.label,
                source_session_id=source,
                awaits_content=new.awaits_content,
                version=1,
                created_at=now,
                updated_at=now,
            )
            unit.nodes.insert(node, config)
            # This one is what its maker wants, and not one that was swept before.
            unit.swept.forget(node_id)
            if new.awaits_content and unit.nodes.find(node_id) is not None:
                # It would be seen at once, whatever becomes of the content that its maker has still to write.
                raise SessionExists("A session with this session_id exists already.", field="session_id")
            enlarge(unit, new.parent_id, 1)
            if not new.awaits_content:
                unit.changes.tell(ChangeKind.CREATED, [node_id])
            shown = ShownNode(node)
            return shown, remember(shown)

        return once(self._store, call, mutation, work, show_again)

    def get(self, call: Call, node_id: str) -> ShownNode:
        """Returns a node with its refs and the first of its children."""
        check_id(node_id, "node_id")
        return self._store.read(call, lambda unit: show(unit, visible(unit, node_id)))

    def relabel(
        self, call: Call, mutation: Mutation, node_id: str, label: str | None, expected_version: int | None
    ) -> ShownNode:
        """Gives a node another label; the label is required, and may be empty."""
        check_id(node_id, "node_id")
        check_expected(expected_version)
        if label is None:
            raise InvalidField("label is required; it may be empty.", field="label")
        new_label = check_label(label, "label", self._limits.max_label_characters)

        def work(unit: UnitOfWork) -> tuple[ShownNode, Outcome]:
            lock_space(unit)
            node = visible(unit, node_id)
            check_version(node, expected_version)
            node = settled(unit, node)
            unit.nodes.save(replace(node, label=new_label, version=node.version + 1, updated_at=self._clock.now()))
            unit.changes.tell(ChangeKind.UPDATED, [node_id])
            shown = show_stored(unit, node_id)
            return shown, remember(shown)

        return once(self._store, call, mutation, work, show_again)
