"""Events on disk while no server takes them: files that are only ever appended to, read in order, and then deleted.

Below the spool directory each space has a folder, and in it each producer that had something to keep: a lock, which
the process holds for as long as it lives, and segments. A segment is a row of frames: length, CRC-32, first and last
seq, the kind, the event. What stands behind the first frame that is not whole was being written when its process was
killed, and is ignored. A folder whose lock can be had belongs to a process that is gone: whoever has it sends it.
"""

import hashlib
import logging
import os
import struct
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ramet.recorder.backlog import Entry

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["SpaceSpool", "Spool"]

_FRAME = struct.Struct("<IIQQ")
_SEGMENT_BYTES = 4 * 1024 * 1024
_LARGEST_FRAME = 64 * 1024 * 1024
_SUFFIX = ".events"
_LOCK = "lock"
_OVERHEAD = _FRAME.size + 32
_TOGETHER = 200

_log = logging.getLogger("ramet.recorder")


class SpaceSpool:
    """The folder of one space; it makes the spool of this process and finds those that were left behind."""

    def __init__(self, directory: str | os.PathLike[str], space: str, max_bytes: int) -> None:
        # A name that every file system takes, whatever the space is called.
        self._folder = Path(directory) / hashlib.sha256(space.encode(errors="replace")).hexdigest()[:16]
        self._max_bytes = max_bytes
        self._own: set[str] = set()

    def new(self, producer_id: str) -> "Spool":
        """Makes a spool for a producer; nothing is on disk before its first event."""
        self._own.add(producer_id)
        return Spool(self._folder / producer_id, self)

    def adopt(self) -> "Spool | None":
        """Returns a spool whose process is gone, or None."""
        if not self._folder.is_dir():
            return None
        for folder in sorted(self._folder.iterdir()):
            if folder.name not in self._own and folder.is_dir():
                spool = Spool(folder, self)
                if spool.lock():
                    self._own.add(folder.name)
                    return spool
        return None

    def let_go(self, spool: "Spool") -> None:
        """Gives an adopted spool back, for another process or a later start."""
        spool.unlock()
        self._own.discard(spool.producer_id)

    def room(self) -> int:
        """Returns how many more bytes are within the limit, over all producers of the space."""
        return self._max_bytes - self._used()

    def _used(self) -> int:
        total = 0
        for folder, _, names in os.walk(self._folder):
            for name in names:
                try:
                    total += os.stat(os.path.join(folder, name)).st_size
                except OSError:
                    # Deleted meanwhile by the process whose it was.
                    continue
        return total


@dataclass(slots=True, eq=False)
class _Segment:
    path: Path
    last_seq: int = 0
    size: int = 0


class Spool:
    """The spool of one producer. Only the sender's thread uses it."""

    def __init__(self, folder: Path, space: SpaceSpool) -> None:
        self._folder = folder
        self._space = space
        self._lock_file: int | None = None
        self._writing: int | None = None
        self._segments: list[_Segment] = []
        self._reading: _Segment | None = None
        self._offset = 0
        self._read_through = 0
        self._faulty = False
        self.written_through = 0
        """The last seq that is on disk; 0: nothing is."""

    @property
    def producer_id(self) -> str:
        """Whose it is."""
        return self._folder.name

    @property
    def empty(self) -> bool:
        """Whether it holds nothing that is still needed."""
        return not self._segments

    @property
    def has_unread(self) -> bool:
        """Whether there is more to read."""
        return self._read_through < self.written_through

    def lock(self) -> bool:
        """Takes the folder for this process; returns whether it could be had."""
        if self._lock_file is not None:
            return True
        self._folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if sys.platform == "win32":
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever had it may have deleted the folder between the two lines above.
            if os.stat(self._folder / _LOCK).st_ino != os.fstat(handle).st_ino:
                raise OSError("the lock is of a folder that is gone")
        except OSError:
            os.close(handle)
            return False
        self._lock_file = handle
        return True

    def load(self) -> int:
        """Finds what another process left; returns how many events there are."""
        events = 0
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            segment = _Segment(path, size=path.stat().st_size)
            with path.open("rb") as file:
                for entry in _frames(file):
                    segment.last_seq = entry.last_seq
                    events += entry.event is not None
            if not segment.last_seq:
                # Nothing in it is whole.
                path.unlink()
                continue
            self._segments.append(segment)
            self.written_through = max(self.written_through, segment.last_seq)
        return events

    def append(self, entries: list[Entry]) -> int:
        """Writes entries; returns how many of them are on disk now, from the first on."""
        fitting = self._fitting(entries)
        written = 0
        try:
            if fitting and not self.lock():
                raise OSError("its folder is held by another process")
            while written < fitting:
                written += self._write(entries[written : min(fitting, written + _TOGETHER)])
        except OSError as error:
            if not self._faulty:
                _log.warning("The spool cannot be written (%s): events stay in memory.", error.strerror or error)
            self._faulty = True
        else:
            self._faulty = False
        return written

    def _fitting(self, entries: list[Entry]) -> int:
        """Returns how many entries there is room for, from the first on."""
        room = self._space.room()
        for number, entry in enumerate(entries):
            room -= entry.size + _OVERHEAD
            if room < 0:
                return number
        return len(entries)

    def _write(self, entries: list[Entry]) -> int:
        if self._writing is None or self._segments[-1].size >= _SEGMENT_BYTES:
            self._writing = self._next_segment(entries[0].seq)
        frames = b"".join(map(_frame, entries))
        try:
            # To the system at once: what was written survives the end of this process, of whatever kind.
            if os.write(self._writing, frames) != len(frames):
                raise OSError("the disk is full")
        except OSError:
            # What stands behind a torn frame is not read: the next one needs a segment of its own.
            os.close(self._writing)
            self._writing = None
            raise
        segment = self._segments[-1]
        segment.size += len(frames)
        segment.last_seq = self.written_through = entries[-1].last_seq
        return len(entries)

    def _next_segment(self, seq: int) -> int:
        if self._writing is not None:
            os.close(self._writing)
            self._writing = None
        path = self._folder / f"{seq:020d}{_SUFFIX}"
        writing = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        if self._segments and self._segments[-1].path == path:
            # Its first frame was torn; it begins anew.
            self._segments.pop()
        self._segments.append(_Segment(path))
        return writing

    def read(self, max_events: int, max_bytes: int) -> list[Entry]:
        """Reads on, in order."""
        found: list[Entry] = []
        size = 0
        while self.has_unread and len(found) < max_events and size < max_bytes:
            segment = next((each for each in self._segments if each.last_seq > self._read_through), None)
            if segment is None:
                self._read_through = self.written_through
                break
            if self._reading is not segment:
                self._reading, self._offset = segment, 0
            with segment.path.open("rb") as file:
                file.seek(self._offset)
                for entry in _frames(file):
                    self._offset = file.tell()
                    if entry.seq <= self._read_through:
                        continue
                    self._read_through = entry.last_seq
                    entry.spooled = True
                    size += entry.size
                    found.append(entry)
                    if len(found) >= max_events or size >= max_bytes:
                        return found
            # A segment ends here; what is behind a fault on the disk is lost.
            self._read_through = max(self._read_through, segment.last_seq)
        return found

    def skip(self) -> None:
        """Takes all that is written for read."""
        self._read_through = self.written_through

    def release(self, seq: int) -> None:
        """Deletes what is not needed once everything up to this seq is committed."""
        while self._segments and self._segments[0].last_seq <= seq:
            if len(self._segments) == 1 and self._writing is not None:
                os.close(self._writing)
                self._writing = None
            self._segments.pop(0).path.unlink(missing_ok=True)

    def unlock(self) -> None:
        """Gives the folder up, and takes it away where nothing is left in it."""
        if self._lock_file is not None and not self._segments:
            # While it is still held: nobody else can be about to write into it.
            for path in (*self._folder.glob(f"*{_SUFFIX}"), self._folder / _LOCK):
                path.unlink(missing_ok=True)
            self._folder.rmdir()
        self.forget()

    def forget(self) -> None:
        """Closes what is open; in a forked child this does not touch what the parent holds."""
        for handle in (self._writing, self._lock_file):
            if handle is not None:
                os.close(handle)
        self._writing = self._lock_file = None


def _frame(entry: Entry) -> bytes:
    kind = entry.kind.encode()
    dropped = b"\0" if entry.event is None else b"\1"
    body = bytes([len(kind)]) + kind + dropped + (entry.event or b"")
    head = struct.pack("<QQ", entry.seq, entry.last_seq)
    return _FRAME.pack(len(body), zlib.crc32(head + body), entry.seq, entry.last_seq) + body


def _frames(file: BinaryIO) -> Iterator[Entry]:
    while len(head := file.read(_FRAME.size)) == _FRAME.size:
        length, crc, seq, last_seq = _FRAME.unpack(head)
        if not 2 <= length <= _LARGEST_FRAME or len(body := file.read(length)) != length:
            return
        if zlib.crc32(head[8:] + body) != crc:
            return
        kind_end = 1 + body[0]
        event = body[kind_end + 1 :] if body[kind_end : kind_end + 1] == b"\1" else None
        yield Entry(seq, last_seq, body[1:kind_end].decode(errors="replace"), event)
