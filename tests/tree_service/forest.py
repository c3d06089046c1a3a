"""A forest as tests drive it: through the servicer, in few words."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import delete, insert, select

import tree_service
from ramet.tree.v1 import tree_pb2 as pb
from ramet_server.database.database import Database
from ramet_server.database.tables.session import session
from ramet_server.database.tables.tree import session_removal
from ramet_server.domain.call import Call
from ramet_server.domain.ids import new_origin
from ramet_server.domain.limits import Limits


class TurnedClock:
    """The machine's clock, turned by hand."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)
        self.stopped: datetime | None = None

    def now(self) -> datetime:
        """Returns the moment that tests want."""
        return (self.stopped or datetime.now(UTC)) + self.ahead


class Forest:
    """The forest of one space."""

    def __init__(self, database: Database, call: Call, limits: Limits, clock: TurnedClock) -> None:
        self.database = database
        self.call = call
        self.limits = limits
        self.clock = clock
        self.service = tree_service.build(database, limits, clock)
        self.sweep = tree_service.build_sweep(database, limits, clock)

    def with_limits(self, **limits: Any) -> "Forest":
        """Returns the same forest under other limits."""
        return Forest(self.database, self.call, replace(self.limits, **limits), self.clock)

    def create(self, node_id: str, parent_id: str | None = None, **fields: Any) -> pb.Node:
        """Creates a node."""
        return self.service.CreateSession(
            pb.CreateSessionRequest(session_id=node_id, parent_id=parent_id, **fields), self.call
        )

    def grow(self, *lines: str) -> None:
        """Creates nodes; each line is a parent and its children, as in ``a: b c``, or roots, as in ``: a``."""
        for line in lines:
            parent, _, children = line.partition(":")
            for child in children.split():
                self.create(child, parent.strip() or None)

    def get(self, node_id: str) -> pb.Node:
        """Reads a node."""
        return self.service.GetNode(pb.GetNodeRequest(node_id=node_id), self.call)

    def move(self, node_id: str, parent_id: str | None = None, index: int | None = None, **fields: Any) -> Any:
        """Moves a node."""
        request = pb.MoveNodeRequest(node_id=node_id, parent_id=parent_id, index=index, **fields)
        return self.service.MoveNode(request, self.call)

    def delete(self, node_id: str, policy: "pb.DeletePolicy.ValueType" = pb.DELETE_POLICY_REFUSE, **fields: Any) -> Any:
        """Deletes a node."""
        return self.service.DeleteNode(pb.DeleteNodeRequest(node_id=node_id, policy=policy, **fields), self.call)

    def relabel(self, node_id: str, label: str, **fields: Any) -> pb.Node:
        """Gives a node another label."""
        return self.service.UpdateNode(pb.UpdateNodeRequest(node_id=node_id, label=label, **fields), self.call)

    def add_ref(self, node_id: str, target_id: str, **fields: Any) -> pb.Node:
        """Adds a reference."""
        return self.service.AddRef(pb.AddRefRequest(node_id=node_id, target_id=target_id, **fields), self.call)

    def remove_ref(self, node_id: str, target_id: str, **fields: Any) -> pb.Node:
        """Removes a reference."""
        return self.service.RemoveRef(pb.RemoveRefRequest(node_id=node_id, target_id=target_id, **fields), self.call)

    def config(self, node_id: str) -> pb.Config:
        """Reads a config."""
        return self.service.GetConfig(pb.GetConfigRequest(node_id=node_id), self.call)

    def put_config(self, node_id: str, config: pb.Config | None, **fields: Any) -> pb.Config:
        """Replaces a config."""
        return self.service.PutConfig(pb.PutConfigRequest(node_id=node_id, config=config, **fields), self.call)

    def roots(self) -> list[str]:
        """Returns the ids of the roots."""
        return [node.id for node in self._nodes("ListRoots", pb.ListRootsRequest())]

    def children(self, node_id: str, page_size: int = 0) -> list[str]:
        """Returns the ids of the children."""
        request = pb.ListChildrenRequest(node_id=node_id, page_size=page_size)
        return [node.id for node in self._nodes("ListChildren", request)]

    def siblings(self, node_id: str, page_size: int = 0) -> list[str]:
        """Returns the ids of the siblings."""
        request = pb.GetSiblingsRequest(node_id=node_id, page_size=page_size)
        return [node.id for node in self._nodes("GetSiblings", request)]

    def ancestors(self, node_id: str, page_size: int = 0) -> list[str]:
        """Returns the ids of the ancestors."""
        request = pb.GetAncestorsRequest(node_id=node_id, page_size=page_size)
        return [node.id for node in self._nodes("GetAncestors", request)]

    def descendants(self, node_id: str, page_size: int = 0) -> list[str]:
        """Returns the ids of everything below."""
        request = pb.ListDescendantsRequest(node_id=node_id, page_size=page_size)
        return [node.id for node in self._nodes("ListDescendants", request)]

    def nodes(self, page_size: int = 0, **admits: str) -> list[str]:
        """Returns the ids of the nodes that a filter admits."""
        request = pb.ListNodesRequest(filter=pb.NodeFilter(**admits), page_size=page_size)
        return [node.id for node in self._nodes("ListNodes", request)]

    def entries(self, node_id: str | None = None, page_size: int = 0) -> list[pb.TreeEntry]:
        """Returns the forest, or what begins at a node."""
        request = pb.GetTreeRequest(node_id=node_id, page_size=page_size)
        return [entry for page in self.pages("GetTree", request) for entry in page.entries]

    def tree(self, node_id: str | None = None, page_size: int = 0) -> list[str]:
        """Returns the ids of the forest in its order."""
        return [entry.node.id for entry in self.entries(node_id, page_size)]

    def pages(self, method: str, request: Any) -> Iterator[Any]:
        """Reads a list page by page; also checks that no page is longer than asked."""
        while True:
            page = getattr(self.service, method)(request, self.call)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def make_session(self, session_id: str, status: str = "ACTIVE", turn_count: int = 0) -> str:
        """Makes a session as the session service would, and returns its origin."""
        row = self.session_row(session_id) | {"status": status, "turn_count": turn_count}
        self.database.write(self.call, lambda connection: connection.execute(insert(session).values(row)))
        return str(row["origin"])

    def session_row(self, session_id: str) -> dict[str, object]:
        """Returns the row of a new session."""
        now = self.clock.now()
        return {
            "space_id": self.call.space,
            "session_id": session_id,
            "origin": new_origin(),
            "label": "",
            "status": "ACTIVE",
            "turn_count": 0,
            "head_seq": 0,
            "floor_seq": 0,
            "max_record_bytes": 0,
            "version": 1,
            "created_at": now,
            "updated_at": now,
            "last_active_at": now,
        }

    def drop_session(self, session_id: str) -> None:
        """Deletes a session as the session service would."""
        which = (session.c.space_id == self.call.space, session.c.session_id == session_id)
        self.database.write(self.call, lambda connection: connection.execute(delete(session).where(*which)))

    def removals(self) -> Sequence[tuple[str, str]]:
        """Returns id and origin of each session that is to be removed."""
        columns = (session_removal.c.session_id, session_removal.c.origin)
        wanted = select(*columns).where(session_removal.c.space_id == self.call.space).order_by(columns[0])
        return self.database.read(
            self.call, lambda connection: [(row[0], row[1]) for row in connection.execute(wanted)]
        )

    def _nodes(self, method: str, request: Any) -> Iterator[pb.Node]:
        for page in self.pages(method, request):
            yield from page.nodes
