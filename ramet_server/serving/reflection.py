"""Server reflection, under its present name and the older one.

grpcio-reflection brings v1alpha only, and newer clients ask for v1 first. Both have the same
messages but for their package, so one servicer answers under both names.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from grpc_reflection.v1alpha import reflection, reflection_pb2

from ramet_server.domain.errors import Draining
from ramet_server.serving.long_calls import LongCalls

OLDER_NAME = "grpc.reflection.v1alpha.ServerReflection"
NAME = "grpc.reflection.v1.ServerReflection"


def reflection_handlers(services: Iterable[str], long_calls: LongCalls) -> list[grpc.GenericRpcHandler]:
    """Builds the handlers of both versions; they list ``services`` and themselves."""
    servicer = reflection.aio.ReflectionServicer([*services, NAME, OLDER_NAME], _Pools())

    async def behave(requests: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        try:
            with long_calls.hold():
                # Typed as a coroutine in its stubs, though it is an async generator.
                answers: Any = servicer.ServerReflectionInfo(requests, context)
                async for answer in answers:
                    await context.write(answer)
        except Draining as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, error.message)

    handler = grpc.stream_stream_rpc_method_handler(
        behave,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    return [
        grpc.method_handlers_generic_handler(name, {"ServerReflectionInfo": handler}) for name in (NAME, OLDER_NAME)
    ]


class _Pools:
    """The process's descriptors, and those of the v1 service beside them.

    They are kept apart, since another library may bring its own v1 file into the process's pool.
    """

    def __init__(self) -> None:
        self._pool = descriptor_pool.Default()
        self._beside = descriptor_pool.DescriptorPool()
        file = descriptor_pb2.FileDescriptorProto()
        reflection_pb2.DESCRIPTOR.CopyToProto(file)
        _rename(file)
        self._beside.Add(file)

    def FindFileByName(self, name: str) -> "_File":
        try:
            return _File(self._pool.FindFileByName(name))
        except KeyError:
            return _File(self._beside.FindFileByName(name))

    def FindFileContainingSymbol(self, name: str) -> "_File":
        for pool in (self._pool, self._beside):
            # A pool does not find every method and field by its own name, as grpcurl's "describe" asks for them.
            for symbol in (name, name.rpartition(".")[0]):
                with suppress(KeyError):
                    return _File(pool.FindFileContainingSymbol(symbol))
        raise KeyError(name)

    def FindMessageTypeByName(self, name: str) -> Descriptor:
        return self._pool.FindMessageTypeByName(name)

    def FindExtensionByNumber(self, message: Descriptor, number: int) -> FieldDescriptor:
        return self._pool.FindExtensionByNumber(message, number)

    def FindAllExtensions(self, message: Descriptor) -> list[FieldDescriptor]:
        return list(self._pool.FindAllExtensions(message))


class _File:
    """A file that tells the JSON names of its fields, which stubs of Python leave out.

    Without them grpcurl prints other names than clients that have the protos.
    """

    def __init__(self, file: FileDescriptor) -> None:
        self._file = file
        self.name = file.name

    @property
    def dependencies(self) -> "list[_File]":
        return [_File(file) for file in self._file.dependencies]

    def CopyToProto(self, proto: descriptor_pb2.FileDescriptorProto) -> None:
        self._file.CopyToProto(proto)
        for message in proto.message_type:
            _name_fields(message)


def _name_fields(message: descriptor_pb2.DescriptorProto) -> None:
    for field in message.field:
        if not field.HasField("json_name"):
            first, *rest = field.name.split("_")
            field.json_name = first + "".join(word[:1].upper() + word[1:] for word in rest)
    for nested in message.nested_type:
        _name_fields(nested)


def _rename(file: descriptor_pb2.FileDescriptorProto) -> None:
    """Turns the older file into the newer one: the package, and every reference to it."""
    file.name = file.name.replace("v1alpha", "v1")
    file.package = file.package.replace("v1alpha", "v1")
    for message in file.message_type:
        for field in (each for each in message.field if each.HasField("type_name")):
            field.type_name = field.type_name.replace(".v1alpha.", ".v1.")
    for service in file.service:
        for method in service.method:
            method.input_type = method.input_type.replace(".v1alpha.", ".v1.")
            method.output_type = method.output_type.replace(".v1alpha.", ".v1.")
