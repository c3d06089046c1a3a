"""The limits that the services keep and tell their clients."""

from dataclasses import dataclass, field

from ramet_server.domain.retention import KeptDays, Retention

_MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """What one request, one record and one page may hold."""

    max_record_bytes: int = 4 * _MIB
    """All text of one record together, in bytes of UTF-8."""
    max_append_bytes: int = 16 * _MIB
    """All text of one append together, in bytes of UTF-8."""
    max_append_records: int = 1000
    """Records of one append."""
    max_slot_bytes: int = 4 * _MIB
    """One context slot, in bytes of UTF-8."""
    max_json_bytes: int = _MIB
    """One metadata_json, in bytes of UTF-8."""
    max_label_characters: int = 256
    """One label, in characters."""
    max_tags: int = 64
    """Tags of one session; each follows the rules of ids."""
    max_tool_calls: int = 128
    """Tool calls of one record."""
    default_page_size: int = 100
    """Entries of a page where the request does not say."""
    max_page_size: int = 1000
    """Most entries of a page; a larger wish is cut to it."""
    default_tree_page_size: int = 1000
    """Entries of a page of GetTree where the request does not say."""
    max_tree_page_size: int = 10_000
    """Most entries of a page of GetTree."""
    max_page_bytes: int = 4 * _MIB
    """Text of one page in bytes of UTF-8; a single larger entry still comes, alone."""
    request_id_hours: int = 24
    """Hours for which a request_id is remembered."""
    await_content_seconds: int = 600
    """Seconds after which a node that still awaits its content is swept."""
    max_transaction_operations: int = 1000
    """Reads and writes of one transaction."""
    max_transaction_bytes: int = 16 * _MIB
    """Requests of one transaction, in bytes; each operation, record, tool call and tag counts 256 more."""
    max_transaction_seconds: float = 60.0
    """Age of a transaction at which it is ended, in seconds; a commit that has begun may take longer."""
    max_open_transaction_bytes: int = 256 * _MIB
    """What all open transactions of a server may keep in memory, in bytes, counted likewise."""
    max_event_text_bytes: int = 64 * 1024
    """One JSON or long text of an event of telemetry, in bytes of UTF-8."""
    max_error_characters: int = 4096
    """One error message or comment of telemetry, in characters."""
    max_preview_characters: int = 500
    """What is kept of a tool's output, in characters."""
    max_batch_events: int = 1000
    """Events of one batch."""
    max_batch_bytes: int = 4 * _MIB
    """One batch of events, in bytes."""
    max_inbox_bytes: int = 8 * _MIB
    """What one stream of events may have under way unacknowledged, in bytes."""
    watch_poll_seconds: float = 0.5
    """Time between two looks at what is watched, in seconds; what a server commits itself is told at once."""
    tree_change_days: int = 7
    """Days for which changes of the forest are kept for those who resume a watch; 0 is for ever."""
    abandoned_after_seconds: int = 900
    """Silence after which a running diagnosis shows as ABANDONED, in seconds."""
    retention: Retention = field(default_factory=Retention)
    """How long telemetry is kept."""
    session_age: KeptDays = field(default_factory=KeptDays)
    """How long sessions are kept that nobody writes to."""
