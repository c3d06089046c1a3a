"""Puts the service together."""

from collections.abc import Callable

from sqlalchemy import Connection

from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.database.verifying import SqlVerifyStore
from ramet_server.domain.clock import Clock
from ramet_server.domain.limits import Limits
from ramet_server.serving.watch_hub import WatchHub
from session_service.rules.archiving.arriving import ArrivingSessions
from session_service.rules.archiving.leaving import LeavingSessions
from session_service.rules.clearing import ClearRules
from session_service.rules.contexts import ContextRules
from session_service.rules.deletion import DeletionRules
from session_service.rules.diffs import DiffRules
from session_service.rules.erasure import ErasureRules
from session_service.rules.forks import ForkRules
from session_service.rules.ports import UnitOfWork
from session_service.rules.records import RecordRules
from session_service.rules.sessions import SessionRules
from session_service.rules.slots import SlotRules
from session_service.rules.sweeping import SweepRules
from session_service.rules.transactions import TransactionRules
from session_service.rules.trimming import TrimRules
from session_service.rules.verifying import VerifyRules
from session_service.rules.verifying.ports import Audit
from session_service.rules.watching import WatchRules
from session_service.servicer import SessionStorageServicer
from session_service.store.archives import SqlArchiveStore, SqlArchiveUnit
from session_service.store.audit import SqlAudit
from session_service.store.begun import SqlBegun
from session_service.store.sessions import HISTORY
from session_service.store.unit import SqlStore, SqlUnit
from session_service.watching import RecordWatches


def build(database: Database, limits: Limits, clock: Clock) -> SessionStorageServicer:
    """Returns the service over a database."""
    store = SqlStore(database, clock, limits.request_id_hours)
    erasure = ErasureRules(store, clock)
    return SessionStorageServicer(
        sessions=SessionRules(store, limits, clock),
        deletion=DeletionRules(store, clock, erasure),
        records=RecordRules(store, limits, clock),
        trimming=TrimRules(store, clock, erasure),
        erasure=erasure,
        slots=SlotRules(store, limits, clock),
        contexts=ContextRules(store),
        forks=ForkRules(store, limits, clock),
        diffs=DiffRules(store),
        transactions=TransactionRules(store, limits, clock, erasure),
        watches=_watches(database, store, limits),
        limits=limits,
        schema_revision=schema.head(),
    )


def _watches(database: Database, store: SqlStore, limits: Limits) -> RecordWatches:
    rules = WatchRules(store)
    hub = WatchHub(rules.stands, limits.watch_poll_seconds)
    database.moved.listen(HISTORY, hub.moved)
    return RecordWatches(rules, hub)


def build_sweep(database: Database, limits: Limits, clock: Clock) -> SweepRules:
    """Returns the service's part of the background sweep."""
    store = SqlStore(database, clock, limits.request_id_hours)
    erasure = ErasureRules(store, clock)
    return SweepRules(store, DeletionRules(store, clock, erasure), erasure)


def build_arriving(database: Database, limits: Limits, clock: Clock) -> ArrivingSessions:
    """Returns the service's part of an import."""
    erasure = ErasureRules(SqlStore(database, clock, limits.request_id_hours), clock)
    return ArrivingSessions(SqlArchiveStore(database, clock, limits.request_id_hours), limits, clock, erasure)


def build_leaving(connection: Connection, space: str, clock: Clock) -> LeavingSessions:
    """Returns the service's part of an export, over a connection that the parts share."""
    return LeavingSessions(SqlArchiveUnit(connection, space, clock, request_id_hours=0))


def build_verify(database: Database, clock: Clock) -> VerifyRules:
    """Returns the service's part of a verification."""
    return VerifyRules(SqlVerifyStore[Audit](database, SqlAudit), clock)


def joining_units(clock: Clock, limits: Limits) -> Callable[[Connection, str], UnitOfWork]:
    """Returns what makes a unit of a connection and a space, for transactions that another one begins and ends."""
    return lambda connection, space: SqlUnit(connection, space, clock, limits.request_id_hours)


def build_clearing(database: Database, limits: Limits, clock: Clock) -> ClearRules:
    """Returns the service's part of deleting a space."""
    store = SqlStore(database, clock, limits.request_id_hours)
    return ClearRules(SqlBegun(database), DeletionRules(store, clock, ErasureRules(store, clock)))
