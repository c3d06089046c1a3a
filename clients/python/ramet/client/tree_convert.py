"""Messages of ramet.tree.v1 to values, and back."""

from ramet.client import tree_values as values
from ramet.client.arguments import build, choice, of_kind
from ramet.client.convert import time_in
from ramet.client.tree_values import DeletePolicy
from ramet.client.values import SessionStatus
from ramet.tree.v1 import tree_pb2 as pb

_POLICIES = {
    DeletePolicy.REFUSE: pb.DELETE_POLICY_REFUSE,
    DeletePolicy.CASCADE: pb.DELETE_POLICY_CASCADE,
    DeletePolicy.REPARENT: pb.DELETE_POLICY_REPARENT,
}
_STATUSES_BACK = {
    pb.SESSION_STATUS_UNSPECIFIED: None,
    pb.SESSION_STATUS_ACTIVE: SessionStatus.ACTIVE,
    pb.SESSION_STATUS_ARCHIVED: SessionStatus.ARCHIVED,
}


_CHANGE_KINDS_BACK = {
    pb.TREE_CHANGE_KIND_CREATED: values.TreeChangeKind.CREATED,
    pb.TREE_CHANGE_KIND_UPDATED: values.TreeChangeKind.UPDATED,
    pb.TREE_CHANGE_KIND_MOVED: values.TreeChangeKind.MOVED,
    pb.TREE_CHANGE_KIND_DELETED: values.TreeChangeKind.DELETED,
}


def policy_out(policy: DeletePolicy) -> pb.DeletePolicy.ValueType:
    """Makes the number of a policy; a plain ``"cascade"`` serves as well."""
    return _POLICIES[choice(DeletePolicy, policy, "policy")]


def node_in(message: pb.Node) -> values.Node:
    """Reads a node."""
    return values.Node(
        id=message.id,
        parent_id=message.parent_id if message.HasField("parent_id") else None,
        children=tuple(message.children),
        refs=tuple(message.refs),
        depth=message.depth,
        index=message.index,
        label=message.label,
        source_session_id=message.source_session_id or None,
        child_count=message.child_count,
        version=message.version,
        created_at=time_in(message.created_at),
        updated_at=time_in(message.updated_at),
    )


def entry_in(message: pb.TreeEntry) -> values.TreeEntry:
    """Reads an entry of the forest."""
    return values.TreeEntry(
        node=node_in(message.node),
        status=_STATUSES_BACK[message.status],
        turn_count=message.turn_count if message.HasField("turn_count") else None,
    )


def news_in(message: pb.WatchTreeResponse) -> values.TreeNews:
    """Reads what a watch tells."""
    return values.TreeNews(
        changes=tuple(
            values.TreeChange(
                position=change.position,
                kind=_CHANGE_KINDS_BACK.get(change.kind),
                node_id=change.node_id,
                changed_at=time_in(change.changed_at),
            )
            for change in message.changes
        ),
        through_position=message.through_position,
    )


def config_out(config: values.Config) -> pb.Config:
    """Makes a config; skills that are not set stay absent."""
    of_kind(values.Config, config, "config")
    skills = None if config.skills is None else build(pb.Skills, names=config.skills)
    return build(pb.Config, system_prompt=config.system_prompt, skills=skills)


def config_in(message: pb.Config) -> values.Config:
    """Reads a config."""
    return values.Config(
        system_prompt=message.system_prompt if message.HasField("system_prompt") else None,
        skills=tuple(message.skills.names) if message.HasField("skills") else None,
        version=message.version,
    )


def moved_in(message: pb.MoveNodeResponse) -> values.MovedNode:
    """Reads what a move did."""
    return values.MovedNode(
        node=node_in(message.node),
        removed_refs=tuple(values.Ref(ref.node_id, ref.target_id) for ref in message.removed_refs),
    )


def server_info_in(message: pb.GetServerInfoResponse) -> values.TreeServerInfo:
    """Reads version and limits."""
    limits = message.limits
    return values.TreeServerInfo(
        version=message.version,
        schema_revision=message.schema_revision,
        limits=values.TreeLimits(
            max_page_size=limits.max_page_size,
            max_tree_page_size=limits.max_tree_page_size,
            max_system_prompt_bytes=limits.max_system_prompt_bytes,
            request_id_hours=limits.request_id_hours,
            await_content_seconds=limits.await_content_seconds,
        ),
    )
