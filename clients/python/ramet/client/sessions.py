"""The contract SessionStorage from Python: one method per RPC, and iterators that follow the pages."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TypeVar, cast

import grpc

from ramet.client import convert
from ramet.client.arguments import build, refused
from ramet.client.calls import PATIENCE_S, Caller, new_request_id
from ramet.client.content import ContentMethods
from ramet.client.errors import RametError
from ramet.client.reruns import Found, Reruns
from ramet.client.transactions import Transaction
from ramet.client.values import (
    Context,
    Diff,
    Forked,
    FoundSessions,
    History,
    Record,
    RecordNews,
    Session,
    SessionFilter,
    SessionOrder,
    SessionPage,
    SessionServerInfo,
)
from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub

__all__ = ["SessionStorageClient"]

_T = TypeVar("_T")


class SessionStorageClient(ContentMethods):
    """One session's content: metadata, records, context slots.

    Every method raises a :class:`RametError`. Every write takes a ``request_id``; the client makes one when none is
    given, the same over its own retries. Give your own to make a retry of yours safe as well: for 24 hours the same
    request with the same id writes nothing and answers with the first result.
    """

    def __init__(self, channel: grpc.aio.Channel, caller: Caller) -> None:
        super().__init__(SessionStorageStub(channel), caller)

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

    def transaction(self, *, request_id: str | None = None) -> Transaction:
        """Makes a transaction: ``async with client.sessions.transaction() as tx: ...``; see :class:`Transaction`.

        It is committed once under its ``request_id``. Given one that was committed before, the block is not entered:
        AlreadyCommitted is raised.
        """
        return Transaction(self._stub, self._caller, request_id)

    async def run_in_transaction(
        self, fn: Callable[[Transaction], Awaitable[_T]], *, attempts: int = 10, request_id: str | None = None
    ) -> _T:
        """Runs a function in a transaction and commits it; returns what the function returned.

        Where others came between, the function runs again, over what is there then: at most ``attempts`` times in all,
        with a pause in between; so it should do nothing but what it does with its transaction. Where the reply to a
        commit was lost, that commit is found, and the function's effects take place once. Where no server is found for
        a minute, Unavailable is raised, however many attempts are left. Given a ``request_id`` that was committed
        before, by an earlier call, the function does not run: AlreadyCommitted is raised.
        """
        reruns: Reruns[_T] = Reruns(attempts, request_id)
        while True:
            transaction = self.transaction(request_id=reruns.request_id)
            try:
                async with transaction:
                    value = await _asynchronous(fn, transaction)
            except RametError as error:
                if transaction.outcome_unknown:
                    reruns.lost(transaction.transaction_id, value)
                try:
                    pause_s = reruns.pause_after(error, begun=bool(transaction.transaction_id))
                except Found as found:
                    return cast(_T, found.value)
            else:
                return value
            await asyncio.sleep(pause_s)

    async def get_server_info(self) -> SessionServerInfo:
        """Tells the server's version, schema revision and limits."""
        return convert.server_info_in(await self._caller.unary(self._stub.GetServerInfo, pb.GetServerInfoRequest()))


def _asynchronous(fn: Callable[[Transaction], Awaitable[_T]], transaction: Transaction) -> Awaitable[_T]:
    if not callable(fn):
        raise refused("fn", "must be a function of a transaction")
    made = fn(transaction)
    if not inspect.isawaitable(made):
        raise refused("fn", "must be an asynchronous function of a transaction")
    return made
