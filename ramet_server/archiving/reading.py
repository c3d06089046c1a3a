"""Reading an archive line by line, without ever holding more than one."""

import json
from collections.abc import Iterable, Iterator
from typing import IO, Any, NoReturn

from ramet_server.archiving.errors import ArchiveError
from ramet_server.archiving.lines import VERSION, Line

LONGEST_LINE = 256 * 1024 * 1024
"""No line that a server writes is longer, in bytes."""


def raw_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yields the lines of a file as they are; one that is longer than any comes in pieces."""
    return iter(lambda: file.readline(LONGEST_LINE), b"")


def read_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, Line]]:
    """Yields the lines with their numbers, the header first and the end last.

    Raises ArchiveError for a file that is no archive, that is of a newer version, or that is cut.
    """
    ended = False
    number = 0
    for raw in lines:
        number += 1
        if ended:
            raise ArchiveError(number, "stands behind the end of the archive")
        line = _parse(raw, number)
        if number == 1:
            _check_header(line)
        elif not isinstance(line.get("kind"), str):
            raise ArchiveError(number, "has no kind")
        ended = line.get("kind") == "end"
        if ended and line.get("lines") != number - 1:
            raise ArchiveError(number, f"ends an archive of {line.get('lines')} lines, but {number - 1} came before it")
        if not raw.endswith(b"\n") and not ended:
            raise ArchiveError(number, "is cut")
        yield number, line
    if number == 0:
        raise ArchiveError(1, "the file is empty")
    if not ended:
        raise ArchiveError(number + 1, "the file ends before its last line: it was cut")


def is_archive(first_line: bytes) -> bool:
    """Tells whether a file that begins so is an archive, of whatever version."""
    return first_line.lstrip().startswith(b'{"ramet_archive"')


def _parse(raw: bytes, number: int) -> dict[str, Any]:
    try:
        line = json.loads(raw, parse_constant=_refuse)
    except RecursionError:
        raise ArchiveError(number, "is nested too deep") from None
    except ValueError:
        whole = "is no JSON" if raw.endswith(b"\n") else "is cut"
        raise ArchiveError(number, whole) from None
    if not isinstance(line, dict):
        raise ArchiveError(number, "is no JSON object")
    return line


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


def _check_header(line: Line) -> None:
    version = line.get("ramet_archive")
    if type(version) is not int or version < 1:
        raise ArchiveError(1, "is not the first line of an archive")
    if version > VERSION:
        raise ArchiveError(1, f"the archive is of the newer version {version}; this program reads up to {VERSION}")
    if not isinstance(line.get("space"), str):
        raise ArchiveError(1, "names no space")
