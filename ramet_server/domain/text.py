"""Text: what may be stored, and how much of it."""

from ramet_server.domain.errors import InvalidField, too_large

LABEL_LIMIT = 256
"""Longest label, in characters (code points)."""


def utf8_size(value: str) -> int:
    """Returns the bytes that the text takes in UTF-8."""
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def check_text(value: str, field: str, max_bytes: int) -> str:
    """Returns the text if it can be stored: no NUL, no lone surrogate, at most ``max_bytes`` in UTF-8."""
    # A character takes a byte or more, so a far too long text is refused before it is encoded.
    if len(value) > max_bytes or utf8_size(value) > max_bytes:
        raise too_large(field, max_bytes, "bytes", field)
    _check_characters(value, field)
    return value


def check_label(value: str, field: str, max_characters: int = LABEL_LIMIT) -> str:
    """Returns the label if it can be stored; it may be empty."""
    if len(value) > max_characters:
        raise too_large(field, max_characters, "characters", field)
    _check_characters(value, field)
    return value


def _check_characters(value: str, field: str) -> None:
    if "\0" in value:
        raise InvalidField(f"{field} must not hold a NUL character.", field=field)
    if value.isascii():
        return
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as fault:
        raise InvalidField(f"{field} must not hold a lone surrogate.", field=field) from fault
