"""The command that asks a running server how it is, as container health checks do."""

import click
import grpc
from grpc_health.v1 import health_pb2

from ramet_server.serving.address import local_address

# A check runs every few seconds, so this module loads no service and no database to know their names.
SERVICES = {
    "session": "ramet.session.v1.SessionStorage",
    "tree": "ramet.tree.v1.SessionTree",
    "telemetry": "ramet.telemetry.v1.Telemetry",
}
"""The services that can be asked for, by the names of their commands."""


@click.command(short_help="Ask a running server for its health.")
@click.option("--address", envvar="RAMET_LISTEN", default="127.0.0.1:50051", show_default=True, show_envvar=True)
@click.option("--service", type=click.Choice(list(SERVICES)), help="Ask for one service, not the whole.")
@click.option("--alive", is_flag=True, help="Be content with any answer: the server runs, ready or not.")
@click.option("--timeout", type=click.FloatRange(min=0.1), default=3.0, show_default=True, help="In seconds.")
@click.pass_context
def health(context: click.Context, address: str, service: str | None, alive: bool, timeout: float) -> None:
    """Prints the health of a running server, and exits with 0 only where it serves."""
    name = SERVICES[service] if service else ""
    with grpc.insecure_channel(local_address(address)) as channel:
        try:
            check = channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
                response_deserializer=health_pb2.HealthCheckResponse.FromString,
            )
            answer = check(health_pb2.HealthCheckRequest(service=name), timeout=timeout)
        except grpc.RpcError as error:
            raise click.ClickException(f"No health from {address}: {error.code().name}.") from error
    click.echo(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))
    if answer.status != health_pb2.HealthCheckResponse.SERVING and not alive:
        context.exit(1)
