"""What clients send: messages made before a measurement, so that a client costs little and the same to all sides."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from google.protobuf.message import Message

from ramet.session.v1 import session_pb2 as pb

SESSIONS = tuple(f"s{number}" for number in range(64))
"""The sessions that calls go round."""

LONG_SESSION = "long"
"""The session with a history of 1,000 records."""

RECORD = pb.Record(role=pb.ROLE_USER, content="x" * 500)
"""What appends append."""


@dataclass(frozen=True)
class Messages:
    """The bodies that a client goes round, and the fields that each call fills with an id of its own."""

    bodies: Sequence[bytes]
    fresh: Sequence[int] = ()
    """Numbers of text fields."""

    def to_json(self) -> dict[str, Any]:
        """Returns what ``from_json`` reads."""
        return asdict(self) | {"bodies": [base64.b64encode(body).decode() for body in self.bodies]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Messages":
        """Returns the messages that ``to_json`` wrote."""
        return cls([base64.b64decode(body) for body in value["bodies"]], value["fresh"])


def of(several: Sequence[Message], *, fresh: Sequence[int] = ()) -> Messages:
    """Returns messages for a client to go round."""
    return Messages([message.SerializeToString() for message in several], fresh)


def text_field(number: int, text: str) -> bytes:
    """Returns a text field, at most 127 bytes long, as it stands in a message; more of a message may follow it."""
    body = text.encode()
    key = number << 3 | 2
    return bytes([key] if key < 128 else [key & 0x7F | 0x80, key >> 7]) + bytes([len(body)]) + body


def appends(session_ids: Sequence[str] = SESSIONS, records: int = 1) -> Messages:
    """Returns appends, each with a request id of its own."""
    several = [pb.AppendRecordsRequest(session_id=each, records=[RECORD] * records) for each in session_ids]
    return of(several, fresh=(pb.AppendRecordsRequest.REQUEST_ID_FIELD_NUMBER,))


def forks(source: str) -> Messages:
    """Returns forks of the whole history of a session."""
    request = pb.ForkSessionRequest(source_session_id=source)
    request.all.SetInParent()
    fresh = (pb.ForkSessionRequest.SESSION_ID_FIELD_NUMBER, pb.ForkSessionRequest.REQUEST_ID_FIELD_NUMBER)
    return of([request], fresh=fresh)


def history(session_id: str = LONG_SESSION) -> Messages:
    """Returns the reading of a history of up to 1,000 records."""
    return of([pb.ListRecordsRequest(session_id=session_id, page_size=1000)])


ECHOED = Messages([b"x" * 560])
"""As long as an append."""

SLOTS = of([pb.GetMemoryRequest(session_id=each) for each in SESSIONS])
READ_SESSIONS = of([pb.GetSessionRequest(session_id=each) for each in SESSIONS])
CONTEXT = of([pb.GetContextRequest(session_id=LONG_SESSION)])
