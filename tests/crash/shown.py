"""All that a space shows to its clients, in a form that can be compared: without times and versions."""

from typing import Any

import ramet

Shown = dict[str, Any]


async def shown(client: ramet.Client) -> Shown:
    """Reads the forest, its configs and refs, and each session with its slots and records."""
    nodes = {}
    async for entry in client.tree.iter_tree():
        node = await client.tree.get_node(entry.node.id)
        config = await client.tree.get_config(node.id)
        place = (node.parent_id, node.depth, node.index, node.label, node.child_count, node.source_session_id)
        nodes[node.id] = (place, node.children, node.refs, config.system_prompt, config.skills)
    sessions = {}
    async for session in client.sessions.iter_sessions():
        line = (session.label, session.status, session.turn_count, session.tags, session.metadata_json)
        slots = [
            (await read(session.id)).content
            for read in (client.sessions.get_system_prompt, client.sessions.get_insight, client.sessions.get_memory)
        ]
        records = [
            (record.seq, record.role, record.content, record.erased_at is not None)
            async for record in client.sessions.iter_records(session.id)
        ]
        sessions[session.id] = (line, slots, records)
    return {"nodes": nodes, "sessions": sessions}
