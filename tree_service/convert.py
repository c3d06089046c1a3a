"""Messages to values, and values to messages."""

from collections.abc import Iterable
from copy import deepcopy
from typing import Literal, Protocol

from google.protobuf.unknown_fields import UnknownFieldSet

from ramet.tree.v1 import tree_pb2 as pb
from ramet_server.domain.errors import InvalidField
from ramet_server.domain.idempotency import Mutation, body_hash
from ramet_server.domain.ids import check_optional_id
from ramet_server.domain.limits import Limits
from tree_service.rules.values import (
    ChangeKind,
    Config,
    Deleted,
    DeletePolicy,
    Deletion,
    Move,
    Moved,
    NewNode,
    NodeFilter,
    NodePage,
    ShownNode,
    TreeChange,
    TreeEntry,
    TreePage,
)
from tree_service.rules.watching import News

_POLICIES = {
    pb.DELETE_POLICY_UNSPECIFIED: DeletePolicy.REFUSE,
    pb.DELETE_POLICY_REFUSE: DeletePolicy.REFUSE,
    pb.DELETE_POLICY_CASCADE: DeletePolicy.CASCADE,
    pb.DELETE_POLICY_REPARENT: DeletePolicy.REPARENT,
}

_KINDS = {
    ChangeKind.CREATED: pb.TREE_CHANGE_KIND_CREATED,
    ChangeKind.UPDATED: pb.TREE_CHANGE_KIND_UPDATED,
    ChangeKind.MOVED: pb.TREE_CHANGE_KIND_MOVED,
    ChangeKind.DELETED: pb.TREE_CHANGE_KIND_DELETED,
}

_STATUSES = {"ACTIVE": pb.SESSION_STATUS_ACTIVE, "ARCHIVED": pb.SESSION_STATUS_ARCHIVED}


class _Mutating(Protocol):
    """A request that changes something."""

    request_id: str

    def SerializeToString(self, *, deterministic: bool = ...) -> bytes: ...
    def ClearField(self, field_name: Literal["request_id"]) -> None: ...


def mutation(method: str, request: _Mutating) -> Mutation:
    """Returns what tells this request from others: its id, and a hash of all else in it."""
    request_id = check_optional_id(request.request_id, "request_id")
    body = deepcopy(request)
    body.ClearField("request_id")
    return Mutation(request_id, method, body_hash(method, body.SerializeToString(deterministic=True)))


def new_node(request: pb.CreateSessionRequest) -> NewNode:
    """Reads what a node is to be."""
    return NewNode(
        parent_id=request.parent_id if request.HasField("parent_id") else None,
        node_id=request.session_id,
        label=request.label,
        source_session_id=request.source_session_id,
        config=config(request.config) if request.HasField("config") else None,
        awaits_content=request.awaits_content,
    )


def config(message: pb.Config) -> Config:
    """Reads a config; its version is for output only."""
    return Config(
        system_prompt=message.system_prompt if message.HasField("system_prompt") else None,
        skills=tuple(message.skills.names) if message.HasField("skills") else None,
    )


def node_filter(request: pb.ListNodesRequest) -> NodeFilter:
    """Reads a filter; a condition that this server does not know is refused, for it would admit too much."""
    if len(UnknownFieldSet(request.filter)):
        raise InvalidField("filter holds a condition that this server does not know.", field="filter")
    return NodeFilter(request.filter.label_prefix, request.filter.source_session_id)


def move(request: pb.MoveNodeRequest) -> Move:
    """Reads where a node is to go."""
    return Move(
        node_id=request.node_id,
        parent_id=request.parent_id if request.HasField("parent_id") else None,
        index=request.index if request.HasField("index") else None,
        expected_version=request.expected_version if request.HasField("expected_version") else None,
    )


def deletion(request: pb.DeleteNodeRequest) -> Deletion:
    """Reads what is to be deleted; an unknown policy is refused."""
    policy = _POLICIES.get(request.policy)
    if policy is None:
        raise InvalidField("policy is one that this server does not know.", field="policy")
    return Deletion(
        node_id=request.node_id,
        policy=policy,
        delete_sessions=request.delete_sessions,
        expected_version=request.expected_version if request.HasField("expected_version") else None,
        only_awaiting=request.only_awaiting,
    )


def node_message(shown: ShownNode) -> pb.Node:
    """Writes a node."""
    node = shown.node
    message = pb.Node(
        id=node.node_id,
        parent_id=node.parent_id,
        children=shown.children,
        refs=shown.refs,
        depth=node.depth,
        index=node.index,
        label=node.label,
        source_session_id=node.source_session_id or "",
        child_count=node.child_count,
        version=node.version,
    )
    message.created_at.FromDatetime(node.created_at)
    message.updated_at.FromDatetime(node.updated_at)
    return message


def node_messages(page: NodePage) -> Iterable[pb.Node]:
    """Writes the nodes of a page."""
    return map(node_message, page.nodes)


def tree_message(page: TreePage) -> pb.GetTreeResponse:
    """Writes a page of the forest."""
    return pb.GetTreeResponse(
        entries=map(_entry_message, page.entries), next_page_token=page.next_token, position=page.position
    )


def _entry_message(entry: TreeEntry) -> pb.TreeEntry:
    message = pb.TreeEntry(node=node_message(entry.shown))
    if entry.session is not None:
        message.status = _STATUSES[entry.session.status]
        message.turn_count = entry.session.turn_count
    return message


def news_message(news: News) -> pb.WatchTreeResponse:
    """Writes what a watcher is told."""
    return pb.WatchTreeResponse(changes=map(_change_message, news.changes), through_position=news.position)


def _change_message(change: TreeChange) -> pb.TreeChange:
    message = pb.TreeChange(position=change.position, kind=_KINDS[change.kind], node_id=change.node_id)
    message.changed_at.FromDatetime(change.changed_at)
    return message


def moved_message(moved: Moved) -> pb.MoveNodeResponse:
    """Writes what a move did."""
    return pb.MoveNodeResponse(
        node=node_message(moved.shown),
        removed_refs=[pb.Ref(node_id=ref.node_id, target_id=ref.target_id) for ref in moved.removed_refs],
    )


def deleted_message(deleted: Deleted) -> pb.DeleteNodeResponse:
    """Writes what a deletion did."""
    return pb.DeleteNodeResponse(deleted_count=deleted.count, deleted_node_ids=deleted.node_ids)


def config_message(stored: Config) -> pb.Config:
    """Writes a config."""
    return pb.Config(
        system_prompt=stored.system_prompt,
        skills=None if stored.skills is None else pb.Skills(names=stored.skills),
        version=stored.version,
    )


def limits_message(limits: Limits) -> pb.Limits:
    """Writes the limits that hold for the forest."""
    return pb.Limits(
        max_page_size=limits.max_page_size,
        max_tree_page_size=limits.max_tree_page_size,
        max_system_prompt_bytes=limits.max_slot_bytes,
        request_id_hours=limits.request_id_hours,
        await_content_seconds=limits.await_content_seconds,
    )
