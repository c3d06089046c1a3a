"""Appending records and listing them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import InvalidField, InvalidPageToken, RametError
from ramet_server.domain.idempotency import Mutation, Outcome, once
from ramet_server.domain.ids import check_id
from ramet_server.domain.limits import Limits
from ramet_server.domain.paging import PageToken, check_page_size, query_fingerprint
from ramet_server.domain.sharing import ALONE, Alone, Member, together
from session_service.rules import requests, spans
from session_service.rules.appending import Append, Appended, append_in, check_append
from session_service.rules.filling import Room, fill
from session_service.rules.outcomes import number_in
from session_service.rules.ports import ContentUnit, Store, UnitOfWork
from session_service.rules.spans import Span
from session_service.rules.values import Record, Role, View

MAX_OFFSET = 1_000_000


@dataclass(frozen=True, slots=True)
class RecordQuery:
    """One page of a list of records."""

    session_id: str
    roles: tuple[Role, ...] = ()
    after_seq: int | None = None
    before_seq: int | None = None
    descending: bool = False
    page_size: int = 0
    offset: int = 0
    page_token: str = ""


@dataclass(frozen=True, slots=True)
class RecordPage:
    """A page, and where the session stood when it was read."""

    records: Sequence[Record]
    next_page_token: str
    head_seq: int
    floor_seq: int


class RecordRules:
    """The rules of appending and listing."""

    def __init__(self, store: Store, limits: Limits, clock: Clock) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock

    def append(self, call: Call, mutation: Mutation, append: Append) -> Appended:
        """Appends records, all or none; see the contract for what it checks."""
        work = self._checked(mutation, append)

        def replay(unit: UnitOfWork, outcome: Outcome) -> Appended:
            first, count = number_in(outcome, "first_seq"), number_in(outcome, "count")
            return Appended(
                tuple(range(first, first + count)),
                unit.sessions.get(append.session_id),
                bool(number_in(outcome, "insight_consumed")),
                number_in(outcome, "insight_version"),
            )

        return once(self._store, call, mutation, work, replay)

    def append_together(
        self, calls: Sequence[Call], appends: Sequence[tuple[Mutation, Append]]
    ) -> Sequence[Appended | RametError | Alone]:
        """Does many appends, in this order, in one transaction; each stands or fails by itself.

        Those that are answered ALONE must be handed to ``append``.
        """
        answers: list[Appended | RametError | Alone] = []
        members: list[Member[UnitOfWork, Appended]] = []
        for call, (mutation, append) in zip(calls, appends, strict=True):
            try:
                work = self._checked(mutation, append)
            except RametError as error:
                answers.append(error)
            else:
                answers.append(ALONE)
                members.append(Member(call, mutation, append.session_id, work))
        told = iter(together(self._store, members) if members else ())
        return [next(told) if answer is ALONE else answer for answer in answers]

    def _checked(self, mutation: Mutation, append: Append) -> Callable[[UnitOfWork], tuple[Appended, Outcome]]:
        """Checks what can be checked before any SQL; returns the work that is left."""
        requests.check_mutation(mutation)
        sizes = check_append(append, self._limits)

        def work(unit: UnitOfWork) -> tuple[Appended, Outcome]:
            appended = append_in(unit, append, sizes, self._clock.now())
            return appended, {
                "first_seq": appended.seqs[0],
                "count": len(appended.seqs),
                "insight_consumed": int(appended.insight_consumed),
                "insight_version": appended.insight_version,
            }

        return work

    def list(self, call: Call, query: RecordQuery) -> RecordPage:
        """Returns a page; never an empty one before the end."""
        page = PageReader(query, call.space, self._limits)
        if not query.roles:
            found = self._store.read(call, page.read)
            if found is not None:
                return found
        # Some records were erased between two queries, or roles make it impossible to tell whether some were.
        found = self._store.snapshot(call, page.read)
        if found is None:
            raise AssertionError("Within one state every span is full.")
        return found


class PageReader:
    """One reading of a page."""

    def __init__(self, query: RecordQuery, space: str, limits: Limits) -> None:
        """Checks what can be checked before any SQL."""
        check_id(query.session_id, "session_id")
        requests.check_not_negative(query.after_seq, "after_seq")
        requests.check_not_negative(query.before_seq, "before_seq")
        requests.check_not_negative(query.offset, "offset")
        if query.offset > MAX_OFFSET:
            raise InvalidField(f"offset must be at most {MAX_OFFSET}.", field="offset")
        self._query = query
        self._limit = check_page_size(query.page_size, limits.default_page_size, limits.max_page_size)
        self._room = Room(self._limit, limits.max_page_bytes)
        self._fingerprint = query_fingerprint(
            "ListRecords",
            space,
            query.session_id,
            sorted(set(query.roles)),
            query.after_seq,
            query.before_seq,
            query.descending,
            query.offset,
        )
        token = PageToken.decode(query.page_token, self._fingerprint, (str, int))
        self._place = None if token is None else cast("tuple[str, int]", token.position)
        """Origin of the session and seq of the last record, after which the page begins."""

    def read(self, unit: ContentUnit) -> RecordPage | None:
        """Returns the page; None where records vanished while it was read."""
        query = self._query
        after = query.after_seq or 0
        before = spans.OPEN_END if query.before_seq is None else query.before_seq
        if self._place is not None:
            after, before = (after, self._place[1]) if query.descending else (self._place[1], before)
        # A span shows at least one record, but for the open one; one more record tells whether the page is the last.
        enough = None if query.roles or self._skips() else self._limit + 2
        found = unit.sessions.view(query.session_id, after, before, descending=query.descending, limit=enough)
        if found is None:
            raise requests.not_found()
        view, shown = found
        if self._place is not None and self._place[0] != view.origin:
            raise InvalidPageToken("page_token belongs to an earlier session of this id.", field="page_token")
        shown = spans.clip(shown, max(after, view.floor_seq) + 1, min(before - 1, view.head_seq))
        if self._skips():
            shown = self._skipped(unit, shown)
        return self._filled(unit, view, shown)

    def _skips(self) -> bool:
        return self._query.offset > 0 and self._place is None

    def _skipped(self, unit: ContentUnit, shown: Sequence[Span]) -> list[Span]:
        query = self._query
        if not query.roles:
            return spans.skip(shown, query.offset, descending=query.descending)
        seq = unit.records.skip(shown, query.offset, descending=query.descending, roles=query.roles)
        if seq is None:
            return []
        return spans.clip(shown, 0, seq) if query.descending else spans.clip(shown, seq, spans.OPEN_END)

    def _filled(self, unit: ContentUnit, view: View, shown: Sequence[Span]) -> RecordPage | None:
        query = self._query
        page = fill(unit.records, view, shown, self._room, descending=query.descending, roles=query.roles)
        if page is None:
            return None
        token = ""
        if page.more:
            token = PageToken(self._fingerprint, (view.origin, page.records[-1].seq)).encode()
        return RecordPage(page.records, token, view.head_seq, view.floor_seq)
