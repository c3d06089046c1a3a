"""The RPCs under test, read from the descriptors: a new one is tried without being named here."""

from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from ramet.session.v1 import session_pb2
from ramet.telemetry.v1 import telemetry_pb2
from ramet.tree.v1 import tree_pb2

SERVICES: tuple[ServiceDescriptor, ...] = (
    session_pb2.DESCRIPTOR.services_by_name["SessionStorage"],
    tree_pb2.DESCRIPTOR.services_by_name["SessionTree"],
    telemetry_pb2.DESCRIPTOR.services_by_name["Telemetry"],
)

EVENTS = frozenset({"Telemetry.StreamEvents", "Telemetry.AppendEvents"})
"""What takes events and refuses each by itself, in its reply: test_events.py tries their fields."""

STEPS = frozenset({"SessionStorage.Transact"})
"""What takes a stream of steps, each a request of another RPC: test_transactions.py tries them there too."""

ENDLESS = frozenset({"SessionStorage.WatchRecords", "SessionTree.WatchTree", "Telemetry.TailEvents"})
"""What never ends by itself where it is not refused."""


@dataclass(frozen=True)
class Rpc:
    """One method of a contract."""

    service: str
    """The service's full name."""
    name: str
    """Service and method, as in ``SessionTree.GetNode``."""
    path: str
    """The path of the method on the wire."""
    request: Descriptor
    response: Descriptor
    streams_requests: bool
    streams_responses: bool

    def __str__(self) -> str:
        return self.name

    @property
    def request_class(self) -> type[Message]:
        """The class of the request's messages."""
        return GetMessageClass(self.request)

    @property
    def response_class(self) -> type[Message]:
        """The class of the response's messages."""
        return GetMessageClass(self.response)


def rpcs() -> Iterator[Rpc]:
    """Yields every method of every contract."""
    for service in SERVICES:
        for method in service.methods:
            yield Rpc(
                service=service.full_name,
                name=f"{service.name}.{method.name}",
                path=f"/{service.full_name}/{method.name}",
                request=method.input_type,
                response=method.output_type,
                streams_requests=method.client_streaming,
                streams_responses=method.server_streaming,
            )


APPEND, STREAM = (
    next(rpc for rpc in rpcs() if rpc.name == f"Telemetry.{name}") for name in ("AppendEvents", "StreamEvents")
)
"""The two doors of events."""

SERVED: tuple[Rpc, ...] = tuple(rpc for rpc in rpcs() if rpc.name not in EVENTS | STEPS)
"""Every method that must answer a request as a whole."""

MUTATIONS: tuple[Rpc, ...] = tuple(rpc for rpc in SERVED if "request_id" in rpc.request.fields_by_name)
"""Every method that changes something: those that take a request_id."""
