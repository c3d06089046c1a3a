"""The part of a session that callers write: label, tags and metadata_json."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ramet_server.domain.errors import InvalidField, too_large
from ramet_server.domain.json_text import check_json
from ramet_server.domain.limits import Limits
from ramet_server.domain.text import check_label

TAG_CHARACTERS = 128


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a caller gives; None leaves a part as it is, or empty in a new session."""

    label: str | None = None
    tags: tuple[str, ...] | None = None
    metadata_json: str | None = None
    """The empty text takes it away."""


def check_metadata(metadata: Metadata, limits: Limits, prefix: str = "") -> Metadata:
    """Returns the metadata, its tags sorted, if it can be stored; ``prefix`` is the path of its fields."""
    if metadata.label is not None:
        check_label(metadata.label, f"{prefix}label", limits.max_label_characters)
    if metadata.metadata_json:
        check_json(metadata.metadata_json, f"{prefix}metadata_json", limits.max_json_bytes)
    if metadata.tags is None:
        return metadata
    return replace(metadata, tags=check_tags(metadata.tags, limits, f"{prefix}tags"))


def check_tags(tags: Sequence[str], limits: Limits, field: str) -> tuple[str, ...]:
    """Returns the tags as a sorted set."""
    for place, tag in enumerate(tags):
        _check_tag(tag, f"{field}[{place}]")
    unique = tuple(sorted(set(tags)))
    if len(unique) > limits.max_tags:
        raise too_large(field, limits.max_tags, "tags", field)
    return unique


def _check_tag(tag: str, field: str) -> None:
    if not tag:
        raise InvalidField(f"{field} must not be empty.", field=field)
    check_label(tag, field, TAG_CHARACTERS)
    if tag != tag.strip(" "):
        raise InvalidField(f"{field} must not begin or end with a space.", field=field)
    if any(unicodedata.category(character) == "Cc" for character in tag):
        raise InvalidField(f"{field} must not hold control characters.", field=field)
