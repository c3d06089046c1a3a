"""The places of a request that a bad value can stand in: every field, however deep, of one valid request."""

from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from tests.bad_input.contract import SERVED, Rpc
from tests.bad_input.requests import valid_requests

LEAF_MESSAGES = frozenset({"google.protobuf.Timestamp", "google.protobuf.FieldMask", "google.protobuf.Empty"})
"""Messages that are values: they are filled as a whole."""

Step = tuple[str, int | None]


@dataclass(frozen=True)
class Place:
    """One field within a valid request of one RPC."""

    rpc: Rpc
    variant: int
    """Which of the RPC's valid requests holds it."""
    steps: tuple[Step, ...]
    """Fields, with the index where repeated, that lead to the message that holds the field."""
    field: FieldDescriptor

    def __str__(self) -> str:
        return f"{self.rpc.name}-{self.path}"

    @property
    def owner_path(self) -> str:
        """The path of the message that holds the field; empty for the request itself."""
        return ".".join(name if index is None else f"{name}[{index}]" for name, index in self.steps)

    @property
    def path(self) -> str:
        """The field's path, as BadRequest names it."""
        return f"{self.owner_path}.{self.field.name}" if self.steps else self.field.name

    def request(self) -> Message:
        """Makes the valid request that holds the place."""
        return valid_requests(self.rpc)[self.variant]()

    def owner(self, request: Message) -> Message:
        """Finds the message that holds the field."""
        message = request
        for name, index in self.steps:
            value = getattr(message, name)
            message = value if index is None else value[index]
        return message


def places(rpc: Rpc) -> Iterator[Place]:
    """Yields one place for each field that a request can hold, however deep."""
    requests = [make() for make in valid_requests(rpc)]
    yield from _places(rpc, rpc.request, [(variant, (), request) for variant, request in enumerate(requests)])


def all_places() -> list[Place]:
    """Returns the places of every served RPC."""
    return [place for rpc in SERVED for place in places(rpc)]


def is_filled(place: Place) -> bool:
    """Tells whether a valid request gives the place a value."""
    return _is_filled(place.owner(place.request()), place.field)


def is_submessage(field: FieldDescriptor) -> bool:
    """Tells whether the field holds messages that have fields of their own to try."""
    return field.message_type is not None and field.message_type.full_name not in LEAF_MESSAGES


_Holder = tuple[int, tuple[Step, ...], Message]


def _places(rpc: Rpc, message: Descriptor, holders: list[_Holder]) -> Iterator[Place]:
    for field in message.fields:
        # A field is tried where it belongs, such as tool_call_id in a record of role TOOL: where the valid request
        # fills it. One that none fills is tried in the first.
        filled = [holder for holder in holders if _is_filled(holder[2], field)]
        variant, steps, _ = (filled or holders)[0]
        yield Place(rpc, variant, steps, field)
        if is_submessage(field):
            inner = [
                (variant, (*steps, (field.name, index)), value)
                for variant, steps, holder in filled
                for index, value in _values(holder, field)
            ]
            assert field.message_type is not None
            if inner:
                yield from _places(rpc, field.message_type, inner)


def _is_filled(message: Message, field: FieldDescriptor) -> bool:
    return any(listed.name == field.name for listed, _ in message.ListFields())


def _values(message: Message, field: FieldDescriptor) -> list[tuple[int | None, Message]]:
    value = getattr(message, field.name)
    return list(enumerate(value)) if field.is_repeated else [(None, value)]
