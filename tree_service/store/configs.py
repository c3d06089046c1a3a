"""The SQL of frozen configs, which are columns of their nodes."""

import json

from sqlalchemy import Connection, select, update

from ramet_server.database.tables.tree import topology_node
from tree_service.rules.values import Config
from tree_service.store.nodes import config_values
from tree_service.store.rows import may_be_seen, place


class SqlConfigs:
    """Implements ``rules.ports.Configs``."""

    def __init__(self, connection: Connection, space_id: str) -> None:
        self._connection = connection
        self._space_id = space_id

    def find(self, node_id: str) -> Config | None:
        """Returns the config of a visible node."""
        row = self._connection.execute(
            select(
                topology_node.c.config_system_prompt,
                topology_node.c.config_skills_json,
                topology_node.c.config_version,
            ).where(place(self._space_id, node_id), may_be_seen)
        ).one_or_none()
        if row is None:
            return None
        skills = None if row.config_skills_json is None else tuple(json.loads(row.config_skills_json))
        return Config(row.config_system_prompt, skills, row.config_version)

    def put(self, node_id: str, config: Config) -> None:
        """Replaces the config."""
        self._connection.execute(
            update(topology_node).where(place(self._space_id, node_id)).values(**config_values(config))
        )
