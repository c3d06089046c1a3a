"""Ids: their alphabet, and new ones."""

import os
import random
import re
import time

from ramet_server.domain.errors import InvalidField, too_large

ID_LIMIT = 128
"""Longest id, in characters, which are bytes here."""

# Unique, not secret. Asking the system each time cost 14 us of the 40 that a call costs beside its work, here 1.
_random = random.Random()  # noqa: S311 - no secret hangs on it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)

_ID = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


def check_id(value: str, field: str) -> str:
    """Returns the id if it is legal: 1 to 128 printable ASCII characters, no space at either end."""
    if not value:
        raise InvalidField(f"{field} must not be empty.", field=field)
    if len(value) > ID_LIMIT:
        raise too_large(field, ID_LIMIT, "characters", field)
    if _ID.fullmatch(value) is None:
        raise InvalidField(f"{field} must be printable ASCII characters with no space at either end.", field=field)
    return value


def check_optional_id(value: str, field: str) -> str | None:
    """Returns the id if it is legal, and None for the empty text, which stands for absent."""
    return check_id(value, field) if value else None


def new_id() -> str:
    """Returns a new id of 32 hexadecimal digits; later ones sort after earlier ones by millisecond."""
    # The layout of a UUID of version 7: 48 bits of time, then random bits around version and variant.
    bits = (time.time_ns() // 1_000_000) << 80 | _random.getrandbits(80)
    bits = bits & ~(0xF << 76) | 0x7 << 76
    bits = bits & ~(0x3 << 62) | 0x2 << 62
    return f"{bits:032x}"


def new_origin() -> str:
    """Returns the internal id of one incarnation of a session; its records lie together on disk."""
    return new_id()
