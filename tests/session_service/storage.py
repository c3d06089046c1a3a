"""Sessions as tests drive them: through the servicer, in few words."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from google.protobuf.empty_pb2 import Empty
from sqlalchemy import event, func, select

import session_service
from ramet.session.v1 import session_pb2 as pb
from ramet_server.database.database import Database
from ramet_server.database.tables import session as tables
from ramet_server.domain.call import Call
from ramet_server.domain.limits import Limits

T = TypeVar("T")

NOTHING, EVERYTHING = Empty(), Empty()

ROLES = {"s": pb.ROLE_SYSTEM, "u": pb.ROLE_USER, "a": pb.ROLE_ASSISTANT, "t": pb.ROLE_TOOL}


class TurnedClock:
    """The machine's clock, turned by hand."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        """Returns the moment that tests want."""
        return datetime.now(UTC) + self.ahead


def records(text: str) -> list[pb.Record]:
    """Reads ``u a(x,y) t(x)``: a user record, an assistant that calls x and y, the answer to x."""
    made = []
    for word in text.split():
        ids = word[2:-1].split(",") if "(" in word else []
        record = pb.Record(role=ROLES[word[0]], content=word)
        if word[0] == "t":
            record.tool_call_id = ids[0]
        else:
            record.tool_calls.extend(pb.ToolCall(id=call_id, name="tool", arguments_json="{}") for call_id in ids)
        made.append(record)
    return made


class Storage:
    """The sessions of one space."""

    def __init__(self, database: Database, space: str, limits: Limits, clock: TurnedClock) -> None:
        self.database = database
        self.space = space
        self.limits = limits
        self.clock = clock
        self.service = session_service.build(database, limits, clock)
        self.sweep = session_service.build_sweep(database, limits, clock)

    @property
    def call(self) -> Call:
        """A call without a deadline."""
        return Call(self.space)

    def with_limits(self, **limits: Any) -> "Storage":
        """Returns the same sessions under other limits."""
        return Storage(self.database, self.space, replace(self.limits, **limits), self.clock)

    def put(self, session_id: str = "main", text: str = "", **fields: Any) -> pb.Session:
        """Creates or updates a session, and appends records to it."""
        metadata = {name: fields.pop(name) for name in ("label", "tags", "metadata_json") if name in fields}
        request = pb.PutSessionRequest(session=pb.Session(id=session_id, **metadata), **fields)
        session = self.service.PutSession(request, self.call)
        if text:
            self.append(session.id, text)
        return session

    def append(self, session_id: str, text: str, **fields: Any) -> pb.AppendRecordsResponse:
        """Appends records."""
        return self.append_all(session_id, records(text), **fields)

    def append_all(self, session_id: str, made: Sequence[pb.Record], **fields: Any) -> pb.AppendRecordsResponse:
        """Appends these records."""
        request = pb.AppendRecordsRequest(session_id=session_id, records=made, **fields)
        return self.service.AppendRecords(request, self.call)

    def append_together(self, *requests: pb.AppendRecordsRequest, calls: Sequence[Call] = ()) -> list[Any]:
        """Does appends as one group; returns the seqs, error or ALONE of each."""
        gathered = self.service.gathers["AppendRecords"]
        # In the way of the server: a reading may change the request, so the caller's own must stay whole.
        copies = [pb.AppendRecordsRequest.FromString(request.SerializeToString()) for request in requests]
        answers = gathered.run(list(calls) or [self.call for _ in requests], [gathered.read(copy) for copy in copies])
        return [getattr(answer, "seqs", answer) for answer in answers]

    def get(self, session_id: str = "main") -> pb.Session:
        """Reads a session."""
        return self.service.GetSession(pb.GetSessionRequest(session_id=session_id), self.call)

    def page(self, session_id: str = "main", **fields: Any) -> pb.ListRecordsResponse:
        """Lists one page of records."""
        return self.service.ListRecords(pb.ListRecordsRequest(session_id=session_id, **fields), self.call)

    def listed(self, session_id: str = "main", **fields: Any) -> list[pb.Record]:
        """Lists records, all pages."""
        page = self.page(session_id, **fields)
        found = list(page.records)
        while page.next_page_token:
            page = self.page(session_id, page_token=page.next_page_token, **fields)
            assert page.records
            found += page.records
        return found

    def seqs(self, session_id: str = "main", **fields: Any) -> list[int]:
        """Lists the seqs of records, all pages."""
        return [record.seq for record in self.listed(session_id, **fields)]

    def said(self, session_id: str = "main") -> str:
        """Tells the contents of all records, in the words of ``records``."""
        return " ".join(record.content for record in self.listed(session_id))

    def trim(self, session_id: str, keep_last: int, **fields: Any) -> pb.TrimRecordsResponse:
        """Trims a session."""
        request = pb.TrimRecordsRequest(session_id=session_id, keep_last=keep_last, **fields)
        return self.service.TrimRecords(request, self.call)

    def truncate(self, session_id: str, after_seq: int, **fields: Any) -> int:
        """Rewinds a session; returns the new head."""
        request = pb.TruncateRecordsRequest(session_id=session_id, after_seq=after_seq, **fields)
        return self.service.TruncateRecords(request, self.call).head_seq

    def erase(self, session_id: str, seq: int, **fields: Any) -> pb.Record:
        """Erases one record."""
        return self.service.EraseRecord(pb.EraseRecordRequest(session_id=session_id, seq=seq, **fields), self.call)

    def fork(self, source: str, child: str = "", **fields: Any) -> pb.ForkSessionResponse:
        """Forks a session; all of its history unless the fields say otherwise."""
        if not fields.keys() & {"none", "all", "up_to_seq", "last", "records"}:
            fields["all"] = EVERYTHING
        request = pb.ForkSessionRequest(source_session_id=source, session_id=child, **fields)
        return self.service.ForkSession(request, self.call)

    def delete(self, session_id: str, **fields: Any) -> None:
        """Deletes a session."""
        self.service.DeleteSession(pb.DeleteSessionRequest(session_id=session_id, **fields), self.call)

    def archive(self, session_id: str, **fields: Any) -> pb.Session:
        """Archives a session."""
        return self.service.ArchiveSession(pb.ArchiveSessionRequest(session_id=session_id, **fields), self.call)

    def context(self, session_id: str = "main", **fields: Any) -> pb.GetContextResponse:
        """Reads what a send needs."""
        return self.service.GetContext(pb.GetContextRequest(session_id=session_id, **fields), self.call)

    def put_insight(self, session_id: str, content: str, **fields: Any) -> pb.Slot:
        """Writes the insight."""
        request = pb.PutInsightRequest(session_id=session_id, content=content, **fields)
        return self.service.PutInsight(request, self.call)

    def insight(self, session_id: str = "main") -> pb.Slot:
        """Reads the insight."""
        return self.service.GetInsight(pb.GetInsightRequest(session_id=session_id), self.call)

    def origin(self, session_id: str) -> str:
        """Returns the internal id of a session."""
        t = tables.session.c
        query = select(t.origin).where(t.space_id == self.space, t.session_id == session_id)
        return self.database.read(self.call, lambda connection: str(connection.execute(query).scalar_one()))

    def rows(self, table: str, *origins: str) -> int:
        """Counts rows: of the space, or of origins where the table knows no space."""
        t = getattr(tables, table)
        query = select(func.count()).select_from(t)
        if "space_id" in t.c:
            query = query.where(t.c.space_id == self.space)
        else:
            query = query.where(t.c[next(iter(t.primary_key)).name].in_(origins))
        return self.database.read(self.call, lambda connection: int(connection.execute(query).scalar_one()))


def at_once(count: int, work: Callable[[int], T]) -> list[T]:
    """Runs some work on threads at the same time; returns results by number, and raises what one raised."""
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(work, range(count)))


@contextmanager
def statements(database: Database) -> Iterator[list[tuple[str, Any]]]:
    """Collects the statements that run within the block, with their parameters."""
    seen: list[tuple[str, Any]] = []

    def note(_c: object, _cursor: object, statement: str, parameters: Any, _x: object, _many: bool) -> None:
        seen.append((statement, parameters))

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
