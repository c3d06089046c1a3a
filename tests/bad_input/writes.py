"""Ways to put a value into a field of a message."""

from collections.abc import Callable

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

Write = Callable[[Message, FieldDescriptor], str]
"""Puts a value into a field of a message; returns what to add to the field's path, such as ``[1]``."""


def put(value: object) -> Write:
    """Sets a singular field."""

    def write(owner: Message, field: FieldDescriptor) -> str:
        setattr(owner, field.name, value)
        return ""

    return write


def add(value: object) -> Write:
    """Adds an element to a repeated field."""

    def write(owner: Message, field: FieldDescriptor) -> str:
        values = getattr(owner, field.name)
        values.append(value)
        return f"[{len(values) - 1}]"

    return write


def fill(make: Callable[[int], object], count: int) -> Write:
    """Replaces a repeated field by so many values, made from their index."""

    def write(owner: Message, field: FieldDescriptor) -> str:
        values = getattr(owner, field.name)
        del values[:]
        values.extend(make(index) for index in range(count))
        return ""

    return write


def repeat(count: int) -> Write:
    """Makes a repeated field of messages so long, by copies of its first."""

    def write(owner: Message, field: FieldDescriptor) -> str:
        values = getattr(owner, field.name)
        first = type(values[0])()
        first.CopyFrom(values[0])
        while len(values) < count:
            values.add().CopyFrom(first)
        return ""

    return write


def clear(owner: Message, field: FieldDescriptor) -> str:
    """Takes the field's value away."""
    owner.ClearField(field.name)
    return ""


def edit(change: Callable[[object], object]) -> Write:
    """Sets a singular field to something made from its value."""

    def write(owner: Message, field: FieldDescriptor) -> str:
        setattr(owner, field.name, change(getattr(owner, field.name)))
        return ""

    return write


def alone(value: str) -> Write:
    """Sets a text as the only one of its record, where it is part of one, since those share a limit."""

    def write(owner: Message, field: FieldDescriptor) -> str:
        for name in ("content", "parts_json", "metadata_json"):
            if "role" in owner.DESCRIPTOR.fields_by_name:
                owner.ClearField(name)
        setattr(owner, field.name, value)
        return ""

    return write


def the_most(owner: Message, field: FieldDescriptor) -> str:
    """Sets an integer field to the most that its type holds."""
    bits = 31 if field.cpp_type == FieldDescriptor.CPPTYPE_INT32 else 63
    setattr(owner, field.name, 2**bits - 1)
    return ""


def the_least(owner: Message, field: FieldDescriptor) -> str:
    """Sets an integer field to the least that its type holds."""
    bits = 31 if field.cpp_type == FieldDescriptor.CPPTYPE_INT32 else 63
    setattr(owner, field.name, -(2**bits))
    return ""
