"""The example calls miss no RPC and are well-formed, so that no client leaves one out."""

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import ServiceDescriptor

from ramet.session.v1 import session_pb2
from ramet.telemetry.v1 import telemetry_pb2
from ramet.tree.v1 import tree_pb2
from tests.clients.calls import ExampleCall, example_calls


def _services() -> dict[str, ServiceDescriptor]:
    files = (session_pb2.DESCRIPTOR, tree_pb2.DESCRIPTOR, telemetry_pb2.DESCRIPTOR)
    return {service.full_name: service for file in files for service in file.services_by_name.values()}


def _outcomes(call: ExampleCall) -> int:
    return sum(outcome is not None for outcome in (call.reply, call.replies, call.refused))


def test_every_rpc_has_an_example_call() -> None:
    rpcs = {f"{name}/{method.name}" for name, service in _services().items() for method in service.methods}
    assert {call.method for call in example_calls()} == rpcs


def test_every_example_call_is_of_the_contract() -> None:
    for call in example_calls():
        service, _, name = call.method.partition("/")
        method = _services()[service].methods_by_name[name]
        assert _outcomes(call) == 1, call.method
        assert len(call.requests()) == 1 or method.client_streaming, call.method
        for request in call.requests():
            json_format.ParseDict(request, message_factory.GetMessageClass(method.input_type)())
        if call.refused is None:
            assert (call.replies is not None) == method.server_streaming, call.method
            for reply in call.expected():
                json_format.ParseDict(reply, message_factory.GetMessageClass(method.output_type)())
