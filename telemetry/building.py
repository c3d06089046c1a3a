"""Puts the service together."""

from sqlalchemy import Connection

from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.database.verifying import SqlVerifyStore
from ramet_server.domain.clock import Clock
from ramet_server.domain.limits import Limits
from telemetry.answers_servicer import AnswersServicer
from telemetry.ingest_servicer import IngestServicer
from telemetry.rules.archiving.carrying import ArrivingDiagnoses, LeavingDiagnoses
from telemetry.rules.chain import ChainRules
from telemetry.rules.event_checks import EventChecks
from telemetry.rules.feedback import FeedbackRules
from telemetry.rules.ingest import IngestRules
from telemetry.rules.listing import ListingRules
from telemetry.rules.metrics import MetricsRules
from telemetry.rules.retention import RetentionRules
from telemetry.rules.row_ids import RowIds
from telemetry.rules.tailing import TailRules
from telemetry.rules.tools import ToolRules
from telemetry.rules.verifying import VerifyRules
from telemetry.rules.verifying.ports import Audit
from telemetry.servicer import TelemetryServicer
from telemetry.store.answers import SqlAnswersStore
from telemetry.store.archives import SqlCarried, SqlCarryingStore
from telemetry.store.audit import SqlAudit
from telemetry.store.retention import SqlRetentionStore
from telemetry.store.sweeping import SqlSweep
from telemetry.store.unit import SqlStore
from telemetry.tail_hub import TailHub


def build(database: Database, limits: Limits, clock: Clock) -> TelemetryServicer:
    """Returns the service over a database."""
    return TelemetryServicer(_ingest(database, limits, clock), _answers(database, limits, clock))


def build_sweep(database: Database, limits: Limits, clock: Clock) -> RetentionRules:
    """Returns the service's part of the background sweep."""
    notes = SqlSweep(database, clock, limits.request_id_hours)
    return RetentionRules(SqlRetentionStore(database), notes, limits, clock)


def build_arriving(database: Database, clock: Clock) -> ArrivingDiagnoses:
    """Returns the service's part of an import."""
    return ArrivingDiagnoses(SqlCarryingStore(database), clock, RowIds())


def build_leaving(connection: Connection, space: str) -> LeavingDiagnoses:
    """Returns the service's part of an export, over a connection that the parts share."""
    return LeavingDiagnoses(SqlCarried(connection, space))


def build_verify(database: Database) -> VerifyRules:
    """Returns the service's part of a verification."""
    return VerifyRules(SqlVerifyStore[Audit](database, SqlAudit))


def _ingest(database: Database, limits: Limits, clock: Clock) -> IngestServicer:
    store, checks, ids = SqlStore(database, clock, limits.request_id_hours), EventChecks(limits), RowIds()
    return IngestServicer(
        ingest=IngestRules(store, limits, clock, ids),
        feedback=FeedbackRules(store, checks, clock, ids),
        checks=checks,
        limits=limits,
        schema_revision=schema.head(),
    )


def _answers(database: Database, limits: Limits, clock: Clock) -> AnswersServicer:
    store = SqlAnswersStore(database)
    listing = ListingRules(store, limits, clock)
    return AnswersServicer(
        listing=listing,
        chain=ChainRules(store, limits, listing),
        tools=ToolRules(store, limits),
        metrics=MetricsRules(store),
        hub=TailHub(TailRules(store, clock, listing), limits.watch_poll_seconds),
    )
