"""Reading an archive into a database.

Each session is brought whole before it is seen, each diagnosis is one transaction, nodes come in batches of
their lines. What is there and equal stays as it is, what is there and differs stops the run; what came
before stays. So a run may be repeated, and goes on where an earlier one was stopped.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import session_service
import telemetry
import tree_service
from ramet_server.archiving.arriving_session import Context, OpenSession, Provenance
from ramet_server.archiving.errors import ArchiveError
from ramet_server.archiving.id_mapping import Ids
from ramet_server.archiving.lines import Counts, Line, Tally, read_node, read_record, read_refs, read_session
from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import RametError
from ramet_server.domain.limits import Limits
from telemetry.rules.archiving.carrying import Told
from telemetry.rules.archiving.columns import DIAGNOSIS, FEEDBACK, STEP, TOOL, Row, read_row
from tree_service.rules.archiving.arriving import Trouble
from tree_service.rules.archiving.leaving import LeavingNode
from tree_service.rules.archiving.ports import DatedRef

_NODES = 200

_PARTS = {"step": STEP, "tool": TOOL, "feedback": FEEDBACK}


@dataclass(frozen=True)
class Choices:
    """How an import goes about it."""

    ids: Ids
    resume: bool = False
    """Whether to go on with sessions that an earlier run left half-way, instead of beginning them again."""
    dated: bool = True
    """Whether the times of the lines are of the archive, so that they must agree with those that are there."""


class Import:
    """One run that reads an archive into the space of a call; it blocks."""

    def __init__(self, database: Database, limits: Limits, clock: Clock, call: Call, choices: Choices) -> None:
        self._call = call
        self._ids = choices.ids
        self._nodes = tree_service.build_arriving(database, limits, clock)
        self._diagnoses = telemetry.build_arriving(database, clock)
        sessions = session_service.build_arriving(database, limits, clock)
        self._context = Context(sessions, call, choices.ids, choices.resume, choices.dated, Provenance())
        self._session: OpenSession | None = None
        self._diagnosis: tuple[int, Told] | None = None
        self._node_batch: list[tuple[int, LeavingNode]] = []
        self._ref_batch: list[tuple[int, DatedRef]] = []
        self._new = Counts()

    def run(self, lines: Iterable[tuple[int, Line]], tell: Callable[[Counts], None]) -> tuple[Counts, Counts]:
        """Takes numbered lines; returns what they held, and what of it is new here.

        ``tell`` hears from time to time how far it is. Raises ArchiveError.
        """
        tally = Tally(tell)
        number = 0
        for number, line in lines:
            kind = line.get("kind")
            with _at(number):
                self._take(number, kind, line)
            if kind is not None and kind != "end":
                tally.count(line)
        # Transcripts have no last line that says so.
        with _at(number):
            self._close(number + 1)
        return tally.end(), self._new

    def _take(self, number: int, kind: str | None, line: Line) -> None:
        if kind == "record":
            if self._session is None:
                raise ArchiveError(number, "a record stands behind the session that shows it")
            name, record = read_record(line)
            self._session.record(number, name, record)
            return
        if kind in _PARTS:
            self._part(number, kind, line)
            return
        self._close(number, kind)
        if kind == "session":
            self._session = OpenSession(self._context, number, read_session(line))
        elif kind == "node":
            self._node_batch.append((number, self._node(line)))
        elif kind == "refs":
            self._ref_batch += [(number, self._ref(ref)) for ref in read_refs(line)]
        elif kind == "diagnosis":
            self._diagnosis = (number, Told(self._row(read_row(DIAGNOSIS, _columns(line)))))
        elif kind not in (None, "end"):
            raise ArchiveError(number, f"its kind {kind!r} is not known")

    def _close(self, number: int, kind: str | None = None) -> None:
        """Brings what is gathered, before a line of some kind; batches wait for more of their kind."""
        self._close_session(number)
        self._close_diagnosis()
        if kind != "node" or len(self._node_batch) >= _NODES:
            self._close_nodes()
        if kind != "refs" or len(self._ref_batch) >= _NODES:
            self._close_refs()

    def _close_session(self, number: int) -> None:
        if self._session is not None:
            self._new += self._session.close(number)
            self._session = None

    def _close_diagnosis(self) -> None:
        if self._diagnosis is None:
            return
        number, told = self._diagnosis
        self._diagnosis = None
        with _at(number):
            new, difference = self._diagnoses.bring(self._call, told)
            if difference is not None:
                raise ArchiveError(number, f"a diagnosis with this id is there, with {difference}")
            self._new += Counts(diagnoses=int(new))

    def _close_nodes(self) -> None:
        batch, self._node_batch = self._node_batch, []
        if batch:
            new, trouble = self._nodes.bring(self._call, [node for _, node in batch], dated=self._context.dated)
            self._new += Counts(nodes=new)
            _raise_trouble([number for number, _ in batch], trouble)

    def _close_refs(self) -> None:
        batch, self._ref_batch = self._ref_batch, []
        if batch:
            new, trouble = self._nodes.bring_refs(self._call, [ref for _, ref in batch])
            self._new += Counts(refs=new)
            _raise_trouble([number for number, _ in batch], trouble)

    def _part(self, number: int, kind: str, line: Line) -> None:
        row = self._row(read_row(_PARTS[kind], _columns(line)))
        if self._diagnosis is None or self._diagnosis[1].diagnosis["session_id"] != row["session_id"]:
            raise ArchiveError(number, f"a {kind} stands behind its diagnosis")
        told = self._diagnosis[1]
        {"step": told.steps, "tool": told.tools, "feedback": told.feedback}[kind].append(row)

    def _node(self, line: Line) -> LeavingNode:
        leaving = read_node(line)
        self._nodes.check(leaving)
        node, ids = leaving.node, self._ids
        source = node.source_session_id
        return replace(
            leaving,
            node=replace(
                node,
                node_id=ids.session(node.node_id),
                parent_id=None if node.parent_id is None else ids.session(node.parent_id),
                source_session_id=None if source is None else ids.other_session(source),
            ),
        )

    def _ref(self, ref: DatedRef) -> DatedRef:
        return DatedRef(self._ids.session(ref.node_id), self._ids.session(ref.target_id), ref.created_at)

    def _row(self, row: Row) -> Row:
        changed = {**row, "session_id": self._ids.diagnosis(str(row["session_id"]))}
        conversation_id = row.get("conversation_id")
        if conversation_id is not None:
            changed["conversation_id"] = self._ids.other_session(str(conversation_id))
        return changed


def _columns(line: Line) -> Line:
    return {name: value for name, value in line.items() if name != "kind"}


def _raise_trouble(numbers: Sequence[int], trouble: Trouble | None) -> None:
    if trouble is not None:
        raise ArchiveError(numbers[trouble.place], trouble.reason)


@contextmanager
def _at(number: int) -> Iterator[None]:
    """Tells of an error of a rule or of the database where in the archive it was met."""
    try:
        yield
    except RametError as error:
        raise ArchiveError(number, error.message) from error
