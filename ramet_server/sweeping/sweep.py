"""One pass over all that is left to do, in all spaces.

Any number of servers may sweep at once. Each step looks again, under the lock of what it changes, at
what it was told to do, so that a step that another server took meanwhile does nothing; and each may
be cut at any moment, because all of its transactions leave something whole behind.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import session_service
import telemetry
import tree_service
from ramet_server.database.database import Database
from ramet_server.database.request_log import purge_expired
from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.limits import Limits
from ramet_server.domain.retention import OnDelete
from ramet_server.sweeping.expiry import Aged, SessionExpiry
from telemetry.rules.retention import Conversation, Doomed

_NODES = 500
_SESSIONS = 10
_RECORDS = 1000
_REQUESTS = 1000
_CONVERSATIONS = 100
_EVENTS = 1000
_TREE_CHANGES = 1000
_ARRIVALS = 10
_ARRIVAL_DAYS = 7
"""Days after which an import that was stopped counts as given up."""
_FORETOLD = 100_000


@dataclass(frozen=True)
class Counts:
    """What a sweep did."""

    settled_nodes: int = 0
    """Nodes whose content had come, now visible for good."""
    deleted_nodes: int = 0
    """Nodes whose content never came."""
    returned_nodes: int = 0
    """Nodes that were deleted so, and whose content came after all."""
    deleted_sessions: int = 0
    """Sessions that went with their nodes, and that no caller had deleted."""
    expired_sessions: int = 0
    """Sessions that were too old."""
    expired_nodes: int = 0
    """Nodes that went with them."""
    dropped_arrivals: int = 0
    """Sessions that an import began to bring, and did not go on with for a week."""
    released_records: int = 0
    """Places of records that some session dropped; those that no session shows are erased."""
    forgotten_requests: int = 0
    """Request ids whose time was over."""
    expired_diagnoses: int = 0
    """Diagnoses that were too old, deleted with their steps and tool calls."""
    detached_diagnoses: int = 0
    """Diagnoses of deleted conversations that now name none."""
    deleted_diagnoses: int = 0
    """Diagnoses that went with their conversations."""
    forgotten_events: int = 0
    """Ids of events whose time was over."""
    forgotten_producers: int = 0
    """Producers of events that were not heard of for long."""
    forgotten_tree_changes: int = 0
    """Changes of the forest that nobody can watch from any more."""

    def __add__(self, other: "Counts") -> "Counts":
        """Adds each count."""
        return Counts(**{name: value + getattr(other, name) for name, value in vars(self).items()})


@dataclass(frozen=True)
class Step:
    """One kind of work, done some at a time."""

    name: str
    some: Callable[[Call], tuple[Counts, bool]]
    """Does some of the work in short transactions; returns what was done, and whether there may be more."""


@dataclass(frozen=True)
class Foretold:
    """What a pass would take by age, and of telemetry."""

    aged: Sequence[Aged]
    """Old sessions, by space."""
    left: Counts
    """Diagnoses of deleted conversations."""
    expired: Sequence[Doomed]
    """What is too old, by space."""


class Sweep:
    """The steps of a pass over one database; they block, and belong on a worker thread."""

    def __init__(self, database: Database, limits: Limits, clock: Clock) -> None:
        self._database = database
        self._limits = limits
        self._clock = clock
        self._tree = tree_service.build_sweep(database, limits, clock)
        self._late = tree_service.build_latecomers(database, limits, clock)
        self._session = session_service.build_sweep(database, limits, clock)
        self._arriving = session_service.build_arriving(database, limits, clock)
        self._telemetry = telemetry.build_sweep(database, limits, clock)
        self._expiry = SessionExpiry(database, limits, clock)

    @property
    def steps(self) -> Sequence[Step]:
        """The steps in their order: what one leaves to erase, a later one finds."""
        return (
            Step("waiting nodes", self._waiting_nodes),
            Step("content that came late", self._latecomers),
            Step("sessions of deleted nodes", self._sessions),
            Step("old sessions", self._old_sessions),
            Step("imports given up", self._arrivals),
            Step("released records", self._records),
            Step("expired requests", self._requests),
            Step("deleted conversations", self._conversations),
            Step("old diagnoses", self._diagnoses),
            Step("old events", self._events),
            Step("old changes of the forest", self._tree_changes),
        )

    def erase_released(self, call: Call) -> int:
        """Erases all records, of all spaces, that wait for it; returns at how many places it looked."""
        looked_at, more = 0, True
        while more:
            counts, more = self._records(call)
            looked_at += counts.released_records
        return looked_at

    def run(self, call: Call) -> Counts:
        """Makes a whole pass; the space of the call has no meaning."""
        counts = Counts()
        for step in self.steps:
            more = True
            while more:
                done, more = step.some(call)
                counts += done
        return counts

    def _waiting_nodes(self, call: Call) -> tuple[Counts, bool]:
        swept = self._tree.waiting(call, _NODES)
        counts = Counts(settled_nodes=swept.settled, deleted_nodes=swept.deleted)
        return counts, swept.settled + swept.deleted >= _NODES

    def _latecomers(self, call: Call) -> tuple[Counts, bool]:
        returned, more = self._late.some(call, _NODES)
        return Counts(returned_nodes=returned), more

    def _sessions(self, call: Call) -> tuple[Counts, bool]:
        removals = self._tree.pending_removals(call, _SESSIONS)
        deleted = 0
        for removal in removals:
            within = replace(call, space=removal.space_id)
            # First the session: cut between the two, the sweep finds the removal again and nothing to delete.
            deleted += self._session.delete_incarnation(within, removal.session_id, removal.origin)
            self._tree.finish_removal(within, removal)
        return Counts(deleted_sessions=deleted), len(removals) >= _SESSIONS

    def _old_sessions(self, call: Call) -> tuple[Counts, bool]:
        sessions, nodes, more = self._expiry.some(call)
        return Counts(expired_sessions=sessions, expired_nodes=nodes), more

    def _arrivals(self, call: Call) -> tuple[Counts, bool]:
        before = self._clock.now() - timedelta(days=_ARRIVAL_DAYS)
        dropped = self._arriving.drop_stale(call, before, _ARRIVALS)
        return Counts(dropped_arrivals=dropped), dropped >= _ARRIVALS

    def _records(self, call: Call) -> tuple[Counts, bool]:
        looked_at = self._session.erase_released(call, _RECORDS)
        return Counts(released_records=looked_at), looked_at >= _RECORDS

    def _requests(self, call: Call) -> tuple[Counts, bool]:
        before = self._clock.now() - timedelta(hours=self._limits.request_id_hours)
        purged = self._database.write(call, lambda connection: purge_expired(connection, before, _REQUESTS))
        return Counts(forgotten_requests=purged), purged >= _REQUESTS

    def _conversations(self, call: Call) -> tuple[Counts, bool]:
        notes = self._session.deleted_sessions(call, _CONVERSATIONS)
        left = 0
        for note in notes:
            within, conversation = replace(call, space=note.space_id), Conversation(note.session_id, note.deleted_at)
            more = True
            while more:
                some, more = self._telemetry.leave(within, conversation)
                left += some
            self._session.forget_deleted(within, [note])
        return self._left(left), len(notes) >= _CONVERSATIONS

    def _left(self, count: int) -> Counts:
        if self._limits.retention.on_delete is OnDelete.DETACH:
            return Counts(detached_diagnoses=count)
        return Counts(deleted_diagnoses=count)

    def _diagnoses(self, call: Call) -> tuple[Counts, bool]:
        deleted, more = self._telemetry.expire(call)
        return Counts(expired_diagnoses=deleted), more

    def _events(self, call: Call) -> tuple[Counts, bool]:
        events = self._telemetry.forget_events(call, _EVENTS)
        producers = self._telemetry.forget_producers(call, _EVENTS)
        counts = Counts(forgotten_events=events, forgotten_producers=producers)
        return counts, max(events, producers) >= _EVENTS

    def _tree_changes(self, call: Call) -> tuple[Counts, bool]:
        forgotten = self._tree.forget_changes(call, _TREE_CHANGES)
        return Counts(forgotten_tree_changes=forgotten), forgotten >= _TREE_CHANGES

    def foretell(self, call: Call) -> Foretold:
        """Counts what a pass would take by age, and of telemetry; it changes nothing."""
        leaving = sum(
            self._telemetry.count_leaving(
                replace(call, space=note.space_id), Conversation(note.session_id, note.deleted_at)
            )
            for note in self._session.deleted_sessions(call, _FORETOLD)
        )
        return Foretold(self._expiry.foretell(call), self._left(leaving), self._telemetry.count_expired(call))
