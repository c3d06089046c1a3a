"""Transactions over the content of sessions: reads and writes that take effect together, or not at all."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, cast

from ramet.client.arguments import text
from ramet.client.calls import Caller, new_request_id
from ramet.client.content import ContentMethods
from ramet.client.errors import AlreadyCommitted, Cancelled, DeadlineExceeded, RametError, Unavailable
from ramet.client.steps import StepCaller, Steps, StepStub
from ramet.client.values import Appended, Record, RecordPage, Role, Session, Slot, Trimmed

__all__ = ["Transaction"]


class Transaction:
    """One transaction, made by :meth:`SessionStorageClient.transaction`.

    ``async with client.sessions.transaction() as tx: ...`` commits at the end of the block; where the block raises,
    or :meth:`rollback` was called, nothing is applied. The methods are those of the client, without ``request_id``.
    Reads see what is committed and the transaction's own writes; nobody else sees these before the commit.

    A commit, or a step before it, raises :class:`Aborted` with the reason TRANSACTION_CONFLICT where something that the
    transaction was told of has moved; ``metadata`` names it. :meth:`SessionStorageClient.run_in_transaction` runs again
    then. What the server refuses ends the transaction, but for the NotFound of a read. Between two steps nothing is
    locked, but a server ends a transaction that is open for long: for 60 seconds, unless it was told otherwise.
    """

    def __init__(self, stub: Any, caller: Caller, request_id: str | None) -> None:
        self.request_id = new_request_id() if request_id is None else text(request_id, "request_id")
        """The id under which the commit is found again."""
        self.transaction_id = ""
        """The id that the server gave it when it began: each has its own, also of those with one request id."""
        self.outcome_unknown = False
        """Whether the reply to the commit was lost and no server knew of it: it may still take effect."""
        self._stub = stub
        self._caller = caller
        self._steps: Steps | None = None
        self._rolled_back = False

    async def get_session(self, session_id: str) -> Session:
        """Reads the metadata of one session."""
        return await self._content().get_session(session_id)

    async def put_session(
        self,
        session_id: str | None = None,
        *,
        label: str | None = None,
        tags: Iterable[str] | None = None,
        metadata_json: str | None = None,
        system_prompt: str | None = None,
        expected_version: int | None = None,
    ) -> Session:
        """Creates a session, or updates what is given of one; None leaves a field as it is, empty clears it."""
        return await self._content().put_session(
            session_id,
            label=label,
            tags=tags,
            metadata_json=metadata_json,
            system_prompt=system_prompt,
            expected_version=expected_version,
        )

    async def append_records(
        self,
        session_id: str,
        records: Iterable[Record],
        *,
        expected_head_seq: int | None = None,
        consume_insight_version: int | None = None,
        turn_delta: int = 0,
    ) -> Appended:
        """Appends 1 to 1,000 records, all or none."""
        return await self._content().append_records(
            session_id,
            records,
            expected_head_seq=expected_head_seq,
            consume_insight_version=consume_insight_version,
            turn_delta=turn_delta,
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
        return await self._content().list_records(
            session_id,
            roles=roles,
            after_seq=after_seq,
            before_seq=before_seq,
            descending=descending,
            page_size=page_size,
            offset=offset,
            page_token=page_token,
        )

    async def iter_records(
        self,
        session_id: str,
        *,
        roles: Sequence[Role] = (),
        after_seq: int | None = None,
        before_seq: int | None = None,
        descending: bool = False,
    ) -> AsyncGenerator[Record, None]:
        """Yields records by seq, page by page; each page is a step."""
        records = self._content().iter_records(
            session_id, roles=roles, after_seq=after_seq, before_seq=before_seq, descending=descending
        )
        async for record in records:
            yield record

    async def trim_records(self, session_id: str, keep_last: int, *, expected_head_seq: int | None = None) -> Trimmed:
        """Keeps the most recent records and drops the older ones; a tool-call group is never split."""
        return await self._content().trim_records(session_id, keep_last, expected_head_seq=expected_head_seq)

    async def truncate_records(self, session_id: str, after_seq: int, *, expected_head_seq: int | None = None) -> int:
        """Rewinds: drops every record after a seq, and returns the new head."""
        return await self._content().truncate_records(session_id, after_seq, expected_head_seq=expected_head_seq)

    async def get_system_prompt(self, session_id: str) -> Slot:
        """Reads the system prompt."""
        return await self._content().get_system_prompt(session_id)

    async def put_system_prompt(
        self, session_id: str, content: str | None, *, expected_version: int | None = None
    ) -> Slot:
        """Writes the system prompt; None unsets it."""
        return await self._content().put_system_prompt(session_id, content, expected_version=expected_version)

    async def get_insight(self, session_id: str) -> Slot:
        """Reads the insight."""
        return await self._content().get_insight(session_id)

    async def put_insight(self, session_id: str, content: str, *, expected_version: int | None = None) -> Slot:
        """Writes the insight, replacing one that was not consumed."""
        return await self._content().put_insight(session_id, content, expected_version=expected_version)

    async def clear_insight(self, session_id: str, *, expected_version: int | None = None) -> Slot:
        """Unsets the insight."""
        return await self._content().clear_insight(session_id, expected_version=expected_version)

    async def get_memory(self, session_id: str) -> Slot:
        """Reads the memory."""
        return await self._content().get_memory(session_id)

    async def put_memory(self, session_id: str, content: str | None, *, expected_version: int | None = None) -> Slot:
        """Writes the memory; None unsets it."""
        return await self._content().put_memory(session_id, content, expected_version=expected_version)

    async def rollback(self) -> None:
        """Ends the transaction without applying anything; the block goes on, and takes no more steps."""
        self._rolled_back = True
        self._opened().cancel()

    async def __aenter__(self) -> Self:
        """Begins; raises :class:`AlreadyCommitted` where a transaction with this request id took effect before."""
        if self._steps is not None:
            raise RuntimeError("a transaction is used once: make another one")
        self._steps = Steps(self._stub, self._caller, self.request_id)
        begun = await self._steps.begin()
        self.transaction_id = begun.transaction_id
        if begun.committed_transaction_id:
            self._steps.cancel()
            raise AlreadyCommitted(self.request_id, begun.committed_transaction_id)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commits, unless the block raised.

        Raises :class:`AlreadyCommitted` where a transaction with this request id took effect since the block began.
        """
        steps = self._opened()
        try:
            if kind is None and not self._rolled_back:
                await self._commit(steps)
        finally:
            steps.cancel()

    async def _commit(self, steps: Steps) -> None:
        try:
            committed = await steps.commit()
        except asyncio.CancelledError:
            self.outcome_unknown = steps.commit_sent
            raise
        except (Unavailable, DeadlineExceeded, Cancelled):
            if not steps.commit_sent:
                raise
            self.outcome_unknown = True
            committed = await self._find()
            if not committed:
                raise
            self.outcome_unknown = False
        if committed != self.transaction_id:
            raise AlreadyCommitted(self.request_id, committed)

    async def _find(self) -> str:
        """Asks any server that is there for the transaction that took effect under the request id."""
        again = Steps(self._stub, self._caller, self.request_id)
        try:
            return (await again.begin()).committed_transaction_id
        except RametError:
            return ""
        finally:
            again.cancel()

    def _opened(self) -> Steps:
        if self._steps is None:
            raise RuntimeError("a transaction begins with its block: async with client.sessions.transaction() as tx")
        return self._steps

    def _content(self) -> ContentMethods:
        steps = self._opened()
        if self._rolled_back:
            raise RuntimeError("this transaction was rolled back")
        # Each request that a method builds becomes a step in place of a call of its own.
        return ContentMethods(cast(Any, StepStub()), cast(Any, StepCaller(steps)))
