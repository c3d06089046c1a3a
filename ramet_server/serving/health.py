"""The standard gRPC health service, which says SERVING only once the database was checked."""

from collections.abc import Iterable
from typing import Any

from grpc import StatusCode
from grpc.aio import ServicerContext
from grpc_health.v1 import health, health_pb2

from ramet_server.domain.errors import Draining
from ramet_server.serving.long_calls import LongCalls

_Context = ServicerContext[health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse]

OVERALL = health.OVERALL_HEALTH
"""The name under which the whole server is asked for."""


class Health(health.aio.HealthServicer):
    """Health by service name and as a whole; it never touches the database itself."""

    def __init__(self, services: Iterable[str], long_calls: LongCalls) -> None:
        super().__init__()
        self._names = (OVERALL, *services)
        self._long_calls = long_calls
        self._shown: int = health_pb2.HealthCheckResponse.NOT_SERVING
        self._draining = False

    async def show(self, *, ready: bool) -> None:
        """Sets every service, and the whole, to SERVING or NOT_SERVING; no effect once draining."""
        status = health_pb2.HealthCheckResponse.SERVING if ready else health_pb2.HealthCheckResponse.NOT_SERVING
        if not self._draining:
            self._shown = status
        for name in self._names:
            await self.set(name, status)

    async def enter_graceful_shutdown(self) -> None:
        """Shows NOT_SERVING for good."""
        await self.show(ready=False)
        self._draining = True
        await super().enter_graceful_shutdown()

    async def List(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Tells the health of every service at once."""
        answers = {name: health_pb2.HealthCheckResponse(status=self._shown) for name in self._names}
        # The type stubs are older than this method of the standard service, which grpcio leaves out.
        response_class: Any = getattr(health_pb2, "HealthListResponse")  # noqa: B009 - see above
        return response_class(statuses=answers)

    async def Watch(self, request: health_pb2.HealthCheckRequest, context: _Context) -> None:
        """Streams the health of one service until the client leaves or the server drains."""
        try:
            with self._long_calls.hold():
                await super().Watch(request, context)
        except Draining as error:
            await context.abort(StatusCode.UNAVAILABLE, error.message)
