"""Reads the rows of PyMySQL's answers in a fraction of the time that its own loop takes.

The driver reads each packet with two calls of its socket's file, and each value of a row with three calls of
functions; the descriptions of the columns, which are the same each time, it reads anew for each query. Here
all packets that have arrived are taken at once, values are read in one loop, and descriptions are known by
their bytes. 1,000 records of 12 columns took 10.5 ms of CPU by the driver's loop and 4.5 by this one, one such
row 0.11 ms and 0.04.

The answer to a statement without rows is read so, too: of six that travel together, as those of an append do,
the driver's own way made 250 calls of functions.

Whatever is not plain (a packet that has not arrived whole or has 16 MB, an error, the end) is left to the driver.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from pymysql.connections import TEXT_TYPES, MySQLResult
from pymysql.constants import FIELD_TYPE
from pymysql.converters import decoders, through
from pymysql.protocol import FieldDescriptorPacket

BUFFER_BYTES = 64 * 1024
"""How much is taken from the socket at once, at most: the driver's own 8 KiB take eight times the calls."""

_HEADER = 4
_NOT_LAST = 0xFFFFFF
"""The size of a packet that goes on in the next one."""

_MARKS = 0xFE
"""Packets that begin with this, or with more, are ends or errors, or begin with a value of 16 MB."""

_DONE = 0x00
"""What an answer begins with that has no rows."""

_NULL = 0xFB
_WIDTHS = {0xFC: 2, 0xFD: 3, 0xFE: 8}
"""How many bytes the size of a value takes that does not fit in one, by what stands in its place."""

_BINARY = 63
"""The number of the character set of what is no text."""

_INTEGERS = {FIELD_TYPE.TINY, FIELD_TYPE.SHORT, FIELD_TYPE.LONG, FIELD_TYPE.LONGLONG, FIELD_TYPE.INT24}
_MOMENTS = {FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP}

_MOST_COLUMNS = 4096
"""Descriptions that are kept; all queries of this program together have some hundred."""

_Row = tuple[Any, ...]

_Decode = Callable[[bytes], Any] | None
"""Makes a value of its bytes; None for text in the connection's encoding."""


class Result(MySQLResult):
    """An answer of the server. Moments are aware, because the time zone of each connection is UTC.

    The methods are those of the driver's own that it replaces, and so are the names.
    """

    # Attributes of the driver, which its stubs leave out.
    connection: Any
    field_count: Any
    description: Any
    affected_rows: Any
    rows: Any

    def _get_descriptions(self) -> None:
        driver = self.connection
        packets: list[bytes] = []
        while (missing := self.field_count - len(packets)) > 0:
            packets += _arrived(driver, missing) or [_next(driver).get_all_data()]
        # The mark behind the last column.
        _next(driver)
        columns = [_column(packet, driver.encoding) for packet in packets]
        self.description = tuple([description for description, _ in columns])
        self._decodes = [decode for _, decode in columns]

    def _read_rowdata_packet(self) -> None:
        driver, encoding, decodes = self.connection, self.connection.encoding, self._decodes
        rows: list[_Row] = []
        while True:
            rows += [_row(packet, decodes, encoding) for packet in _arrived(driver)]
            packet = _next(driver)
            if self._check_packet_is_eof(packet):  # type: ignore[attr-defined] # left out of the stubs
                break
            rows.append(_row(packet.get_all_data(), decodes, encoding))
        self.connection = None
        self.affected_rows = len(rows)
        self.rows = tuple(rows)


def _next(driver: Any) -> Any:
    """Waits for a packet in the driver's own way, which knows of errors and lost connections."""
    return driver._read_packet()  # noqa: SLF001 - where the driver's own result gets them


def _arrived(driver: Any, most: int | None = None) -> list[bytes]:
    """Takes the plain packets that have arrived whole; the driver goes on behind them."""
    file, number = driver._rfile, driver._next_seq_id  # noqa: SLF001 - where the driver keeps its place
    packets: list[bytes] = []
    try:
        arrived = file.peek()
    except OSError:
        # The driver will meet it, too, and knows what to do.
        return packets
    at, end = 0, len(arrived)
    while at + _HEADER < end and len(packets) != most:
        size = arrived[at] | arrived[at + 1] << 8 | arrived[at + 2] << 16
        begin = at + _HEADER
        if begin + size > end or not 0 < size < _NOT_LAST or arrived[at + 3] != number or arrived[begin] >= _MARKS:
            break
        at = begin + size
        packets.append(arrived[begin:at])
        number = (number + 1) % 256
    file.read(at)
    driver._next_seq_id = number  # noqa: SLF001 - as above
    return packets


def done(driver: Any) -> bool:
    """Takes the next answer if it says that a statement without rows was done; else leaves it to the driver."""
    file, number = driver._rfile, driver._next_seq_id  # noqa: SLF001 - as above
    try:
        arrived = file.peek(_HEADER)
    except OSError:
        return False
    if len(arrived) <= _HEADER or arrived[_HEADER] != _DONE or arrived[3] != number:
        return False
    end = _HEADER + (arrived[0] | arrived[1] << 8 | arrived[2] << 16)
    if len(arrived) < end:
        return False
    place = _HEADER + 1
    # How many rows it met, and the last number that it gave out.
    for _ in range(2):
        place += 1 + _WIDTHS.get(arrived[place], 0)
    driver.server_status = arrived[place] | arrived[place + 1] << 8
    file.read(end)
    driver._next_seq_id = (number + 1) % 256  # noqa: SLF001 - as above
    return True


def _row(packet: bytes, decodes: Sequence[_Decode], encoding: str) -> _Row:
    row: list[Any] = []
    place = 0
    for decode in decodes:
        size = packet[place]
        place += 1
        if size == _NULL:
            row.append(None)
            continue
        if size > _NULL:
            width = _WIDTHS[size]
            size = int.from_bytes(packet[place : place + width], "little")
            place += width
        raw = packet[place : place + size]
        place += size
        row.append(raw.decode(encoding) if decode is None else decode(raw))
    return tuple(row)


@lru_cache(_MOST_COLUMNS)
def _column(packet: bytes, encoding: str) -> tuple[Any, _Decode]:
    """Returns what the driver tells of a column, and what reads its values."""
    field: Any = FieldDescriptorPacket(packet, encoding)
    return field.description(), _decode(field.type_code, field.charsetnr == _BINARY)


def _decode(kind: int, is_binary: bool) -> _Decode:
    if kind in _INTEGERS:
        return int
    if kind in _MOMENTS:
        return _moment
    convert = decoders.get(kind)
    if convert is through:
        convert = None
    if kind in TEXT_TYPES and is_binary:
        return convert or bytes
    if convert is None:
        return None
    return lambda raw: convert(raw.decode("ascii"))


def _moment(raw: bytes) -> datetime:
    return datetime.fromisoformat((raw + b"+00:00").decode("ascii"))
