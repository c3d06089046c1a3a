"""Doors: a running server on one backend, called with raw bytes, and what it answered."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast
from urllib.parse import quote

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from tests.bad_input.contract import Rpc, rpcs

_BY_NAME = {rpc.name: rpc for rpc in rpcs()}
_DETAILS_KEY = "grpc-status-details-bin"
_MESSAGE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Answer:
    """All that a call brought back."""

    code: grpc.StatusCode
    messages: tuple[bytes, ...] = ()
    """The messages that came, serialized."""
    text: str = ""
    """The status message."""
    reason: str = ""
    domain: str = ""
    fields: tuple[str, ...] = ()
    """Paths that BadRequest names."""
    details: str = ""
    """All details as text."""
    metadata_bytes: int = 0
    """What the trailing metadata takes on the wire."""

    @property
    def refusal(self) -> tuple[object, ...]:
        """What must be the same on every backend."""
        return (self.code, self.text, self.reason, self.domain, self.fields, self.details)


@dataclass(frozen=True)
class Door:
    """One backend's server."""

    name: str
    channel: grpc.Channel
    snapshot: Callable[[], dict[str, str]]
    """Tells of each table how many rows it has and a hash of them."""

    def call(
        self,
        rpc: Rpc,
        body: bytes,
        space: str | None = None,
        metadata: Iterable[tuple[str, str]] = (),
    ) -> Answer:
        """Sends the bytes of a request, whatever they are."""
        sent = (*((("ramet-space", space),) if space is not None else ()), *metadata)
        try:
            if rpc.streams_responses:
                stream: grpc.UnaryStreamMultiCallable[bytes, bytes] = self.channel.unary_stream(rpc.path)
                # An idle wait would hide a server that never ends the stream.
                messages = tuple(stream(body, metadata=sent, timeout=60, wait_for_ready=True))
            else:
                unary: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(rpc.path)
                messages = (unary(body, metadata=sent, timeout=60, wait_for_ready=True),)
        except grpc.RpcError as error:
            return refused(error)
        return Answer(grpc.StatusCode.OK, messages)

    def stream(self, rpc: Rpc, bodies: Iterable[bytes], space: str) -> Answer:
        """Sends the bytes of the requests of a stream."""
        call: grpc.StreamStreamMultiCallable[bytes, bytes] = self.channel.stream_stream(rpc.path)
        try:
            messages = tuple(call(iter(bodies), metadata=(("ramet-space", space),), timeout=60, wait_for_ready=True))
        except grpc.RpcError as error:
            return refused(error)
        return Answer(grpc.StatusCode.OK, messages)

    def send(self, rpc: Rpc, request: Message, space: str) -> Answer:
        """Sends a request."""
        return self.call(rpc, request.SerializeToString(deterministic=True), space)

    def sender(self, space: str) -> Callable[[str, Message], Message]:
        """Returns what calls an RPC by its name in a space, for calls that must succeed."""

        def send(name: str, request: Message) -> Message:
            rpc = _BY_NAME[name]
            answer = self.send(rpc, request, space)
            assert answer.code is grpc.StatusCode.OK, f"{name} on {self.name}: {answer}"
            return rpc.response_class.FromString(answer.messages[0])

        return send


def refused(failure: grpc.RpcError) -> Answer:
    """Returns what a call brought that failed."""
    # What a channel raises is both, which its types do not say.
    error = cast(grpc.Call, failure)
    trailing = error.trailing_metadata() or ()
    text = error.details() or ""
    size = len("grpc-message") + len(quote(text)) + 32 + sum(_wire_size(key, value) for key, value in trailing)
    status = status_pb2.Status()
    for key, value in trailing:
        if key == _DETAILS_KEY:
            assert isinstance(value, bytes)
            status = status_pb2.Status.FromString(value)
            assert status.code == error.code().value[0]
            assert status.message == text
    info = error_details_pb2.ErrorInfo()
    bad = error_details_pb2.BadRequest()
    for detail in status.details:
        for target in (info, bad):
            if detail.Is(target.DESCRIPTOR):
                detail.Unpack(target)
    return Answer(
        code=error.code(),
        text=text,
        reason=info.reason,
        domain=info.domain,
        fields=tuple(violation.field for violation in bad.field_violations),
        # Not the bytes: the order of a map's entries in them is free.
        details=f"{sorted(info.metadata.items())} {[str(detail) for detail in status.details[1:]]}",
        metadata_bytes=size,
    )


def _wire_size(key: str, value: str | bytes) -> int:
    # Binary values travel as base64; each entry counts 32 bytes more by the rules of HTTP/2.
    return len(key) + 32 + (-(-len(value) // 3) * 4 if key.endswith("-bin") else len(value))
