"""The services that this program can run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from google.protobuf.descriptor import ServiceDescriptor

import session_service
import telemetry
import tree_service
from ramet.session.v1 import session_pb2
from ramet.telemetry.v1 import telemetry_pb2
from ramet.tree.v1 import tree_pb2
from ramet_server.database.database import Database
from ramet_server.domain.clock import Clock
from ramet_server.domain.limits import Limits


@dataclass(frozen=True)
class ServedService:
    """A service, and how its servicer is made."""

    name: str
    """The command that runs it alone."""
    descriptor: ServiceDescriptor
    build: Callable[[Database, Limits, Clock], object]
    """Makes the servicer."""
    example: tuple[str, str]
    """A method, and a request as JSON, that work on an empty database."""


SESSION = ServedService(
    "session",
    session_pb2.DESCRIPTOR.services_by_name["SessionStorage"],
    session_service.build,
    ("PutSession", '{"session": {"id": "main", "label": "Main"}}'),
)

TREE = ServedService(
    "tree",
    tree_pb2.DESCRIPTOR.services_by_name["SessionTree"],
    tree_service.build,
    ("CreateSession", '{"label": "Main"}'),
)

TELEMETRY = ServedService(
    "telemetry",
    telemetry_pb2.DESCRIPTOR.services_by_name["Telemetry"],
    telemetry.build,
    ("GetServerInfo", "{}"),
)

ALL = (SESSION, TREE, TELEMETRY)


def of_command(command: str) -> Sequence[ServedService]:
    """Returns the services that a command serves, as in ``all`` or ``tree``."""
    return [each for each in ALL if command in ("all", each.name)]
