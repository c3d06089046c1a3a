"""SessionTree, a short method per RPC: message in, rule called, message out."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from ramet.tree.v1 import tree_pb2 as pb
from ramet_server import __version__
from ramet_server.domain.call import Call
from ramet_server.domain.limits import Limits
from ramet_server.serving.workers import Workers
from tree_service import convert
from tree_service.rules.configs import ConfigRules
from tree_service.rules.deletions import DeletionRules
from tree_service.rules.forest import ForestRules
from tree_service.rules.listing import ListingRules
from tree_service.rules.moves import MoveRules
from tree_service.rules.nodes import NodeRules
from tree_service.rules.refs import RefRules
from tree_service.rules.values import PageWish, Ref
from tree_service.watching import TreeWatches


class SessionTreeServicer:
    """Answers the RPCs of the forest."""

    def __init__(
        self,
        *,
        nodes: NodeRules,
        lists: ListingRules,
        forest: ForestRules,
        moves: MoveRules,
        deletions: DeletionRules,
        refs: RefRules,
        configs: ConfigRules,
        watches: TreeWatches,
        limits: Limits,
        schema_revision: str,
    ) -> None:
        self._nodes = nodes
        self._lists = lists
        self._forest = forest
        self._moves = moves
        self._deletions = deletions
        self._refs = refs
        self._configs = configs
        self._watches = watches
        self._limits = limits
        self._schema_revision = schema_revision

    def CreateSession(self, request: pb.CreateSessionRequest, call: Call) -> pb.Node:
        """Creates a node."""
        mutation = convert.mutation("CreateSession", request)
        return convert.node_message(self._nodes.create(call, mutation, convert.new_node(request)))

    def GetNode(self, request: pb.GetNodeRequest, call: Call) -> pb.Node:
        """Reads one node."""
        return convert.node_message(self._nodes.get(call, request.node_id))

    def ListNodes(self, request: pb.ListNodesRequest, call: Call) -> pb.ListNodesResponse:
        """Lists nodes by id."""
        page = self._lists.by_id(call, convert.node_filter(request), _wish(request))
        return pb.ListNodesResponse(nodes=convert.node_messages(page), next_page_token=page.next_token)

    def ListRoots(self, request: pb.ListRootsRequest, call: Call) -> pb.ListRootsResponse:
        """Lists the roots."""
        page = self._lists.roots(call, _wish(request))
        return pb.ListRootsResponse(nodes=convert.node_messages(page), next_page_token=page.next_token)

    def ListChildren(self, request: pb.ListChildrenRequest, call: Call) -> pb.ListChildrenResponse:
        """Lists the children of a node."""
        page = self._lists.children(call, request.node_id, _wish(request))
        return pb.ListChildrenResponse(nodes=convert.node_messages(page), next_page_token=page.next_token)

    def GetAncestors(self, request: pb.GetAncestorsRequest, call: Call) -> pb.GetAncestorsResponse:
        """Lists the ancestors of a node."""
        page = self._lists.ancestors(call, request.node_id, _wish(request))
        return pb.GetAncestorsResponse(nodes=convert.node_messages(page), next_page_token=page.next_token)

    def GetSiblings(self, request: pb.GetSiblingsRequest, call: Call) -> pb.GetSiblingsResponse:
        """Lists the other children of a node's parent."""
        page = self._lists.siblings(call, request.node_id, _wish(request))
        return pb.GetSiblingsResponse(nodes=convert.node_messages(page), next_page_token=page.next_token)

    def ListDescendants(self, request: pb.ListDescendantsRequest, call: Call) -> pb.ListDescendantsResponse:
        """Lists everything below a node."""
        page = self._forest.descendants(call, request.node_id, _wish(request))
        return pb.ListDescendantsResponse(nodes=convert.node_messages(page), next_page_token=page.next_token)

    def GetTree(self, request: pb.GetTreeRequest, call: Call) -> pb.GetTreeResponse:
        """Lists the forest, or a node and everything below it."""
        node_id = request.node_id if request.HasField("node_id") else None
        return convert.tree_message(self._forest.tree(call, node_id, _wish(request)))

    def UpdateNode(self, request: pb.UpdateNodeRequest, call: Call) -> pb.Node:
        """Changes the label of a node."""
        label = request.label if request.HasField("label") else None
        expected = request.expected_version if request.HasField("expected_version") else None
        mutation = convert.mutation("UpdateNode", request)
        return convert.node_message(self._nodes.relabel(call, mutation, request.node_id, label, expected))

    def MoveNode(self, request: pb.MoveNodeRequest, call: Call) -> pb.MoveNodeResponse:
        """Moves a node with everything below it."""
        mutation = convert.mutation("MoveNode", request)
        return convert.moved_message(self._moves.move(call, mutation, convert.move(request)))

    def DeleteNode(self, request: pb.DeleteNodeRequest, call: Call) -> pb.DeleteNodeResponse:
        """Deletes a node by a policy."""
        mutation = convert.mutation("DeleteNode", request)
        return convert.deleted_message(self._deletions.delete(call, mutation, convert.deletion(request)))

    def AddRef(self, request: pb.AddRefRequest, call: Call) -> pb.Node:
        """Adds a cross reference."""
        mutation = convert.mutation("AddRef", request)
        return convert.node_message(self._refs.add(call, mutation, Ref(request.node_id, request.target_id)))

    def RemoveRef(self, request: pb.RemoveRefRequest, call: Call) -> pb.Node:
        """Removes a cross reference."""
        mutation = convert.mutation("RemoveRef", request)
        return convert.node_message(self._refs.remove(call, mutation, Ref(request.node_id, request.target_id)))

    def GetConfig(self, request: pb.GetConfigRequest, call: Call) -> pb.Config:
        """Reads the frozen config of a node."""
        return convert.config_message(self._configs.get(call, request.node_id))

    def PutConfig(self, request: pb.PutConfigRequest, call: Call) -> pb.Config:
        """Replaces the frozen config of a node."""
        config = convert.config(request.config) if request.HasField("config") else None
        expected = request.expected_version if request.HasField("expected_version") else None
        mutation = convert.mutation("PutConfig", request)
        return convert.config_message(self._configs.put(call, mutation, request.node_id, config, expected))

    async def WatchTree(
        self, request: pb.WatchTreeRequest, call: Call, workers: Workers
    ) -> AsyncIterator[pb.WatchTreeResponse]:
        """Streams changes as they are committed."""
        after_position = request.after_position if request.HasField("after_position") else None
        async with aclosing(self._watches.follow(after_position, call, workers)) as messages:
            async for message in messages:
                yield message

    def GetServerInfo(self, _: pb.GetServerInfoRequest, call: Call) -> pb.GetServerInfoResponse:  # noqa: ARG002 - every RPC has this shape
        """Tells version, schema revision and limits."""
        return pb.GetServerInfoResponse(
            version=__version__,
            schema_revision=self._schema_revision,
            limits=convert.limits_message(self._limits),
        )


_Paged = (
    pb.ListNodesRequest
    | pb.ListRootsRequest
    | pb.ListChildrenRequest
    | pb.GetAncestorsRequest
    | pb.GetSiblingsRequest
    | pb.ListDescendantsRequest
    | pb.GetTreeRequest
)


def _wish(request: _Paged) -> PageWish:
    return PageWish(request.page_size, request.page_token)
