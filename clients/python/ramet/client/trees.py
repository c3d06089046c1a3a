"""The contract SessionTree from Python: one method per RPC, and iterators that follow the pages."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeVar

import grpc
from google.protobuf.message import Message

from ramet.client import tree_convert as convert
from ramet.client.arguments import build
from ramet.client.calls import PATIENCE_S, Caller, new_request_id
from ramet.client.tree_values import (
    Config,
    DeletedNodes,
    DeletePolicy,
    MovedNode,
    Node,
    NodePage,
    TreeEntry,
    TreeNews,
    TreePage,
    TreeServerInfo,
)
from ramet.tree.v1 import tree_pb2 as pb
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub

__all__ = ["SessionTreeClient"]


class SessionTreeClient:
    """The forest: which session stands under which, how they refer to each other, and each node's frozen config.

    Every method raises a :class:`RametError`. Every write takes a ``request_id``, as those of
    :class:`SessionStorageClient` do.
    """

    def __init__(self, channel: grpc.aio.Channel, caller: Caller) -> None:
        self._stub = SessionTreeStub(channel)
        self._caller = caller

    async def create_session(
        self,
        session_id: str | None = None,
        *,
        parent_id: str | None = None,
        label: str = "",
        source_session_id: str | None = None,
        config: Config | None = None,
        awaits_content: bool = False,
        request_id: str | None = None,
    ) -> Node:
        """Creates a node: a root without ``parent_id``, else the last child of its parent.

        This alone makes no session: see :class:`Orchestrator`. With ``awaits_content`` no reader sees the node until
        its session exists.
        """
        request = build(
            pb.CreateSessionRequest,
            parent_id=parent_id,
            session_id=session_id or "",
            label=label,
            source_session_id=source_session_id or "",
            config=None if config is None else convert.config_out(config),
            awaits_content=awaits_content,
            request_id=request_id or new_request_id(),
        )
        return convert.node_in(await self._caller.unary(self._stub.CreateSession, request))

    async def get_node(self, node_id: str) -> Node:
        """Reads one node with its refs and the first 1,000 ids of its children."""
        return convert.node_in(await self._caller.unary(self._stub.GetNode, build(pb.GetNodeRequest, node_id=node_id)))

    async def list_nodes(
        self,
        *,
        label_prefix: str = "",
        source_session_id: str | None = None,
        page_size: int = 0,
        page_token: str | None = None,
    ) -> NodePage:
        """Lists one page of the space's nodes by id. A page may be short, even empty, before the end."""
        request = build(
            pb.ListNodesRequest,
            filter=build(pb.NodeFilter, label_prefix=label_prefix, source_session_id=source_session_id or ""),
            page_size=page_size,
            page_token=page_token or "",
        )
        return await self._page(self._stub.ListNodes, request)

    def iter_nodes(self, *, label_prefix: str = "", source_session_id: str | None = None) -> AsyncGenerator[Node, None]:
        """Yields every node of the space by id."""
        return _nodes(
            lambda token: self.list_nodes(
                label_prefix=label_prefix, source_session_id=source_session_id, page_size=1000, page_token=token
            )
        )

    async def list_roots(self, *, page_size: int = 0, page_token: str | None = None) -> NodePage:
        """Lists one page of the roots by index."""
        request = build(pb.ListRootsRequest, page_size=page_size, page_token=page_token or "")
        return await self._page(self._stub.ListRoots, request)

    def iter_roots(self) -> AsyncGenerator[Node, None]:
        """Yields every root by index."""
        return _nodes(lambda token: self.list_roots(page_size=1000, page_token=token))

    async def list_children(self, node_id: str, *, page_size: int = 0, page_token: str | None = None) -> NodePage:
        """Lists one page of the children of a node by index."""
        request = build(pb.ListChildrenRequest, node_id=node_id, page_size=page_size, page_token=page_token or "")
        return await self._page(self._stub.ListChildren, request)

    def iter_children(self, node_id: str) -> AsyncGenerator[Node, None]:
        """Yields every child of a node by index."""
        return _nodes(lambda token: self.list_children(node_id, page_size=1000, page_token=token))

    async def get_ancestors(self, node_id: str, *, page_size: int = 0, page_token: str | None = None) -> NodePage:
        """Lists one page of the ancestors of a node: parent first, root last."""
        request = build(pb.GetAncestorsRequest, node_id=node_id, page_size=page_size, page_token=page_token or "")
        return await self._page(self._stub.GetAncestors, request)

    def iter_ancestors(self, node_id: str) -> AsyncGenerator[Node, None]:
        """Yields every ancestor of a node: parent first, root last."""
        return _nodes(lambda token: self.get_ancestors(node_id, page_size=10_000, page_token=token))

    async def get_siblings(self, node_id: str, *, page_size: int = 0, page_token: str | None = None) -> NodePage:
        """Lists one page of the other children of a node's parent by index. A root has none."""
        request = build(pb.GetSiblingsRequest, node_id=node_id, page_size=page_size, page_token=page_token or "")
        return await self._page(self._stub.GetSiblings, request)

    def iter_siblings(self, node_id: str) -> AsyncGenerator[Node, None]:
        """Yields every other child of a node's parent by index."""
        return _nodes(lambda token: self.get_siblings(node_id, page_size=1000, page_token=token))

    async def list_descendants(self, node_id: str, *, page_size: int = 0, page_token: str | None = None) -> NodePage:
        """Lists one page of everything below a node, parents before children."""
        request = build(pb.ListDescendantsRequest, node_id=node_id, page_size=page_size, page_token=page_token or "")
        return await self._page(self._stub.ListDescendants, request)

    def iter_descendants(self, node_id: str) -> AsyncGenerator[Node, None]:
        """Yields everything below a node, parents before children."""
        return _nodes(lambda token: self.list_descendants(node_id, page_size=1000, page_token=token))

    async def get_tree(
        self, node_id: str | None = None, *, page_size: int = 0, page_token: str | None = None
    ) -> TreePage:
        """Lists one page of the forest, or of one node and everything below it, parents before children.

        :meth:`Orchestrator.read_tree` reads all of it and nests it.
        """
        request = build(pb.GetTreeRequest, node_id=node_id, page_size=page_size, page_token=page_token or "")
        reply = await self._caller.unary(self._stub.GetTree, request)
        return TreePage(tuple(map(convert.entry_in, reply.entries)), reply.next_page_token or None, reply.position)

    async def iter_tree(self, node_id: str | None = None) -> AsyncGenerator[TreeEntry, None]:
        """Yields the forest, or one node and everything below it, parents before children."""
        token: str | None = ""
        while token is not None:
            page = await self.get_tree(node_id, page_size=1000, page_token=token)
            for entry in page.entries:
                yield entry
            token = page.next_page_token

    async def watch_tree(
        self, *, after_position: int | None = None, patience_s: float = PATIENCE_S
    ) -> AsyncGenerator[TreeNews, None]:
        """Yields what becomes of nodes after a position, and then as it happens; it never ends by itself.

        To follow the forest, read it with :meth:`get_tree`, watch after the ``position`` of its first page, and read
        each node that a change names. Without ``after_position`` only what comes from now on is told; the first news
        come at once and say where that is. When the server drains or is lost, the watch goes on elsewhere from where
        it was, and raises Unavailable only if that takes more than ``patience_s`` seconds. Raises OutOfRange where
        the changes after the position are no longer kept: read the forest again.
        """
        request = build(pb.WatchTreeRequest, after_position=after_position)

        def move_on(news: pb.WatchTreeResponse) -> None:
            request.after_position = news.through_position

        async for message in self._caller.watch(self._stub.WatchTree, request, move_on, patience_s):
            yield convert.news_in(message)

    async def update_node(
        self, node_id: str, *, label: str, expected_version: int | None = None, request_id: str | None = None
    ) -> Node:
        """Changes the label of a node. :meth:`Orchestrator.rename` changes the session's as well."""
        request = build(
            pb.UpdateNodeRequest,
            node_id=node_id,
            label=label,
            expected_version=expected_version,
            request_id=request_id or new_request_id(),
        )
        return convert.node_in(await self._caller.unary(self._stub.UpdateNode, request))

    async def move_node(
        self,
        node_id: str,
        *,
        parent_id: str | None,
        index: int | None = None,
        expected_version: int | None = None,
        request_id: str | None = None,
    ) -> MovedNode:
        """Moves a node, with everything below it, below another parent, or among the roots (``parent_id`` None).

        Without ``index`` it comes last.
        """
        request = build(
            pb.MoveNodeRequest,
            node_id=node_id,
            parent_id=parent_id,
            index=index,
            expected_version=expected_version,
            request_id=request_id or new_request_id(),
        )
        return convert.moved_in(await self._caller.unary(self._stub.MoveNode, request))

    async def delete_node(
        self,
        node_id: str,
        policy: DeletePolicy = DeletePolicy.REFUSE,
        *,
        delete_sessions: bool = False,
        only_awaiting: bool = False,
        expected_version: int | None = None,
        request_id: str | None = None,
    ) -> DeletedNodes:
        """Deletes a node. With ``delete_sessions`` the sessions go too, by :meth:`Orchestrator.delete` or a sweep.

        ``only_awaiting`` takes back a node whose content was refused, and no other.
        """
        request = build(
            pb.DeleteNodeRequest,
            node_id=node_id,
            policy=convert.policy_out(policy),
            delete_sessions=delete_sessions,
            only_awaiting=only_awaiting,
            expected_version=expected_version,
            request_id=request_id or new_request_id(),
        )
        reply = await self._caller.unary(self._stub.DeleteNode, request)
        return DeletedNodes(reply.deleted_count, tuple(reply.deleted_node_ids))

    async def add_ref(self, node_id: str, target_id: str, *, request_id: str | None = None) -> Node:
        """Adds a cross reference: not to itself, an ancestor or a descendant."""
        request = build(
            pb.AddRefRequest, node_id=node_id, target_id=target_id, request_id=request_id or new_request_id()
        )
        return convert.node_in(await self._caller.unary(self._stub.AddRef, request))

    async def remove_ref(self, node_id: str, target_id: str, *, request_id: str | None = None) -> Node:
        """Removes a cross reference. Removing one that is not there changes nothing."""
        request = build(
            pb.RemoveRefRequest, node_id=node_id, target_id=target_id, request_id=request_id or new_request_id()
        )
        return convert.node_in(await self._caller.unary(self._stub.RemoveRef, request))

    async def get_config(self, node_id: str) -> Config:
        """Reads the frozen config of a node: what its forks inherit."""
        return convert.config_in(
            await self._caller.unary(self._stub.GetConfig, build(pb.GetConfigRequest, node_id=node_id))
        )

    async def put_config(
        self, node_id: str, config: Config, *, expected_version: int | None = None, request_id: str | None = None
    ) -> Config:
        """Replaces the whole frozen config of a node. It never touches a slot of the session."""
        request = build(
            pb.PutConfigRequest,
            node_id=node_id,
            config=convert.config_out(config),
            expected_version=expected_version,
            request_id=request_id or new_request_id(),
        )
        return convert.config_in(await self._caller.unary(self._stub.PutConfig, request))

    async def get_server_info(self) -> TreeServerInfo:
        """Tells the server's version, schema revision and limits."""
        return convert.server_info_in(await self._caller.unary(self._stub.GetServerInfo, pb.GetServerInfoRequest()))

    async def _page(self, method: grpc.aio.UnaryUnaryMultiCallable[Any, "_Reply"], request: Message) -> NodePage:
        reply = await self._caller.unary(method, request)
        return NodePage(tuple(map(convert.node_in, reply.nodes)), reply.next_page_token or None)


class _NodesReply(Protocol):
    @property
    def nodes(self) -> Iterable[pb.Node]: ...
    @property
    def next_page_token(self) -> str: ...


_Reply = TypeVar("_Reply", bound=_NodesReply)


async def _nodes(read: Callable[[str], Awaitable[NodePage]]) -> AsyncGenerator[Node, None]:
    token: str | None = ""
    while token is not None:
        page = await read(token)
        for node in page.nodes:
            yield node
        token = page.next_page_token
