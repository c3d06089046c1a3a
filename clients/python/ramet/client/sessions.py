"""The contract SessionStorage from Python: one method per RPC, and iterators that follow the pages."""

from collections.abc import AsyncGenerator, Iterable, Sequence

import grpc
from google.protobuf.field_mask_pb2 import FieldMask

from ramet.client import convert
from ramet.client.arguments import build, each
from ramet.client.calls import PATIENCE_S, Caller, new_request_id
from ramet.client.slots import SlotMethods
from ramet.client.values import (
    Appended,
    Context,
    Diff,
    Forked,
    FoundSessions,
    History,
    Record,
    RecordNews,
    RecordPage,
    Role,
    Session,
    SessionFilter,
    SessionOrder,
    SessionPage,
    SessionServerInfo,
    Trimmed,
)
from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub

__all__ = ["SessionStorageClient"]


class SessionStorageClient(SlotMethods):
    """One session's content: metadata, records, context slots.

    Every method raises a :class:`RametError`. Every write takes a ``request_id``; the client makes one when none is
    given, the same over its own retries. Give your own to make a retry of yours safe as well: for 24 hours the same
    request with the same id writes nothing and answers with the first result.
    """

    def __init__(self, channel: grpc.aio.Channel, caller: Caller) -> None:
        super().__init__(SessionStorageStub(channel), caller)

    async def get_session(self, session_id: str) -> Session:
        """Reads the metadata of one session."""
        request = build(pb.GetSessionRequest, session_id=session_id)
        return convert.session_in(await self._caller.unary(self._stub.GetSession, request))

    async def batch_get_sessions(self, session_ids: Iterable[str]) -> FoundSessions:
        """Reads the metadata of 1 to 1,000 sessions. Unknown ids are named, not refused."""
        request = build(pb.BatchGetSessionsRequest, session_ids=session_ids)
        reply = await self._caller.unary(self._stub.BatchGetSessions, request)
        return FoundSessions(tuple(map(convert.session_in, reply.sessions)), tuple(reply.missing_session_ids))

    async def list_sessions(
        self,
        where: SessionFilter | None = None,
        *,
        order: SessionOrder = SessionOrder.ID,
        descending: bool = False,
        page_size: int = 0,
        page_token: str | None = None,
    ) -> SessionPage:
        """Lists one page of sessions: 100, or up to 1,000. A page may be short, even empty, before the end."""
        request = build(
            pb.ListSessionsRequest,
            filter=convert.filter_out(where) if where else None,
            order=convert.order_out(order),
            descending=descending,
            page_size=page_size,
            page_token=page_token or "",
        )
        reply = await self._caller.unary(self._stub.ListSessions, request)
        return SessionPage(tuple(map(convert.session_in, reply.sessions)), reply.next_page_token or None)

    async def iter_sessions(
        self, where: SessionFilter | None = None, *, order: SessionOrder = SessionOrder.ID, descending: bool = False
    ) -> AsyncGenerator[Session, None]:
        """Yields every session that the filter admits, page by page."""
        token: str | None = ""
        while token is not None:
            page = await self.list_sessions(where, order=order, descending=descending, page_size=1000, page_token=token)
            for session in page.sessions:
                yield session
            token = page.next_page_token

    async def put_session(
        self,
        session_id: str | None = None,
        *,
        label: str | None = None,
        tags: Iterable[str] | None = None,
        metadata_json: str | None = None,
        system_prompt: str | None = None,
        expected_version: int | None = None,
        request_id: str | None = None,
    ) -> Session:
        """Creates a session, or updates what is given of one; None leaves a field as it is, empty clears it.

        Without ``session_id`` the server makes an id. ``expected_version`` 0 only creates; another only updates that
        very version; None does either. A ``system_prompt`` is written in the same transaction.
        """
        session = build(
            pb.Session, id=session_id or "", label=label or "", tags=tags or (), metadata_json=metadata_json or ""
        )
        given = {"label": label, "tags": tags, "metadata_json": metadata_json}
        mask = [path for path, value in given.items() if value is not None]
        request = build(
            pb.PutSessionRequest,
            session=session,
            update_mask=FieldMask(paths=mask) if mask else None,
            expected_version=expected_version,
            system_prompt=system_prompt,
            request_id=request_id or new_request_id(),
        )
        return convert.session_in(await self._caller.unary(self._stub.PutSession, request))

    async def archive_session(
        self, session_id: str, *, expected_version: int | None = None, request_id: str | None = None
    ) -> Session:
        """Archives a session: it stays readable, restorable and deletable; every other write is refused."""
        request = build(
            pb.ArchiveSessionRequest,
            session_id=session_id,
            expected_version=expected_version,
            request_id=request_id or new_request_id(),
        )
        return convert.session_in(await self._caller.unary(self._stub.ArchiveSession, request))

    async def restore_session(
        self, session_id: str, *, expected_version: int | None = None, request_id: str | None = None
    ) -> Session:
        """Makes an archived session writable again."""
        request = build(
            pb.RestoreSessionRequest,
            session_id=session_id,
            expected_version=expected_version,
            request_id=request_id or new_request_id(),
        )
        return convert.session_in(await self._caller.unary(self._stub.RestoreSession, request))

    async def delete_session(
        self, session_id: str, *, expected_version: int | None = None, request_id: str | None = None
    ) -> None:
        """Deletes a session with its slots. Its forks keep what they inherited. A node in the tree stays."""
        request = build(
            pb.DeleteSessionRequest,
            session_id=session_id,
            expected_version=expected_version,
            request_id=request_id or new_request_id(),
        )
        await self._caller.unary(self._stub.DeleteSession, request)

    async def append_records(
        self,
        session_id: str,
        records: Iterable[Record],
        *,
        expected_head_seq: int | None = None,
        consume_insight_version: int | None = None,
        turn_delta: int = 0,
        request_id: str | None = None,
    ) -> Appended:
        """Appends 1 to 1,000 records, all or none.

        ``expected_head_seq`` refuses the append when somebody else appended meanwhile. ``consume_insight_version`` is
        the version of the insight that this turn read: it is unset in the same transaction, but a newer one stays.
        """
        request = build(
            pb.AppendRecordsRequest,
            session_id=session_id,
            records=each(convert.record_out, records, "records"),
            expected_head_seq=expected_head_seq,
            consume_insight_version=consume_insight_version,
            turn_delta=turn_delta,
            request_id=request_id or new_request_id(),
        )
        reply = await self._caller.unary(self._stub.AppendRecords, request)
        return Appended(
            seqs=tuple(reply.seqs),
            session=convert.session_in(reply.session) if reply.HasField("session") else None,
            insight_consumed=reply.insight_consumed,
            insight_version=reply.insight_version,
        )

    async def list_records(
        self,
        session_id: str,
        *,
        roles: Sequence[Role] = (),
        after_seq: int | None = None,
        before_seq: int | None = None,
        descending: bool = False,
        page_size: int = 0,
        offset: int = 0,
        page_token: str | None = None,
    ) -> RecordPage:
        """Lists one page of records by seq: 100, or up to 1,000, or what fits into the server's page bytes."""
        request = build(
            pb.ListRecordsRequest,
            session_id=session_id,
            roles=each(convert.role_out, roles, "roles"),
            after_seq=after_seq,
            before_seq=before_seq,
            order=pb.RECORD_ORDER_DESCENDING if descending else pb.RECORD_ORDER_ASCENDING,
            page_size=page_size,
            offset=offset,
            page_token=page_token or "",
        )
        reply = await self._caller.unary(self._stub.ListRecords, request)
        records = tuple(map(convert.record_in, reply.records))
        return RecordPage(records, reply.next_page_token or None, reply.head_seq, reply.floor_seq)

    async def iter_records(
        self,
        session_id: str,
        *,
        roles: Sequence[Role] = (),
        after_seq: int | None = None,
        before_seq: int | None = None,
        descending: bool = False,
    ) -> AsyncGenerator[Record, None]:
        """Yields records by seq, page by page, so that a history of any length fits into memory."""
        token: str | None = ""
        while token is not None:
            page = await self.list_records(
                session_id,
                roles=roles,
                after_seq=after_seq,
                before_seq=before_seq,
                descending=descending,
                page_size=1000,
                page_token=token,
            )
            for record in page.records:
                yield record
            token = page.next_page_token

    async def trim_records(
        self,
        session_id: str,
        keep_last: int,
        *,
        expected_head_seq: int | None = None,
        request_id: str | None = None,
    ) -> Trimmed:
        """Keeps the most recent records and drops the older ones; a tool-call group is never split."""
        request = build(
            pb.TrimRecordsRequest,
            session_id=session_id,
            keep_last=keep_last,
            expected_head_seq=expected_head_seq,
            request_id=request_id or new_request_id(),
        )
        reply = await self._caller.unary(self._stub.TrimRecords, request)
        return Trimmed(reply.kept_records, reply.floor_seq)

    async def truncate_records(
        self,
        session_id: str,
        after_seq: int,
        *,
        expected_head_seq: int | None = None,
        request_id: str | None = None,
    ) -> int:
        """Rewinds: drops every record after a seq, and returns the new head. Seqs are not reused."""
        request = build(
            pb.TruncateRecordsRequest,
            session_id=session_id,
            after_seq=after_seq,
            expected_head_seq=expected_head_seq,
            request_id=request_id or new_request_id(),
        )
        return (await self._caller.unary(self._stub.TruncateRecords, request)).head_seq

    async def erase_record(self, session_id: str, seq: int, *, request_id: str | None = None) -> Record:
        """Erases the content and JSON of one record for good, in every session that shows it."""
        request = build(
            pb.EraseRecordRequest, session_id=session_id, seq=seq, request_id=request_id or new_request_id()
        )
        return convert.record_in(await self._caller.unary(self._stub.EraseRecord, request))

    async def watch_records(
        self, session_id: str, *, after_seq: int | None = None, patience_s: float = PATIENCE_S
    ) -> AsyncGenerator[RecordNews, None]:
        """Yields the records after a seq, 0 for all, and then each new one as it is committed; it never ends by itself.

        Without ``after_seq`` only what comes from now on is told; the first news come at once and say where that is.
        When the server drains or is lost, the watch goes on elsewhere from where it was, and raises Unavailable only
        if that takes more than ``patience_s`` seconds. To go on later, even in another process, watch after the last
        ``through_seq``. Raises OutOfRange where a trim has overtaken the watch: go on after its ``floor_seq`` (in
        ``metadata``), or read anew; and NotFound once the session is deleted.
        """
        request = build(pb.WatchRecordsRequest, session_id=session_id, after_seq=after_seq)

        def move_on(news: pb.WatchRecordsResponse) -> None:
            request.after_seq = news.through_seq

        async for message in self._caller.watch(self._stub.WatchRecords, request, move_on, patience_s):
            yield convert.news_in(message)

    async def get_context(
        self, session_id: str, *, max_records: int | None = None, max_characters: int | None = None
    ) -> Context:
        """Reads what one send needs in one call: system prompt, insight, and the newest history within the budget."""
        request = build(
            pb.GetContextRequest, session_id=session_id, max_records=max_records, max_characters=max_characters
        )
        return convert.context_in(await self._caller.unary(self._stub.GetContext, request))

    async def fork_session(
        self,
        source_session_id: str,
        session_id: str | None = None,
        *,
        history: History | None = None,
        label: str = "",
        tags: Iterable[str] = (),
        metadata_json: str | None = None,
        opening_prompt: str | None = None,
        system_prompt: str | None = None,
        request_id: str | None = None,
    ) -> Forked:
        """Makes a new session over the history of a source, copying no record; without ``history`` it inherits none.

        ``opening_prompt`` becomes an assistant record. Without ``system_prompt`` the source's is taken as it is now.
        This alone makes no node: see :class:`Orchestrator` for forks that stand in the forest.
        """
        request = build(
            pb.ForkSessionRequest,
            source_session_id=source_session_id,
            session_id=session_id or "",
            label=label,
            tags=tags,
            metadata_json=metadata_json or "",
            opening_prompt=opening_prompt,
            system_prompt=system_prompt,
            request_id=request_id or new_request_id(),
        )
        convert.history_out(history or History.none(), request)
        reply = await self._caller.unary(self._stub.ForkSession, request)
        return Forked(convert.session_in(reply.session), reply.inherited_through_seq, reply.incomplete_records)

    async def diff_sessions(self, left_session_id: str, right_session_id: str) -> Diff:
        """Compares two sessions: how far they show the very same records, and where each goes on alone."""
        request = build(pb.DiffSessionsRequest, left_session_id=left_session_id, right_session_id=right_session_id)
        return convert.diff_in(await self._caller.unary(self._stub.DiffSessions, request))

    async def get_server_info(self) -> SessionServerInfo:
        """Tells the server's version, schema revision and limits."""
        return convert.server_info_in(await self._caller.unary(self._stub.GetServerInfo, pb.GetServerInfoRequest()))
