"""What ingest asks of a store. All rows are those of the call's space."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ramet_server.domain.idempotency import RequestLog
from ramet_server.domain.idempotency import Store as UnitStore
from telemetry.rules.registers import Merged
from telemetry.rules.values import Feedback

Key = tuple[str, str]
"""A session_id, and the client's key of a step or tool call within it."""


class KeyTaken(Exception):
    """Another transaction put a row of the same key first: roll back and run again. It never reaches a client."""


@dataclass(frozen=True, slots=True)
class Producer:
    """How far the events of one producer are committed."""

    producer_id: str
    committed_through_seq: int
    holder: str
    """Its newest stream."""
    dropped_count: int


@dataclass(frozen=True, slots=True)
class DiagnosisRow:
    """A diagnosis as it is merged."""

    id: int
    session_id: str
    merged: Merged
    feedback: str | None
    last_heard_at: datetime
    created_at: datetime


@dataclass(frozen=True, slots=True)
class KeyedRow:
    """A step or a tool call as it is merged."""

    id: int
    session_id: str
    key: str
    merged: Merged
    created_at: datetime
    stored: bool = True
    """Whether there is a row already."""

    def with_merged(self, merged: Merged) -> "KeyedRow":
        """Returns the row with other columns."""
        return KeyedRow(self.id, self.session_id, self.key, merged, self.created_at, self.stored)


@dataclass(frozen=True, slots=True)
class Word:
    """What a source says, with what decides between two words of it."""

    session_id: str
    feedback: Feedback
    said_at: datetime
    event_id: str


@dataclass(frozen=True, slots=True)
class Totals:
    """What the rows of a diagnosis add up to."""

    step_count: int = 0
    steps_with_tokens: int = 0
    token_count: int | None = None
    cost_micros: int | None = None
    tool_call_count: int = 0


class Ledger(Protocol):
    """The events that were taken."""

    def find(self, event_ids: Collection[str]) -> Mapping[str, str]:
        """Returns the body hashes of those that are known."""
        ...

    def add(self, hashes: Mapping[str, str], now: datetime) -> None:
        """Notes events by id; raises KeyTaken where another transaction noted one of them first."""
        ...


class Producers(Protocol):
    """Producers of events."""

    def lock(self, producer_id: str) -> Producer | None:
        """Returns the producer; all its other streams wait until this unit ends."""
        ...

    def insert(self, producer: Producer, now: datetime) -> None:
        """Stores a new producer; raises KeyTaken where there is one."""
        ...

    def save(self, producer: Producer, now: datetime) -> None:
        """Stores a locked producer."""
        ...


class Diagnoses(Protocol):
    """Rows of diagnoses."""

    def lock(self, session_ids: Collection[str]) -> dict[str, DiagnosisRow]:
        """Returns those that exist, without their great texts, locked in the order of their ids."""
        ...

    def insert_missing(self, rows: Sequence[DiagnosisRow]) -> bool:
        """Stores new rows where there are none of their session_id; tells whether it stored all."""
        ...

    def totals(self, session_ids: Collection[str]) -> Mapping[str, Totals]:
        """Returns what the rows of diagnoses add up to; one without any may be missing."""
        ...

    def save(self, rows: Sequence[DiagnosisRow], totals: Mapping[str, Totals], now: datetime) -> None:
        """Stores locked rows, with their totals; great texts that they do not give stay."""
        ...


class Steps(Protocol):
    """Rows of steps."""

    def of(self, keys: Collection[Key]) -> dict[Key, KeyedRow]:
        """Returns those that exist, without their great texts."""
        ...

    def save(self, rows: Sequence[KeyedRow], now: datetime) -> None:
        """Stores new and changed rows; great texts that they do not give stay. May raise KeyTaken."""
        ...


class ToolCalls(Protocol):
    """Rows of tool calls."""

    def of(self, keys: Collection[Key]) -> dict[Key, KeyedRow]:
        """Returns those that exist, without their columns: another event replaces all of them."""
        ...

    def save(self, rows: Sequence[KeyedRow], step_ids: Mapping[Key, int], now: datetime) -> None:
        """Stores new and changed rows, with the ids of those of their steps that exist. May raise KeyTaken."""
        ...

    def adopt(self, steps: Collection[Key], now: datetime) -> None:
        """Gives tool calls that came before these steps the ids of their steps."""
        ...


class Words(Protocol):
    """Feedback by diagnosis and source."""

    def of(self, session_ids: Collection[str]) -> list[Word]:
        """Returns all that is said of these diagnoses."""
        ...

    def save(self, words: Sequence[Word]) -> None:
        """Stores words, each in place of an earlier one of its source."""
        ...


class UnitOfWork(Protocol):
    """One transaction of ingest."""

    @property
    def requests(self) -> RequestLog:
        """The log of requests that took effect."""
        ...

    @property
    def ledger(self) -> Ledger:
        """The events that were taken."""
        ...

    @property
    def producers(self) -> Producers:
        """The producers."""
        ...

    @property
    def diagnoses(self) -> Diagnoses:
        """The diagnoses."""
        ...

    @property
    def steps(self) -> Steps:
        """The steps."""
        ...

    @property
    def tool_calls(self) -> ToolCalls:
        """The tool calls."""
        ...

    @property
    def words(self) -> Words:
        """The feedback."""
        ...


class Store(UnitStore[UnitOfWork], Protocol):
    """Opens units of work in the space of a call."""
