"""The ids under which an import stores what an archive names."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import IO, Protocol

from ramet_server.archiving.errors import ArchiveError
from ramet_server.domain.errors import RametError
from ramet_server.domain.ids import check_id, new_id


class Ids(Protocol):
    """Maps the ids of sessions (which are those of nodes) and of diagnoses."""

    def session(self, archived_id: str) -> str:
        """Returns the id for a session or node of the archive."""
        ...

    def other_session(self, archived_id: str) -> str:
        """Returns the id for a session that something of the archive names: its own where it is not in the archive."""
        ...

    def diagnosis(self, archived_id: str) -> str:
        """Returns the id for a diagnosis of the archive."""
        ...


class KeptIds:
    """Every id stays."""

    def session(self, archived_id: str) -> str:
        """Returns the id as it is."""
        return archived_id

    other_session = session
    diagnosis = session


class NewIds:
    """Every id becomes a new one, which a file can remember.

    Each line of the file is ``{"kind": "session" or "diagnosis", "from": ..., "to": ...}``, written before its id is
    used: an import that goes on with the same file goes on with the same ids.
    """

    def __init__(self, file: Path | None = None, make: Callable[[], str] = new_id) -> None:
        self._make = make
        self._known: dict[tuple[str, str], str] = {}
        self._out: IO[str] | None = None
        if file is not None:
            whole = self._read(file) if file.exists() else 0
            # A line that was cut when an import was killed was not used yet.
            self._out = file.open("r+" if file.exists() else "w", encoding="utf-8", newline="\n")
            self._out.seek(whole)
            self._out.truncate()

    def session(self, archived_id: str) -> str:
        """Returns the new id of a session or node."""
        return self._new("session", archived_id)

    def other_session(self, archived_id: str) -> str:
        """Returns the new id of a session of the archive, and any other id as it is."""
        return self._known.get(("session", archived_id), archived_id)

    def diagnosis(self, archived_id: str) -> str:
        """Returns the new id of a diagnosis."""
        return self._new("diagnosis", archived_id)

    def close(self) -> None:
        """Closes the file."""
        if self._out is not None:
            self._out.close()

    def _new(self, kind: str, archived_id: str) -> str:
        made = self._known.get((kind, archived_id))
        if made is None:
            made = self._known[kind, archived_id] = self._make()
            if self._out is not None:
                self._out.write(json.dumps({"kind": kind, "from": archived_id, "to": made}) + "\n")
                self._out.flush()
        return made

    def _read(self, file: Path) -> int:
        whole = 0
        for number, line in enumerate(file.read_bytes().splitlines(keepends=True), start=1):
            if not line.endswith(b"\n"):
                break
            try:
                told = json.loads(line)
                self._known[str(told["kind"]), str(told["from"])] = check_id(told["to"], "to")
            except (ValueError, TypeError, LookupError, RametError):
                raise ArchiveError(number, "is no line of a map of ids", f"{file.name}, line") from None
            whole += len(line)
        return whole
