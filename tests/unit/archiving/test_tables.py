"""Every table and column is thought of: it leaves with an archive, or it is known why not."""

import pytest

from ramet_server.database.tables import metadata

LEAVE = {
    "session": {
        *("session_id", "label", "status", "turn_count", "metadata_json", "head_seq", "floor_seq", "version"),
        *("created_at", "updated_at", "last_active_at"),
    },
    "session_tag": {"session_id", "tag"},
    "record": {
        *("seq", "role", "content", "parts_json", "tool_calls_json", "tool_call_id", "name", "client_time"),
        *("metadata_json", "created_at", "erased_at"),
    },
    "history_span": {"first_seq", "last_seq"},
    "broken_group": {"seq"},
    "context_slot": {"session_id", "slot", "content", "version", "updated_at"},
    "topology_node": {
        *("node_id", "parent_id", "label", "source_session_id", "config_version", "version", "created_at"),
        *("updated_at", "config_system_prompt", "config_skills_json"),
    },
    "node_ref": {"node_id", "target_id", "created_at"},
}
FOLLOW = {
    "session": {"origin", "max_record_bytes", "open_group_json"},
    "record": {"origin", "size_bytes"},
    "history_span": {"origin", "owner_origin"},
    "broken_group": {"origin"},
    "topology_node": {"depth", "index", "child_count", "awaits_content"},
}
"""What follows from the rest, or names what only one database knows."""

TELEMETRY = {"diagnosis_session", "agent_step", "tool_invocation", "diagnosis_feedback"}
"""Held by test_archive_columns."""

STAY = {
    # Once only, and how far producers are.
    *("request_log", "telemetry_event", "telemetry_producer"),
    # What is under way.
    *("arriving_session", "released_span", "deleted_session", "session_removal", "swept_node"),
    # What those who watch were told, and the row that orders it.
    *("space", "tree_change"),
}


@pytest.mark.parametrize("name", sorted(metadata.tables))
def test_every_column_leaves_or_is_known_to_stay(name: str) -> None:
    if name in TELEMETRY | STAY:
        return
    columns = {column.name for column in metadata.tables[name].c} - {"space_id"}
    assert columns == LEAVE[name] | FOLLOW.get(name, set())
