"""The SQL of the tables that hold the forest."""

from tree_service.store.backlog import SqlBacklog
from tree_service.store.units import TreeStore

__all__ = ["SqlBacklog", "TreeStore"]
