"""Puts the service together."""

from collections.abc import Callable

from sqlalchemy import Connection

from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.database.verifying import SqlVerifyStore
from ramet_server.domain.clock import Clock
from ramet_server.domain.limits import Limits
from ramet_server.serving.watch_hub import WatchHub
from tree_service.rules.archiving.arriving import ArrivingNodes
from tree_service.rules.archiving.leaving import LeavingNodes
from tree_service.rules.configs import ConfigRules
from tree_service.rules.deletions import DeletionRules
from tree_service.rules.forest import ForestRules
from tree_service.rules.latecomers import LatecomerRules
from tree_service.rules.listing import ListingRules
from tree_service.rules.moves import MoveRules
from tree_service.rules.nodes import NodeRules
from tree_service.rules.ports import UnitOfWork
from tree_service.rules.refs import RefRules
from tree_service.rules.sweeping import SweepRules
from tree_service.rules.verifying import VerifyRules
from tree_service.rules.verifying.ports import Audit
from tree_service.rules.watching import WatchRules
from tree_service.servicer import SessionTreeServicer
from tree_service.store import SqlBacklog, TreeStore
from tree_service.store.archives import ArchiveTreeStore, ArchiveTreeUnit
from tree_service.store.audit import SqlAudit
from tree_service.store.changes import FOREST
from tree_service.store.swept import SqlLatecomers
from tree_service.store.units import TreeUnit
from tree_service.watching import TreeWatches


def build(database: Database, limits: Limits, clock: Clock) -> SessionTreeServicer:
    """Returns the service over a database."""
    store = TreeStore(database, limits, clock)
    return SessionTreeServicer(
        nodes=NodeRules(store, limits, clock),
        lists=ListingRules(store, limits),
        forest=ForestRules(store, limits),
        moves=MoveRules(store, clock),
        deletions=DeletionRules(store, clock),
        refs=RefRules(store, clock),
        configs=ConfigRules(store, limits),
        watches=_watches(database, store, limits),
        limits=limits,
        schema_revision=schema.head(),
    )


def _watches(database: Database, store: TreeStore, limits: Limits) -> TreeWatches:
    rules = WatchRules(store, SqlBacklog(database))
    hub = WatchHub(rules.extents, limits.watch_poll_seconds)
    database.moved.listen(FOREST, hub.moved)
    return TreeWatches(rules, hub)


def build_sweep(database: Database, limits: Limits, clock: Clock) -> SweepRules:
    """Returns the service's part of the background sweep."""
    return SweepRules(TreeStore(database, limits, clock), SqlBacklog(database), limits, clock)


def build_arriving(database: Database, limits: Limits, clock: Clock) -> ArrivingNodes:
    """Returns the service's part of an import."""
    return ArrivingNodes(ArchiveTreeStore(database, limits, clock), limits)


def build_leaving(connection: Connection, space: str, limits: Limits, clock: Clock) -> LeavingNodes:
    """Returns the service's part of an export, over a connection that the parts share."""
    return LeavingNodes(ArchiveTreeUnit(connection, space, limits, clock))


def build_verify(database: Database, limits: Limits, clock: Clock) -> VerifyRules:
    """Returns the service's part of a verification."""
    return VerifyRules(SqlVerifyStore[Audit](database, SqlAudit), limits, clock)


def build_latecomers(database: Database, limits: Limits, clock: Clock) -> LatecomerRules:
    """Returns what puts nodes back whose content came after they were swept."""
    return LatecomerRules(TreeStore(database, limits, clock), SqlLatecomers(database), clock)


def joining_units(clock: Clock, limits: Limits) -> Callable[[Connection, str], UnitOfWork]:
    """Returns what makes a unit of a connection and a space, for transactions that another one begins and ends."""
    return lambda connection, space: TreeUnit(connection, space, limits, clock)
