"""What the contracts speak of, as small frozen values.

Where the contract says "empty: none", a value says None. Times are aware and in UTC. JSON is text, exactly as it came.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

__all__ = [
    "Appended",
    "Context",
    "Diff",
    "DiffSide",
    "Forked",
    "FoundSessions",
    "History",
    "Record",
    "RecordNews",
    "RecordPage",
    "Role",
    "Session",
    "SessionFilter",
    "SessionLimits",
    "SessionOrder",
    "SessionPage",
    "SessionServerInfo",
    "SessionSlots",
    "SessionStatus",
    "Slot",
    "SlotName",
    "ToolCall",
    "Trimmed",
]


class Role(enum.StrEnum):
    """Who speaks in a record."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class SessionStatus(enum.StrEnum):
    """Whether a session takes writes."""

    ACTIVE = "active"
    ARCHIVED = "archived"


class SessionOrder(enum.StrEnum):
    """What a list of sessions is ordered by."""

    ID = "id"
    CREATED_AT = "created_at"
    LAST_ACTIVE_AT = "last_active_at"


class SlotName(enum.StrEnum):
    """A context slot."""

    SYSTEM_PROMPT = "system_prompt"
    INSIGHT = "insight"
    MEMORY = "memory"


@dataclass(frozen=True)
class Session:
    """The metadata of a session."""

    id: str
    """Unique within the space."""
    label: str = ""
    """For people."""
    status: SessionStatus = SessionStatus.ACTIVE
    """Whether it takes writes."""
    turn_count: int = 0
    """The sum of all turn deltas."""
    tags: tuple[str, ...] = ()
    """A set, sorted."""
    metadata_json: str | None = None
    """The caller's JSON text."""
    head_seq: int = 0
    """The highest seq given so far: what expected_head_seq is compared with."""
    floor_seq: int = 0
    """Records with a seq up to this one are not part of the session."""
    version: int = 0
    """Counts changes of label, tags, metadata and status."""
    created_at: datetime | None = None
    """When it was created."""
    updated_at: datetime | None = None
    """The last change that moved version."""
    last_active_at: datetime | None = None
    """The last append; before the first, created_at."""


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool, made by an assistant record."""

    id: str
    """What the answering tool record names."""
    name: str
    """The tool."""
    arguments_json: str | None = None
    """JSON text, kept byte for byte."""


@dataclass(frozen=True)
class Record:
    """One immutable entry of a conversation; see the constructors ``user``, ``assistant``, ``tool`` and ``system``."""

    role: Role
    """Who speaks."""
    content: str = ""
    """Text."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Only in role ASSISTANT."""
    tool_call_id: str | None = None
    """The call that this record answers: in role TOOL, and only there."""
    name: str | None = None
    """Who or what speaks, such as the tool's name."""
    parts_json: str | None = None
    """Multi-part content: JSON text, kept byte for byte."""
    metadata_json: str | None = None
    """The caller's JSON text."""
    client_time: datetime | None = None
    """The client's own time, kept as given. It orders nothing."""
    seq: int = 0
    """Given by the server; 0 before. Strictly increasing within a session, gaps are legal."""
    created_at: datetime | None = None
    """The server's time of the append."""
    erased_at: datetime | None = None
    """Set when the content was erased."""

    @classmethod
    def system(cls, content: str) -> "Record":
        """Makes a record of instructions."""
        return cls(Role.SYSTEM, content)

    @classmethod
    def user(cls, content: str, *, name: str | None = None) -> "Record":
        """Makes a record of what a person says."""
        return cls(Role.USER, content, name=name)

    @classmethod
    def assistant(cls, content: str = "", *, tool_calls: Iterable[ToolCall] = ()) -> "Record":
        """Makes a record of what the model says, and of the tools it calls."""
        return cls(Role.ASSISTANT, content, tool_calls=tuple(tool_calls))

    @classmethod
    def tool(cls, tool_call_id: str, content: str, *, name: str | None = None) -> "Record":
        """Makes a record that answers one tool call."""
        return cls(Role.TOOL, content, tool_call_id=tool_call_id, name=name)


@dataclass(frozen=True)
class Slot:
    """A context slot. Unset is different from set to the empty text."""

    content: str | None = None
    """None: unset."""
    version: int = 0
    """Counts the writes of this slot, clears included; 0 before the first."""
    updated_at: datetime | None = None
    """The last write; None before the first."""


@dataclass(frozen=True)
class SessionFilter:
    """Which sessions a list admits. All given conditions must hold."""

    status: SessionStatus | None = None
    """None admits all."""
    tags: tuple[str, ...] = ()
    """Sessions that bear every one of these."""
    label_prefix: str = ""
    """Labels that begin with this text, compared exactly."""
    created_from: datetime | None = None
    """Created at or after."""
    created_before: datetime | None = None
    """Created before."""
    last_active_from: datetime | None = None
    """Last active at or after."""
    last_active_before: datetime | None = None
    """Last active before."""


@dataclass(frozen=True)
class FoundSessions:
    """What BatchGetSessions found."""

    sessions: tuple[Session, ...]
    """In the order of the request."""
    missing_ids: tuple[str, ...]
    """Ids that name no session."""


@dataclass(frozen=True)
class SessionPage:
    """A page of sessions."""

    sessions: tuple[Session, ...]
    """May be fewer than asked, even none, before the end."""
    next_page_token: str | None
    """None: this was the last page."""


@dataclass(frozen=True)
class RecordNews:
    """What a watch of a session tells at once."""

    records: tuple[Record, ...]
    """In order of seq; may be none."""
    through_seq: int
    """All up to this seq has been told: a later watch goes on after it."""
    rewound_to_seq: int | None = None
    """The session was rewound: drop the records after this seq that were told before. None: it was not."""


@dataclass(frozen=True)
class RecordPage:
    """A page of records."""

    records: tuple[Record, ...]
    """Never empty before the end."""
    next_page_token: str | None
    """None: this was the last page."""
    head_seq: int
    """The session's head when the page was read."""
    floor_seq: int
    """The session's floor when the page was read."""


@dataclass(frozen=True)
class Appended:
    """What an append did."""

    seqs: tuple[int, ...]
    """One per record, in order."""
    session: Session | None
    """The session after the append; None when a repeated request finds it gone."""
    insight_consumed: bool
    """Whether the insight that the turn read was unset."""
    insight_version: int
    """The insight's version after the append, where one was to be consumed."""


@dataclass(frozen=True)
class Trimmed:
    """What a trim left."""

    kept_records: int
    """Records that the session still shows: more than asked where a tool-call group would have been split."""
    floor_seq: int
    """Records with a seq up to this one are gone from the session."""


@dataclass(frozen=True)
class SessionSlots:
    """The slots of one session. A slot that was not asked for is None."""

    session_id: str
    """The session."""
    system_prompt: Slot | None = None
    """What every send begins with."""
    insight: Slot | None = None
    """A one-time inbox for the next turn."""
    memory: Slot | None = None
    """The session as others see it."""


@dataclass(frozen=True)
class Context:
    """What one send needs. Memory is never part of it."""

    session: Session
    """The session's metadata."""
    system_prompt: Slot
    """Its system prompt."""
    insight: Slot
    """Its insight; hand its version to ``append_records(consume_insight_version=...)``."""
    records: tuple[Record, ...]
    """History, oldest first, without incomplete tool-call groups."""
    incomplete_records: int
    """Records taken out because their tool-call group is incomplete."""
    older_left_out: bool
    """Whether the budget left out older records."""


@dataclass(frozen=True)
class History:
    """What a fork inherits of its source; made by ``none``, ``everything``, ``up_to``, ``last`` and ``of``."""

    kind: str
    """The field of ForkSessionRequest that this stands for."""
    number: int = 0
    """The seq of ``up_to``, the count of ``last``."""
    records: tuple[Record, ...] = ()
    """The records of ``of``."""

    @classmethod
    def none(cls) -> "History":
        """Inherits nothing."""
        return cls("none")

    @classmethod
    def everything(cls) -> "History":
        """Inherits all that the source shows."""
        return cls("all")

    @classmethod
    def up_to(cls, seq: int) -> "History":
        """Inherits all up to and with a seq."""
        return cls("up_to_seq", number=seq)

    @classmethod
    def last(cls, count: int) -> "History":
        """Inherits the most recent records; more where a tool-call group would have been split."""
        return cls("last", number=count)

    @classmethod
    def of(cls, records: Iterable[Record]) -> "History":
        """Takes these records instead, as the new session's own: at most 1,000."""
        return cls("records", records=tuple(records))


@dataclass(frozen=True)
class Forked:
    """What ForkSession made."""

    session: Session
    """The new session."""
    inherited_through_seq: int
    """The last seq that was inherited; 0 when none was."""
    incomplete_records: int
    """Records of incomplete tool-call groups that were left out."""


@dataclass(frozen=True)
class DiffSide:
    """Where one side of a diff stands."""

    first_own_seq: int
    """The first record that only this side shows after the common prefix; 0 when it has none."""
    head_seq: int
    """Its head."""
    floor_seq: int
    """Its floor."""


@dataclass(frozen=True)
class Diff:
    """How two sessions compare."""

    common_through_seq: int
    """Up to this seq both show the very same records; 0 when they share none."""
    left: DiffSide
    """The left session."""
    right: DiffSide
    """The right session."""


@dataclass(frozen=True)
class SessionLimits:
    """What SessionStorage accepts. Sizes are bytes of UTF-8."""

    max_record_bytes: int
    max_append_bytes: int
    max_append_records: int
    max_slot_bytes: int
    max_metadata_bytes: int
    max_page_size: int
    max_page_bytes: int
    request_id_hours: int
    max_transaction_operations: int
    max_transaction_bytes: int
    max_transaction_seconds: float


@dataclass(frozen=True)
class SessionServerInfo:
    """Version and limits of a SessionStorage server."""

    version: str
    """The server's version."""
    schema_revision: str
    """The revision of its database schema."""
    limits: SessionLimits
    """What it accepts."""
