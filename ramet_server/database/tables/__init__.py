"""The tables of the one schema, a module per owner.

``metadata`` holds them all. Nothing here uses foreign keys or AUTO_INCREMENT: every key is made by
a client or a rule and begins with a space or an origin, so that the schema fits clusters.
"""

from ramet_server.database.tables import session, shared, telemetry, tree
from ramet_server.database.tables.types import metadata

__all__ = ["metadata", "session", "shared", "telemetry", "tree"]
