"""The recorder: what it is told on an agent's thread becomes an event in a queue, and nothing more."""

import asyncio
import atexit
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Self

import grpc

import ramet
from ramet.recorder.backlog import Backlog
from ramet.recorder.diagnosis import Diagnosis, new_key
from ramet.recorder.drafts import DRAFT_BYTES, Draft, Kept, Writer
from ramet.recorder.feed import Feed
from ramet.recorder.forking import keep_safe
from ramet.recorder.sender import Sender, Target
from ramet.recorder.spool import SpaceSpool
from ramet.recorder.summaries import limited, short
from ramet.recorder.texts import Mask, Texts, bytes_of
from ramet.recorder.values import Limits, Report
from ramet.telemetry.v1 import telemetry_pb2 as pb

__all__ = ["Recorder"]

_log = logging.getLogger("ramet.recorder")

_AT_EXIT_S = 2.0
_SPOOLING_S = 0.4
"""What is kept of the time to close for writing the rest to disk."""


class Recorder:
    """Records what agents do and brings it to a server, without ever slowing or breaking them.

    ``with Recorder("127.0.0.1:50051", spool="/var/spool/ramet") as recorder: ...``. Recording never waits and never
    raises: an event goes into a queue that is bounded in bytes, and one thread in the background sends it. While no
    server takes events they go to files in ``spool``, and from there, in their order, to the server once it is back,
    or at the next start of any recorder with this directory. What finds no room is dropped, counted by kind, and told
    to the server. Without a ``spool`` there is only the queue.

    ``mask`` sees every whole text on the agent's thread, before anything is queued, spooled or logged.

    It may be used from any thread. A forked child has a recorder of its own in it that begins empty. gRPC does not
    live on in a child whose parent used it before the fork: such a child starts no thread, and brings each event to the
    spool itself, where another process takes it when the child has ended; without a spool it drops and counts it.
    gRPC's own handlers of forks may crash such a child: import ``ramet`` before gRPC, which turns them off, or set
    GRPC_ENABLE_FORK_SUPPORT=0 in the environment.
    """

    def __init__(
        self,
        target: str,
        *,
        space: str = "default",
        spool: str | os.PathLike[str] | None = None,
        mask: Mask | None = None,
        limits: Limits | None = None,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        """Takes where events go, as any target of gRPC; nothing is sent before the first event or ``flush``."""
        self.texts = Texts(mask)
        """What makes texts of what agents hand over."""
        self._limits = limits or Limits()
        self._target = Target(target, space, credentials, f"ramet-recorder/{ramet.__version__}")
        self._space_spool = None if spool is None else SpaceSpool(spool, space, self._limits.spool_bytes)
        self._told_fork = False
        self._begin(may_send=True)
        keep_safe(self)
        atexit.register(_close_at_exit, weakref.ref(self))

    def _begin(self, *, may_send: bool) -> None:
        self.producer_id = new_key()
        """Who sends: this process, from its start or fork on."""
        self._writer = Writer(self.producer_id, self._limits.event_bytes)
        self._backlog = Backlog(self._limits.queue_bytes, self._writer)
        self._sender: Sender | None = None
        self._ender: weakref.finalize[[Sender], Recorder] | None = None
        self._may_send = may_send
        self._keeping = False
        self._closed = False
        self._starting = threading.RLock()
        spool = None if self._space_spool is None else self._space_spool.new(self.producer_id)
        self._feed = Feed(self.producer_id, self._backlog, spool)

    def diagnosis(
        self, query: str, *, agent_flow: str = "", conversation_id: str | None = None, session_id: str | None = None
    ) -> Diagnosis:
        """Makes a diagnosis, to be used with ``with`` or ``async with``.

        ``agent_flow`` is such as CHAT or AI_OPS; ``conversation_id`` is the session whose conversation it belongs to;
        ``session_id`` is the diagnosis' own id where it must not be a new one.
        """
        return Diagnosis(self, query, agent_flow, conversation_id, session_id)

    def feedback(self, session_id: str, source: str, *, useful: bool, comment: str = "") -> None:
        """Records what a source, such as ``user``, says of a diagnosis; its later word replaces the earlier one."""

        def kept() -> Kept:
            value = pb.FEEDBACK_VALUE_USEFUL if useful else pb.FEEDBACK_VALUE_NOT_USEFUL
            said = self.texts.short(comment, "comment")
            return bytes_of(said[0]), lambda: pb.Event(
                feedback=pb.Feedback(source=source, value=value, comment=short(said))
            )

        self.record("feedback", session_id, kept)

    def self_evaluation(
        self,
        session_id: str,
        confidence: int | None = None,
        *,
        reasoning: str = "",
        evidence_count: int | None = None,
        tools_proposed: int | None = None,
        tools_accepted: int | None = None,
    ) -> None:
        """Records what the model says of its conclusion; see :meth:`Diagnosis.self_evaluation`."""

        def kept() -> Kept:
            why = self.texts.limited(reasoning, "reasoning")
            return bytes_of(why[0]), lambda: pb.Event(
                self_evaluation=pb.SelfEvaluation(
                    confidence=confidence,
                    reasoning=limited(why),
                    evidence_count=evidence_count,
                    tools_proposed=tools_proposed,
                    tools_accepted=tools_accepted,
                )
            )

        self.record("self_evaluation", session_id, kept)

    def record(self, kind: str, session_id: str, keep: Callable[[], Kept]) -> None:
        """Queues one event, of which ``keep`` returns what is needed to write it later. Never raises, never waits."""
        draft: Draft | None = None
        try:
            size, write = keep()
            draft = Draft(kind, session_id, time.time_ns(), DRAFT_BYTES + size, write)
        except Exception as fault:  # noqa: BLE001 - whatever an agent hands over, recording it must not break the agent
            self._writer.tell(kind, fault)
        if self._backlog.offer(kind, draft):
            self._wake()

    def _wake(self) -> None:
        if not self._may_send:
            self._keep_only()
            return
        sender = self._sender or self._start()
        if sender is not None:
            sender.wake()

    def _keep_only(self) -> None:
        """Does a sender's work where there can be none: brings what has come to disk, or drops it."""
        with self._starting:
            # A collection of garbage within may end a stream, which records: that is taken along below.
            if self._keeping:
                return
            self._keeping = True
            try:
                while self._backlog.sleep():
                    size = self._backlog.size
                    self._feed.spill()
                    if not self._feed.spooling:
                        if not self._told_fork:
                            _log.warning("A forked child cannot use its parent's gRPC: what is not spooled is dropped.")
                            self._told_fork = True
                        self._backlog.drop_all()
                    elif self._backlog.size == size:
                        # The disk has no room; the queue still has.
                        return
            finally:
                self._keeping = False

    def _start(self) -> Sender | None:
        with self._starting:
            if self._sender is None and not self._closed and self._may_send:
                try:
                    sender = Sender(self._target, self._limits, self._backlog, self._feed, self._space_spool)
                except OSError as error:
                    # As where too many files are open: the next event tries again.
                    self._backlog.want_wake()
                    _log.warning("The recorder's thread cannot start: %s", error.strerror)
                    return None
                try:
                    sender.start()
                except RuntimeError:
                    # The interpreter ends, or there can be no more threads.
                    self._backlog.close()
                    self._backlog.drop_all()
                    return None
                if self._sender is None:
                    self._sender = sender
                    # Where nobody holds the recorder any more, nobody can close it.
                    self._ender = weakref.finalize(self, _end, sender)
                    self._ender.atexit = False
            return self._sender

    def flush(self, timeout: float = 10.0) -> Report:
        """Waits until everything is acknowledged, at most ``timeout`` seconds; tells what became of all events.

        Nothing is given up where that takes longer: it is ``pending``.
        """
        until = time.monotonic() + timeout
        if (sender := self._sender or self._start()) is not None:
            sender.hurry()
            backlog = self._backlog
            backlog.wait(
                lambda: (backlog.settled and not sender.adopting) or sender.ended.is_set(),
                max(0.0, until - time.monotonic()),
            )
        return self.report()

    async def flush_async(self, timeout: float = 10.0) -> Report:  # noqa: ASYNC109 - as flush has it
        """Does what :meth:`flush` does, without holding up the event loop."""
        return await asyncio.to_thread(self.flush, timeout)

    def report(self) -> Report:
        """Tells what became of all events so far."""
        return self._backlog.report()

    def close(self, timeout: float = 5.0) -> Report:
        """Sends what can be sent within ``timeout`` seconds, brings the rest to the spool, and ends the thread.

        Returns at once where the server is away. Without a spool, ``pending`` is then what is lost. Events that come
        later are dropped and counted.
        """
        until = time.monotonic() + timeout
        with self._starting:
            self._closed = True
            sender = self._sender
        self._backlog.close()
        if not self._may_send:
            self._keep_only()
            self._feed.close()
        if sender is not None:
            reserve = min(_SPOOLING_S, timeout / 2)
            sender.end(until - reserve)
            sender.ended.wait(max(0.0, until - time.monotonic()))
        return self.report()

    async def close_async(self, timeout: float = 5.0) -> Report:  # noqa: ASYNC109 - as close has it
        """Does what :meth:`close` does, without holding up the event loop."""
        return await asyncio.to_thread(self.close, timeout)

    def begin_anew_in_child(self, *, may_send: bool) -> None:
        """Makes this the recorder of a forked child: empty, under a new id; called by the fork itself."""
        old = (self._backlog, self._sender, self._feed)
        _inherited.append(old)
        if self._ender is not None:
            self._ender.detach()
        self._feed.forget()
        closed = self._closed
        self._begin(may_send=may_send)
        if closed:
            self._closed = True
            self._backlog.close()

    def __enter__(self) -> Self:
        """Starts the thread, which also takes over what an earlier process has left in the spool."""
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the recorder."""
        self.close()

    async def __aenter__(self) -> Self:
        """Starts the thread, which also takes over what an earlier process has left in the spool."""
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the recorder."""
        await self.close_async()


_inherited: list[object] = []
"""What belongs to the threads of a parent: in a child it must be neither used nor collected."""


def _end(sender: Sender) -> None:
    sender.end(time.monotonic() + _AT_EXIT_S)


def _close_at_exit(recorder: "weakref.ref[Recorder]") -> None:
    found = recorder()
    if found is not None and not sys.is_finalizing():
        found.close(_AT_EXIT_S)
