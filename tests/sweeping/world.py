"""What a sweep finds: both services over one database, and a clock."""

from datetime import timedelta

from sqlalchemy import func, select

from ramet.session.v1 import session_pb2
from ramet.tree.v1 import tree_pb2
from ramet_server.database.database import Database
from ramet_server.database.tables import metadata
from ramet_server.domain.call import Call
from ramet_server.domain.limits import Limits
from ramet_server.sweeping import Counts, Sweep
from tests.session_service.storage import Storage
from tests.tree_service.forest import Forest, TurnedClock


class World:
    """A forest and its sessions, in one space."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = TurnedClock()
        self.call = Call("space")
        self.forest = Forest(database, self.call, Limits(), self.clock)
        self.storage = Storage(database, self.call.space, Limits(), self.clock)  # type: ignore[arg-type]  # a clock like theirs
        self.sweep = Sweep(database, Limits(), self.clock)

    def pass_over(self) -> Counts:
        """Makes one pass."""
        return self.sweep.run(Call(""))

    def later(self, **by: float) -> None:
        """Lets time pass."""
        self.clock.ahead += timedelta(**by)

    def grow(self, *ids: str, request_id: str = "") -> None:
        """Makes roots with their sessions, of three records each."""
        for node_id in ids:
            self.forest.create(node_id, request_id=request_id)
            self.storage.put(node_id, "u a u")

    def leave_behind(self, *ids: str) -> None:
        """Deletes nodes as a client does that dies before it deletes their sessions."""
        for node_id in ids:
            self.forest.delete(node_id, tree_pb2.DELETE_POLICY_CASCADE, delete_sessions=True)

    def sessions(self) -> list[str]:
        """Returns the ids of all sessions."""
        listed = self.storage.service.ListSessions(session_pb2.ListSessionsRequest(), self.call)
        return [session.id for session in listed.sessions]

    def rows(self, table: str) -> int:
        """Counts the rows of a table."""
        wanted = select(func.count()).select_from(metadata.tables[table])
        return self.database.read(self.call, lambda connection: connection.execute(wanted).scalar_one())
