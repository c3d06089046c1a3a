"""Rules on the forest: create, move, delete, refer, configure."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from ramet.session.v1 import session_pb2 as s
from ramet.tree.v1 import tree_pb2 as t
from tests.model.base import EXPECTED, IDS, Base, expectation, free_nodes, known_nodes
from tests.model.forest import Config, Node
from tests.model.session_rules import labels, texts

maybe_nodes = st.none() | known_nodes
skill_lists = st.none() | st.lists(st.sampled_from(["search", "写"]), max_size=2)


def version_of(node: t.Node) -> list[object]:
    """Picks what a repeated write of a node must answer again."""
    return [node.id, node.version]


def config_message(prompt: str | None, skills: list[str] | None) -> t.Config:
    """Makes a config; None: not set."""
    return t.Config(system_prompt=prompt, skills=None if skills is None else t.Skills(names=skills))


class ForestRules(Base):
    """Changes the shape of the forest."""

    def visible(self, node_id: str) -> bool:
        """Tells whether readers see a node."""
        node = self.forest.nodes.get(node_id)
        return node is not None and (not node.awaits or node_id in self.sessions)

    def node(self, node_id: str) -> Node | None:
        """Returns a node that readers see."""
        return self.forest.nodes[node_id] if self.visible(node_id) else None

    def settle(self, node_id: str) -> None:
        """Makes a node that awaits content visible for good, if it is visible now, by writing its label anew."""
        node = self.node(node_id)
        if node is not None and node.awaits:
            got = self.client.get(self.tree.UpdateNode, t.UpdateNodeRequest(node_id=node_id, label=node.label))
            node.awaits, node.version = False, got.version

    def _faults(self, node: Node | None, expected: str) -> set[str]:
        return {"NODE_NOT_FOUND"} if node is None else {"STALE_VERSION"} if expected == "stale" else set()

    def _version(self, node: Node | None, expected: str) -> int | None:
        return expectation(expected, node.version if node is not None else 1)

    @initialize(
        above=st.lists(st.integers(0, 6), min_size=4, max_size=len(IDS)),
        refs=st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(IDS)), min_size=1, max_size=6, unique=True),
    )
    def first_nodes(self, above: list[int], refs: list[tuple[str, str]]) -> None:
        """Makes some nodes, each a root or below an earlier one, so that every run has something to work on."""
        for number, parent in enumerate(above):
            parent_id = IDS[parent] if parent < number else None
            request = t.CreateSessionRequest(session_id=IDS[number], parent_id=parent_id)
            got = self.client.get(self.tree.CreateSession, request)
            self.forest.add(Node(IDS[number], parent_id, version=got.version))
        for node_id, target_id in refs:
            if node_id in self.forest.nodes and target_id in self.forest.nodes:
                self.add_ref(node_id, target_id)
        self.check_forest()

    @rule(
        node_id=free_nodes,
        parent_id=maybe_nodes,
        label=labels,
        source=st.sampled_from(["", "main", "gone"]),
        config=st.none() | st.tuples(st.none() | texts, skill_lists),
        awaits=st.sampled_from([False, False, True]),
    )
    def create_node(
        self,
        node_id: str,
        parent_id: str | None,
        label: str,
        source: str,
        config: tuple[str | None, list[str] | None] | None,
        awaits: bool,
    ) -> None:
        """Creates a node, below a parent or as a root."""
        request = t.CreateSessionRequest(
            parent_id=parent_id,
            session_id=node_id,
            label=label,
            source_session_id=source,
            config=None if config is None else config_message(*config),
            awaits_content=awaits,
        )
        faults = {"NODE_EXISTS"} if node_id in self.forest.nodes else set()
        faults |= {"SESSION_EXISTS"} if awaits and node_id in self.sessions else set()
        faults |= {"NODE_NOT_FOUND"} if parent_id is not None and not self.visible(parent_id) else set()
        faults |= {"SESSION_EXISTS"} if awaits and node_id in self.sessions else set()
        got = self.change(self.tree.CreateSession, request, faults, version_of)
        if got is not None:
            if parent_id is not None:
                self.forest.nodes[parent_id].awaits = False
            node = Node(node_id, parent_id, label, source, awaits, got.version)
            if config is not None:
                node.config = Config(*config, version=1)
            self.forest.add(node)
            self.compare_node(node, got)
        self.check_forest()

    @rule(node_id=known_nodes, label=labels, expected=EXPECTED)
    def update_node(self, node_id: str, label: str, expected: str) -> None:
        """Changes a label."""
        node = self.node(node_id)
        request = t.UpdateNodeRequest(node_id=node_id, label=label, expected_version=self._version(node, expected))
        got = self.change(self.tree.UpdateNode, request, self._faults(node, expected), version_of)
        if node is not None and got is not None:
            self._take_version(node, got.version, changed=label != node.label)
            node.label, node.awaits = label, False
            self.compare_node(node, got)
        self.check_forest()

    @rule(node_id=known_nodes, parent_id=maybe_nodes, index=st.none() | st.integers(0, 3), expected=EXPECTED)
    def move_node(self, node_id: str, parent_id: str | None, index: int | None, expected: str) -> None:
        """Moves a node with all that stands below it."""
        node = self.node(node_id)
        version = self._version(node, expected)
        request = t.MoveNodeRequest(node_id=node_id, parent_id=parent_id, index=index, expected_version=version)
        faults = self._faults(node, expected)
        faults |= {"NODE_NOT_FOUND"} if parent_id is not None and not self.visible(parent_id) else set()
        if node is not None and parent_id in self.forest.subtree(node_id):
            faults |= {"MOVE_MAKES_CYCLE"}
        got = self.change(
            self.tree.MoveNode,
            request,
            faults,
            lambda answer: [
                *version_of(answer.node),
                sorted((ref.node_id, ref.target_id) for ref in answer.removed_refs),
            ],
        )
        loose: set[str] = set()
        if node is not None and got is not None:
            before = (node.parent, self.forest.index(node_id))
            removed = self.forest.move(node_id, parent_id, index)
            assert sorted((ref.node_id, ref.target_id) for ref in got.removed_refs) == sorted(removed)
            loose = {owner for owner, _ in removed} - {node_id}
            moved = (node.parent, self.forest.index(node_id)) != before
            self._take_version(node, got.node.version, changed=moved)
            node.awaits = False
            if parent_id is not None:
                self.forest.nodes[parent_id].awaits = False
            self.compare_node(node, got.node)
        self.check_forest(loose)

    @rule(moves=st.lists(st.tuples(known_nodes, maybe_nodes, st.none() | st.integers(0, 3)), min_size=2, max_size=5))
    def move_nodes(self, moves: list[tuple[str, str | None, int | None]]) -> None:
        """Moves one node after another."""
        for node_id, parent_id, index in moves:
            self.move_node(node_id, parent_id, index, "absent")

    @rule(refs=st.lists(st.tuples(known_nodes, known_nodes), min_size=2, max_size=5))
    def add_refs(self, refs: list[tuple[str, str]]) -> None:
        """Adds one cross reference after another."""
        for node_id, target_id in refs:
            self.add_ref(node_id, target_id)

    @rule(
        node_id=known_nodes,
        policy=st.sampled_from(t.DeletePolicy.values()),
        delete_sessions=st.booleans(),
        only_awaiting=st.sampled_from([False, False, False, True]),
        expected=EXPECTED,
    )
    def delete_node(
        self, node_id: str, policy: t.DeletePolicy.ValueType, delete_sessions: bool, only_awaiting: bool, expected: str
    ) -> None:
        """Deletes a node by a policy, or takes one back that no reader sees yet."""
        node = self.node(node_id)
        if only_awaiting:
            node = None if node is not None else self.forest.nodes.get(node_id)
        request = t.DeleteNodeRequest(
            node_id=node_id,
            policy=policy,
            delete_sessions=delete_sessions,
            only_awaiting=only_awaiting,
            expected_version=self._version(node, expected),
        )
        faults = self._faults(node, expected)
        refuses = policy in (t.DELETE_POLICY_UNSPECIFIED, t.DELETE_POLICY_REFUSE)
        if node is not None and refuses and self.forest.children[node_id]:
            faults |= {"NODE_HAS_CHILDREN"}
        got = self.change(
            self.tree.DeleteNode,
            request,
            faults,
            lambda answer: [answer.deleted_count, sorted(answer.deleted_node_ids)],
        )
        loose: set[str] = set()
        if node is not None and got is not None:
            gone = [node_id] if policy == t.DELETE_POLICY_REPARENT else self.forest.subtree(node_id)
            assert sorted(got.deleted_node_ids) == sorted(gone)
            assert got.deleted_count == len(gone)
            if policy == t.DELETE_POLICY_REPARENT:
                loose = set(self.forest.children[node_id]) | self.forest.splice_out(node_id)
            else:
                loose = self.forest.remove(gone)
            if delete_sessions:
                self._delete_sessions(gone)
        self.check_forest(loose)

    def _delete_sessions(self, gone: list[str]) -> None:
        """Deletes the sessions of deleted nodes as a caller does, whatever a sweep may have done of it."""
        for session_id in gone:
            self.client.attempt(self.storage.DeleteSession, s.DeleteSessionRequest(session_id=session_id))
            if session_id in self.sessions:
                del self.sessions[session_id]

    @rule(node_id=known_nodes, target_id=known_nodes)
    def add_ref(self, node_id: str, target_id: str) -> None:
        """Adds a cross reference."""
        node, target = self.node(node_id), self.node(target_id)
        faults = {"NODE_NOT_FOUND"} if node is None or target is None else set()
        if node_id == target_id or (
            node is not None and target is not None and self.forest.related(node_id, target_id)
        ):
            faults |= {"ILLEGAL_REF"}
        request = t.AddRefRequest(node_id=node_id, target_id=target_id)
        got = self.change(self.tree.AddRef, request, faults, version_of)
        if node is not None and target is not None and got is not None:
            new = target_id not in node.refs
            self._take_version(node, got.version, changed=new, may_stay=not new)
            node.refs += [target_id] if new else []
            node.awaits = target.awaits = False
            self.compare_node(node, got)
        self.check_forest()

    @rule(node_id=known_nodes, target_id=known_nodes)
    def remove_ref(self, node_id: str, target_id: str) -> None:
        """Removes a cross reference, which need not be there."""
        node = self.node(node_id)
        request = t.RemoveRefRequest(node_id=node_id, target_id=target_id)
        got = self.change(self.tree.RemoveRef, request, {"NODE_NOT_FOUND"} if node is None else set(), version_of)
        if node is not None and got is not None:
            there = target_id in node.refs
            self._take_version(node, got.version, changed=there, may_stay=not there)
            node.refs = [ref for ref in node.refs if ref != target_id]
            if there:
                node.awaits = False
            self.compare_node(node, got)
        self.check_forest()

    @rule(node_id=known_nodes, prompt=st.none() | texts, skills=skill_lists, expected=EXPECTED)
    def put_config(self, node_id: str, prompt: str | None, skills: list[str] | None, expected: str) -> None:
        """Replaces a frozen config."""
        node = self.node(node_id)
        request = t.PutConfigRequest(
            node_id=node_id,
            config=config_message(prompt, skills),
            expected_version=expectation(expected, node.config.version if node is not None else 0),
        )
        got = self.change(self.tree.PutConfig, request, self._faults(node, expected), lambda answer: [answer.version])
        if node is not None and got is not None:
            node.config = Config(prompt, skills, node.config.version + 1)
            node.awaits = False
            self.compare_config(node, got)
        self.check_forest()

    def _take_version(self, node: Node, version: int, *, changed: bool, may_stay: bool = False) -> None:
        """Checks that a version counts a change; whether a write of what is there counts is left open."""
        allowed = [node.version + 1] if changed else [node.version] if may_stay else [node.version, node.version + 1]
        assert version in allowed, f"version of {node.id}: {version}, expected one of {allowed}"
        node.version = version

    def compare_node(self, node: Node, got: t.Node, *, with_children: bool = True) -> None:
        """Compares a node with the model."""
        children = [child for child in self.forest.children[node.id] if self.visible(child)]
        parent = got.parent_id if got.HasField("parent_id") else None
        told: tuple[Any, ...] = (got.id, parent, got.depth, got.index, got.label, got.source_session_id, got.version)
        place = (self.forest.depth(node.id), self.forest.index(node.id))
        assert told == (node.id, node.parent, *place, node.label, node.source, node.version)
        assert list(got.refs) == node.refs
        assert got.child_count == len(children), node.id
        assert list(got.children) == (children if with_children else [])

    def compare_config(self, node: Node, got: t.Config) -> None:
        """Compares a config with the model."""
        prompt = got.system_prompt if got.HasField("system_prompt") else None
        skills = list(got.skills.names) if got.HasField("skills") else None
        assert (prompt, skills, got.version) == (node.config.system_prompt, node.config.skills, node.config.version)

    def check_forest(self, loose: set[str] = frozenset()) -> None:  # type: ignore[assignment]  # an empty set
        """Compares the whole forest with the model; of loose nodes the version may have moved on."""
        got = self.client.get(self.tree.GetTree, t.GetTreeRequest(page_size=10_000))
        expected = self.forest.ordered([node_id for node_id in self.forest.nodes if self.visible(node_id)])
        assert [entry.node.id for entry in got.entries] == expected
        for entry in got.entries:
            node = self.forest.nodes[entry.node.id]
            if node.id in loose:
                assert entry.node.version >= node.version
                node.version = entry.node.version
            self.compare_node(node, entry.node, with_children=False)
            session = self.sessions.get(node.id)
            assert entry.HasField("turn_count") == (session is not None)
            status = t.SESSION_STATUS_UNSPECIFIED
            if session is not None:
                assert entry.turn_count == session.turn_count
                status = t.SESSION_STATUS_ARCHIVED if session.archived else t.SESSION_STATUS_ACTIVE
            assert entry.status == status
