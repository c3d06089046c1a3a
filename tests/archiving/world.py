"""Spaces that leave for archives and arrive from them, and forests made by chance."""

from __future__ import annotations

import contextlib
import io
import json
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from google.protobuf.message import Message
from sqlalchemy import func, select

from ramet.session.v1 import session_pb2 as s
from ramet.telemetry.v1 import telemetry_pb2 as t
from ramet.tree.v1 import tree_pb2 as tr
from ramet_server.archiving import Choices, Counts, Export, Import, KeptIds, Scope, ScopeKind, raw_lines, read_lines
from ramet_server.archiving.id_mapping import Ids
from ramet_server.archiving.lines import Line
from ramet_server.archiving.redacting import Redaction
from ramet_server.database.database import Database
from ramet_server.database.tables import metadata
from ramet_server.domain.call import Call
from ramet_server.domain.errors import RametError
from ramet_server.domain.findings import Finding
from ramet_server.domain.limits import Limits
from ramet_server.sweeping import Sweep
from ramet_server.verifying import Verification
from tests.session_service.storage import Storage, TurnedClock
from tests.telemetry import events as e
from tests.telemetry.world import World as Told
from tests.tree_service.forest import Forest

SPACE = Scope(ScopeKind.SPACE)
HARD = ["", "hi", "größer 漢字", "👩\u200d👩\u200d👧 🌱", 'line\nline\ttab "quoted" \\ \u2028', "x" * 300]
JSON = ["", '{"b": 1, "a": 9007199254740993}', "[1.0, 1e2, 1, -0]", '{"k":"v","k":"w"}', ' {"sp" : null} ']


class Home:
    """One space of one database."""

    def __init__(self, database: Database, space: str) -> None:
        self.database = database
        self.space = space
        self.clock = TurnedClock()
        self.storage = Storage(database, space, Limits(), self.clock)
        self.forest = Forest(database, Call(space), Limits(), self.clock)  # type: ignore[arg-type]  # a clock like theirs
        self.told = Told(database, space, self.clock)  # type: ignore[arg-type]  # as above

    @property
    def call(self) -> Call:
        """A call without a deadline."""
        return Call(self.space)

    def export(self, scope: Scope = SPACE, redaction: Redaction | None = None) -> bytes:
        """Writes an archive."""
        out = io.BytesIO()
        Export(self.database, Limits(), self.clock, scope, redaction).run(self.call, out.write, lambda _: None)
        return out.getvalue()

    def later(self, **by: float) -> None:
        """Lets time pass."""
        self.clock.ahead += timedelta(**by)

    def take(
        self,
        archive: bytes,
        *,
        ids: Ids | None = None,
        resume: bool = False,
        before_line: Callable[[int], None] = lambda _: None,
    ) -> Counts:
        """Reads an archive; returns what is new."""

        def told() -> Iterator[tuple[int, Line]]:
            for number, line in read_lines(raw_lines(io.BytesIO(archive))):
                before_line(number)
                yield number, line

        choices = Choices(ids or KeptIds(), resume=resume)
        return Import(self.database, Limits(), self.clock, self.call, choices).run(told(), lambda _: None)[1]

    def sweep(self) -> None:
        """Makes one pass of the sweep."""
        Sweep(self.database, Limits(), self.clock).run(Call(""))

    def findings(self) -> list[Finding]:
        """Tells what a verification finds wrong anywhere in the database."""
        return list(Verification(self.database, Limits(), self.clock).run(Call("")))

    def rows(self, table: str) -> int:
        """Counts all rows of a table, whatever their space."""
        wanted = select(func.count()).select_from(metadata.tables[table])
        return self.database.read(self.call, lambda connection: int(connection.execute(wanted).scalar_one()))

    def session_ids(self) -> list[str]:
        """Lists the sessions by id."""
        return [each.id for each in self._pages(self.storage.service.ListSessions, s.ListSessionsRequest(), "sessions")]

    def everything(self) -> dict[str, list[str]]:
        """All that the contracts show of the space, as text."""
        shown: dict[str, list[str]] = {}
        for session_id in self.session_ids():
            shown[f"session {session_id}"] = [str(each) for each in self._session(session_id)]
        for entry in self.forest.entries():
            node_id = entry.node.id
            shown[f"node {node_id}"] = [str(entry), str(self.forest.get(node_id)), str(self.forest.config(node_id))]
        for diagnosis in self._pages(
            self.told.service.ListDiagnosisSessions, t.ListDiagnosisSessionsRequest(), "sessions"
        ):
            chain = self.told.service.GetDecisionChain(
                t.GetDecisionChainRequest(session_id=diagnosis.session_id), self.call
            )
            shown[f"diagnosis {diagnosis.session_id}"] = [_without_row_ids(diagnosis), _without_row_ids(chain)]
        return shown

    def _session(self, session_id: str) -> list[Message]:
        service, call = self.storage.service, self.call
        return [
            self.storage.get(session_id),
            *self.storage.listed(session_id),
            service.GetSystemPrompt(s.GetSystemPromptRequest(session_id=session_id), call),
            service.GetInsight(s.GetInsightRequest(session_id=session_id), call),
            service.GetMemory(s.GetMemoryRequest(session_id=session_id), call),
            self.storage.context(session_id),
        ]

    def _pages(self, method: Callable[..., Any], request: Any, field: str) -> list[Any]:
        found: list[Any] = []
        while True:
            page = method(request, self.call)
            found += getattr(page, field)
            if not page.next_page_token:
                return found
            request.page_token = page.next_page_token


def _without_row_ids(message: Message) -> str:
    """Tells a message without the numbers that its rows have in this database only."""
    copy = type(message)()
    copy.CopyFrom(message)
    _clear(copy)
    return str(copy)


def _clear(message: Any) -> None:
    for field, value in message.ListFields():
        if field.name in ("id", "step_id"):
            message.ClearField(field.name)
        elif field.message_type is not None and field.is_repeated and not field.message_type.GetOptions().map_entry:
            for each in value:
                _clear(each)
        elif field.message_type is not None and not field.is_repeated:
            _clear(value)


class Chance:
    """Fills a space by chance: the same seed does the same."""

    def __init__(self, home: Home, seed: int) -> None:
        self._home = home
        self._random = random.Random(seed)
        self._ids: list[str] = []

    def fill(self, steps: int) -> None:
        """Does so many things; those that are refused change nothing."""
        doings = [
            *[self._create] * 2, *[self._fork] * 5, *[self._append] * 6, self._trim, self._trim, self._rewind,
            self._erase, self._slot, self._slot, self._config, self._refer, self._move, self._delete, self._metadata,
            self._diagnose,
        ]  # fmt: skip
        for _ in range(4):
            self._create()
        for _ in range(steps):
            with contextlib.suppress(RametError):
                self._random.choice(doings)()
        for session_id in self._home.session_ids()[::5]:
            self._home.storage.archive(session_id)

    def _new_id(self) -> str:
        self._ids.append(f"{self._random.choice(['n', 'N', '~ n'])}{len(self._ids)}")
        return self._ids[-1]

    def _some(self) -> str:
        return self._random.choice(self._ids)

    def _create(self) -> None:
        parent = self._some() if self._ids and self._random.random() < 0.5 else None
        new = self._new_id()
        config = tr.Config(system_prompt=self._random.choice(HARD)) if self._random.random() < 0.5 else None
        if config is not None and self._random.random() < 0.7:
            config.skills.names.extend(self._random.sample(["search", "read", "漢字"], self._random.randrange(3)))
        self._home.forest.create(new, parent, label=f"{new} 🌱", config=config)
        if self._random.random() < 0.8:
            self._home.storage.put(
                new, label=f"{new} 🌱", tags=self._random.sample(["b", "a", "ü x"], 2), metadata_json=JSON[1]
            )

    def _fork(self) -> None:
        source, new = self._some(), self._new_id()
        head = self._home.storage.get(source).head_seq
        history: dict[str, Any] = self._random.choice(
            [
                {"all": {}},
                {"all": {}},
                {"up_to_seq": self._random.randint(0, head)},
                {"last": self._random.randint(0, 6)},
                {"none": {}},
                {"records": s.RecordList(records=self._records())},
            ]
        )
        self._home.storage.fork(source, new, opening_prompt=self._random.choice(["", "hello"]), **history)
        if self._random.random() < 0.8:
            self._home.forest.create(new, source, source_session_id=source)

    def _append(self) -> None:
        self._home.storage.append_all(self._some(), self._records(), turn_delta=1)

    def _trim(self) -> None:
        self._home.storage.trim(self._some(), self._random.randint(0, 8))

    def _rewind(self) -> None:
        session_id = self._some()
        self._home.storage.truncate(session_id, self._random.randint(0, self._home.storage.get(session_id).head_seq))

    def _erase(self) -> None:
        session_id = self._some()
        self._home.storage.erase(session_id, self._random.randint(1, self._home.storage.get(session_id).head_seq or 1))

    def _slot(self) -> None:
        session_id, service, call = self._some(), self._home.storage.service, self._home.call
        content = self._random.choice([*HARD, None])
        which = self._random.randrange(4)
        if which == 0:
            service.PutSystemPrompt(s.PutSystemPromptRequest(session_id=session_id, content=content), call)
        elif which == 1:
            service.PutMemory(s.PutMemoryRequest(session_id=session_id, content=content), call)
        elif which == 2:
            service.ClearInsight(s.ClearInsightRequest(session_id=session_id), call)
        else:
            self._home.storage.put_insight(session_id, content or "")

    def _config(self) -> None:
        config = tr.Config()
        if self._random.random() < 0.5:
            config.skills.SetInParent()
        self._home.forest.put_config(self._some(), config)

    def _refer(self) -> None:
        self._home.forest.add_ref(self._some(), self._some())

    def _move(self) -> None:
        self._home.forest.move(self._some(), self._some(), index=0)

    def _delete(self) -> None:
        session_id = self._some()
        self._home.storage.delete(session_id)
        with contextlib.suppress(RametError):
            self._home.forest.delete(session_id, tr.DELETE_POLICY_REPARENT)

    def _metadata(self) -> None:
        self._home.storage.put(self._some(), label="", metadata_json=self._random.choice(JSON))

    def _diagnose(self) -> None:
        number, conversation = self._random.randrange(6), self._some()
        key, name = f"e{self._random.randrange(1 << 30)}", f"d{number}"
        self._home.told.tell(
            e.started(f"{key}a", 1, name, query=self._random.choice(HARD), conversation_id=conversation),
            e.step_completed(
                f"{key}b", f"s{number}", 2, name, model_input_json='{"b":1,"a":[2]}', thought=self._random.choice(HARD)
            ),
            *e.steps(self._random.randrange(3), name, key),
            e.tool(f"{key}c", f"t{key}", 3, name, step_key=f"s{number}", input_params_json='{"q":"漢"}'),
            e.feedback(f"{key}d", e.USEFUL, 4, name, comment=self._random.choice(HARD)),
            e.evaluation(f"{key}e", 5, name, confidence=80, reasoning="because"),
            *([e.completed(f"{key}f", 6, name)] if self._random.random() < 0.5 else []),
        )

    def _records(self) -> list[s.Record]:
        made: list[s.Record] = []
        for _ in range(self._random.randint(1, 5)):
            kind = self._random.randrange(5)
            content = self._random.choice(HARD)
            if kind == 0:
                calls = [
                    s.ToolCall(id=f"c{each}", name="tool", arguments_json=self._random.choice(JSON))
                    for each in range(self._random.randint(1, 3))
                ]
                made.append(s.Record(role=s.ROLE_ASSISTANT, content=content, tool_calls=calls))
                answered = calls[: self._random.randint(0, len(calls))]
                made += [s.Record(role=s.ROLE_TOOL, content=content, tool_call_id=call.id) for call in answered]
            elif kind == 1:
                made.append(s.Record(role=s.ROLE_USER, content=content, parts_json=JSON[3], name="Ann 漢"))
                made[-1].client_time.FromNanoseconds(1_750_000_000_123_456_789)
            else:
                role = self._random.choice([s.ROLE_USER, s.ROLE_ASSISTANT, s.ROLE_SYSTEM])
                made.append(s.Record(role=role, content=content, metadata_json=self._random.choice(JSON)))
        return made


def lines_of(archive: bytes) -> list[dict[str, Any]]:
    """Reads the lines of an archive as objects."""
    return [json.loads(line) for line in archive.splitlines()]


def without_header(archive: bytes) -> Sequence[bytes]:
    """Returns the lines behind the first, which names the space."""
    return archive.split(b"\n")[1:]
