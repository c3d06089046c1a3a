"""Transactions for the blocking client."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from ramet.client.arguments import refused
from ramet.client.errors import RametError
from ramet.client.loop_thread import LoopThread, blocking, iterating
from ramet.client.reruns import Found, Reruns
from ramet.client.transactions import Transaction

__all__ = ["BlockingTransaction", "run_blocking"]

T = TypeVar("T")


class BlockingTransaction:
    """One transaction, blocking: ``with client.sessions.transaction() as tx: ...``; see :class:`Transaction`."""

    def __init__(self, loop_thread: LoopThread, make_core: Callable[[], Transaction]) -> None:
        self._loop_thread = loop_thread
        self._make_core = make_core
        self._made: Transaction | None = None

    @property
    def _core(self) -> Any:
        if self._made is None:
            self._made = self._make_core()
        return self._made

    @property
    def request_id(self) -> str:
        """The id under which the commit is found again."""
        return self._begun().request_id

    @property
    def transaction_id(self) -> str:
        """The id that the server gave it when it began: each has its own, also of those with one request id."""
        return "" if self._made is None else self._made.transaction_id

    @property
    def outcome_unknown(self) -> bool:
        """Whether the reply to the commit was lost and no server knew of it: it may still take effect."""
        return self._made is not None and self._made.outcome_unknown

    get_session = blocking(Transaction.get_session)
    put_session = blocking(Transaction.put_session)
    append_records = blocking(Transaction.append_records)
    list_records = blocking(Transaction.list_records)
    iter_records = iterating(Transaction.iter_records)
    trim_records = blocking(Transaction.trim_records)
    truncate_records = blocking(Transaction.truncate_records)
    get_system_prompt = blocking(Transaction.get_system_prompt)
    put_system_prompt = blocking(Transaction.put_system_prompt)
    get_insight = blocking(Transaction.get_insight)
    put_insight = blocking(Transaction.put_insight)
    clear_insight = blocking(Transaction.clear_insight)
    get_memory = blocking(Transaction.get_memory)
    put_memory = blocking(Transaction.put_memory)
    rollback = blocking(Transaction.rollback)

    def __enter__(self) -> Self:
        """Begins; raises :class:`AlreadyCommitted` where a transaction with this request id took effect before."""

        async def begin() -> None:
            await self._core.__aenter__()

        self._loop_thread.run(begin())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commits, unless the block raised."""
        self._loop_thread.run(self._begun().__aexit__(kind, error, trace))

    def _begun(self) -> Transaction:
        if self._made is None:
            raise RuntimeError("a transaction begins with its block: with client.sessions.transaction() as tx")
        return self._made


def run_blocking(
    make: Callable[[str], BlockingTransaction], fn: Callable[[BlockingTransaction], T], reruns: Reruns[T]
) -> T:
    """Runs a function in transactions until one is committed; see :meth:`SessionStorageClient.run_in_transaction`."""
    if not callable(fn):
        raise refused("fn", "must be a function of a transaction")
    while True:
        transaction = make(reruns.request_id)
        try:
            with transaction:
                value = fn(transaction)
        except RametError as error:
            if transaction.outcome_unknown:
                reruns.lost(transaction.transaction_id, value)
            try:
                pause_s = reruns.pause_after(error, begun=bool(transaction.transaction_id))
            except Found as found:
                return cast(T, found.value)
        else:
            return value
        time.sleep(pause_s)
