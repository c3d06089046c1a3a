"""Calls of the machines: each either succeeds or is refused with a reason that the model foresaw."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import grpc
from google.protobuf import text_format
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from hypothesis import note

Answer = TypeVar("Answer", bound=Message)

_TIMEOUT_S = 60


@dataclass(frozen=True)
class Refusal:
    """A call that was refused."""

    code: grpc.StatusCode
    reason: str
    text: str


@dataclass(frozen=True)
class Client:
    """Calls within one space."""

    space: str

    def attempt(self, method: "grpc.UnaryUnaryMultiCallable[Any, Answer]", request: Message) -> Answer | Refusal:
        """Makes a call; returns what it answered, whatever that is."""
        kind = type(request).__name__.removesuffix("Request")
        # Seen only of the sequence that failed.
        note(f"  {kind}({_line(request)})")
        try:
            answer = method(request, metadata=(("ramet-space", self.space),), timeout=_TIMEOUT_S)
        except grpc.RpcError as error:
            # What a stub raises is both, which its types do not say.
            refusal = _refusal(cast(grpc.Call, error))
            note(f"    {refusal.reason}: {refusal.text}")
            return refusal
        note(f"    {_line(answer)}")
        return answer

    def ask(
        self,
        method: "grpc.UnaryUnaryMultiCallable[Any, Answer]",
        request: Message,
        faults: Collection[str] = (),
    ) -> Answer | None:
        """Makes a call that must succeed, or, where there are faults, be refused for one of them (None)."""
        answer = self.attempt(method, request)
        if isinstance(answer, Refusal):
            assert answer.reason in faults, f"refused, expected {sorted(faults) or 'success'}: {answer}\n{request}"
            return None
        assert not faults, f"expected {sorted(faults)}, got {answer} for {request}"
        return answer

    def get(self, method: "grpc.UnaryUnaryMultiCallable[Any, Answer]", request: Message) -> Answer:
        """Makes a call that must succeed."""
        answer = self.ask(method, request)
        assert answer is not None
        return answer


def _line(message: Message) -> str:
    return text_format.MessageToString(message, as_one_line=True, as_utf8=True)


def _refusal(error: grpc.Call) -> Refusal:
    info = error_details_pb2.ErrorInfo()
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            for detail in status_pb2.Status.FromString(value).details:
                if detail.Is(info.DESCRIPTOR):
                    detail.Unpack(info)
    return Refusal(error.code(), info.reason, error.details() or "")
