"""The frozen config of a node: what its forks inherit."""

from dataclasses import replace

from ramet_server.domain.call import Call
from ramet_server.domain.errors import InvalidField, NodeNotFound, StaleVersion, too_large
from ramet_server.domain.idempotency import Mutation, Outcome, once
from ramet_server.domain.ids import check_id
from ramet_server.domain.limits import Limits
from ramet_server.domain.text import check_label, check_text
from tree_service.rules.ports import Store, UnitOfWork
from tree_service.rules.showing import check_expected, lock_space, settled, visible
from tree_service.rules.values import MAX_SKILLS, ChangeKind, Config


def check_config(config: Config, limits: Limits) -> Config:
    """Returns the config if it can be stored."""
    if config.system_prompt is not None:
        check_text(config.system_prompt, "config.system_prompt", limits.max_slot_bytes)
    if config.skills is not None:
        if len(config.skills) > MAX_SKILLS:
            raise too_large("config.skills.names", MAX_SKILLS, "names", "config.skills.names")
        for position, name in enumerate(config.skills):
            field = f"config.skills.names[{position}]"
            if not name:
                raise InvalidField(f"{field} must not be empty.", field=field)
            check_label(name, field, limits.max_label_characters)
    return config


class ConfigRules:
    """Reads and replaces configs; never touches a slot of a session."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self._store = store
        self._limits = limits

    def get(self, call: Call, node_id: str) -> Config:
        """Returns the config of a node, all absent and version 0 where none was ever given."""
        check_id(node_id, "node_id")
        return self._store.read(call, lambda unit: _config(unit, node_id))

    def put(
        self, call: Call, mutation: Mutation, node_id: str, config: Config | None, expected_version: int | None
    ) -> Config:
        """Replaces the config of a node; what is absent in it is no longer set.

        ``expected_version`` is one of the config, not of the node. The config is required; all in it may be absent.
        """
        check_id(node_id, "node_id")
        check_expected(expected_version)
        if config is None:
            raise InvalidField("config is required; all in it may be absent.", field="config")
        new = check_config(config, self._limits)

        def work(unit: UnitOfWork) -> tuple[Config, Outcome]:
            lock_space(unit)
            settled(unit, visible(unit, node_id))
            version = _config(unit, node_id).version
            if expected_version is not None and expected_version != version:
                raise StaleVersion(
                    "The config changed since this version.",
                    field="expected_version",
                    details={"current": str(version)},
                )
            stored = replace(new, version=version + 1)
            unit.configs.put(node_id, stored)
            unit.changes.tell(ChangeKind.UPDATED, [node_id])
            return stored, {"node_id": node_id, "version": stored.version}

        def replay(unit: UnitOfWork, outcome: Outcome) -> Config:
            version = outcome["version"]
            found = _config(unit, str(outcome["node_id"]))
            return replace(found, version=version) if isinstance(version, int) else found

        return once(self._store, call, mutation, work, replay)


def _config(unit: UnitOfWork, node_id: str) -> Config:
    config = unit.configs.find(node_id)
    if config is None:
        raise NodeNotFound("No node has this node_id.", field="node_id")
    return config
