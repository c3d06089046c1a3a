"""Folders of sessions, each with a ``meta.json``, as lines of an archive.

A folder that has no ``meta.json`` itself is one of sessions: each folder in it that has one is a session, and so is
each in a folder ``sessions`` of it. Read of a session's folder, all of it optional but ``meta.json``:

* ``meta.json``: ``id`` (else the folder's name), ``label`` (``name``, ``title``), ``status`` (active, archived),
  ``turnCount``, ``tags``, ``metadata``, ``createdAt``, ``updatedAt``, ``lastActiveAt``, and the place in the forest:
  ``parentId``, ``refs``, ``index``, ``sourceSessionId``; and ``systemPrompt``, ``insight``, ``memory``.
* ``topology.json`` or ``node.json``: the place in the forest, where it is kept apart.
* ``config.json``: ``systemPrompt`` and ``skills``, the frozen config.
* ``records.jsonl``, ``messages.jsonl``, ``records.json`` or ``messages.json``: the history; see ``messages``.
* ``systemPrompt``, ``insight`` and ``memory``, also as ``system_prompt`` or ``system-prompt``, with no ending, ``.md``
  or ``.txt``: the slots.

Names in snake_case count as well. Depth and children follow from the parents; ``index`` orders siblings.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ramet_server.archiving.errors import ArchiveError
from ramet_server.archiving.lines import Line, refs_line
from ramet_server.archiving.messages import compact, moment_of, taken
from ramet_server.archiving.transcripts import Transcript, root_line, session_lines
from ramet_server.domain.errors import RametError
from session_service.rules.values import SlotName, Status
from tree_service.rules.archiving.ports import DatedRef

_HISTORIES = ("records.jsonl", "messages.jsonl", "records.json", "messages.json")
_PLACES = ("topology.json", "node.json")
_SLOTS = {
    SlotName.SYSTEM_PROMPT: ("systemPrompt", "system_prompt", "system-prompt"),
    SlotName.INSIGHT: ("insight",),
    SlotName.MEMORY: ("memory",),
}
_ENDINGS = ("", ".md", ".txt")


@dataclass(frozen=True)
class _Folder:
    """What is read of one session's folder but its history."""

    path: Path
    transcript: Transcript
    parent_id: str | None
    source_id: str | None
    refs: tuple[str, ...]
    index: int
    config: Mapping[str, Any]


def read_folder(top: Path, now: datetime) -> Iterator[tuple[int, Line]]:
    """Yields the lines of an archive for a folder, numbered by session; raises ArchiveError that names the folder."""
    paths = session_folders(top)
    if not paths:
        raise ArchiveError(1, f"no folder with a meta.json is in {top}", "folder")
    # Without their histories, which may be long.
    folders = [_read(number, path) for number, path in enumerate(paths, start=1)]
    numbers = {folder.transcript.id: number for number, folder in enumerate(folders, start=1)}
    for number, folder in enumerate(folders, start=1):
        try:
            transcript = replace(folder.transcript, messages=_history(folder.path))
            for line in session_lines(transcript, now):
                yield number, line
        except (RametError, ValueError, TypeError, OSError) as error:
            raise ArchiveError(number, f"{folder.path.name}: {error}", "folder") from error
    ordered = _parents_first(folders)
    for folder in ordered:
        yield numbers[folder.transcript.id], _node(folder, now)
    here = numbers.keys()
    for folder in ordered:
        refs = [DatedRef(folder.transcript.id, target, now) for target in folder.refs if target in here]
        if refs:
            yield numbers[folder.transcript.id], refs_line(refs)


def session_folders(top: Path) -> list[Path]:
    """Returns the folders of sessions, by name."""
    if (top / "meta.json").is_file():
        return [top]
    within = top / "sessions" if (top / "sessions").is_dir() else top
    return sorted(path for path in within.iterdir() if (path / "meta.json").is_file())


def _read(number: int, path: Path) -> _Folder:
    try:
        meta = _object(path / "meta.json")
        place = dict(meta)
        for name in _PLACES:
            if (path / name).is_file():
                place |= _object(path / name)
        config = _object(path / "config.json") if (path / "config.json").is_file() else {}
        refs = place.get("refs") or ()
        index = place.get("index")
        parent, source = taken(place, "parentId", "parent_id"), taken(place, "sourceSessionId", "source_session_id")
        return _Folder(
            path,
            _transcript(path, meta),
            None if parent is None else str(parent),
            None if source is None else str(source),
            tuple(map(str, refs)),
            index if isinstance(index, int) else 0,
            config,
        )
    except (ValueError, TypeError, OSError) as error:
        raise ArchiveError(number, f"{path.name}: {error}", "folder") from error


def _transcript(path: Path, meta: dict[str, Any]) -> Transcript:
    status = str(taken(meta, "status") or "active").lower()
    if status not in ("active", "archived"):
        raise ValueError(f"the status {status!r} is not known")
    turns = taken(meta, "turnCount", "turn_count")
    metadata = taken(meta, "metadata")
    return Transcript(
        id=str(taken(meta, "id") or path.name),
        messages=[],
        label=str(taken(meta, "label", "name", "title") or ""),
        tags=tuple(map(str, meta.get("tags") or ())),
        metadata_json=None if metadata is None else compact(metadata),
        status=Status(status.upper()),
        turn_count=turns if isinstance(turns, int) else None,
        slots=_slots(path, meta),
        created_at=moment_of(taken(meta, "createdAt", "created_at")),
        updated_at=moment_of(taken(meta, "updatedAt", "updated_at")),
        last_active_at=moment_of(taken(meta, "lastActiveAt", "last_active_at")),
    )


def _slots(path: Path, meta: Mapping[str, Any]) -> dict[SlotName, str]:
    slots: dict[SlotName, str] = {}
    for slot, names in _SLOTS.items():
        for name in names:
            if isinstance(meta.get(name), str):
                slots[slot] = meta[name]
            for ending in _ENDINGS:
                if (path / f"{name}{ending}").is_file():
                    slots[slot] = (path / f"{name}{ending}").read_bytes().decode()
    return slots


def _history(path: Path) -> list[object]:
    for name in _HISTORIES:
        if not (path / name).is_file():
            continue
        raw = (path / name).read_bytes()
        if name.endswith(".jsonl"):
            return [json.loads(line) for line in raw.split(b"\n") if line.strip()]
        told = json.loads(raw)
        messages = told.get("messages", told.get("records")) if isinstance(told, dict) else told
        if not isinstance(messages, list):
            raise TypeError(f"{name} is no list of messages")
        return messages
    return []


def _node(folder: _Folder, now: datetime) -> Line:
    prompt = folder.config.get("systemPrompt", folder.config.get("system_prompt"))
    skills = folder.config.get("skills")
    config: dict[str, Any] = {}
    if isinstance(prompt, str):
        config["system_prompt"] = prompt
    if isinstance(skills, list):
        config["skills"] = skills
    if config:
        config["version"] = 1
    told = {"parent_id": folder.parent_id, "source_session_id": folder.source_id, "config": config or None}
    return {**root_line(folder.transcript, now), **{name: value for name, value in told.items() if value is not None}}


def _parents_first(folders: list[_Folder]) -> list[_Folder]:
    ids = {folder.transcript.id for folder in folders}
    children: dict[str | None, list[_Folder]] = {}
    for folder in sorted(folders, key=lambda each: (each.index, each.transcript.id)):
        # A parent that is not here may stand in the space already; if not, the import says so.
        children.setdefault(folder.parent_id if folder.parent_id in ids else None, []).append(folder)
    ordered = list(children.get(None, ()))
    for folder in ordered:
        ordered += children.get(folder.transcript.id, ())
    if len(ordered) < len(folders):
        left = min(ids - {folder.transcript.id for folder in ordered})
        raise ArchiveError(1, f"the parents of {left} lead back to it", "folder")
    return ordered


def _object(path: Path) -> dict[str, Any]:
    told = json.loads(path.read_bytes())
    if not isinstance(told, dict):
        raise TypeError(f"{path.name} is no JSON object")
    return told
