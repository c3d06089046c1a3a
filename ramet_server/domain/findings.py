"""What a verification finds, and how one is carried out: page by page, each page of one consistent state.

A check looks at a page of things within one snapshot, so that what others write meanwhile never looks
wrong. What it finds may be mended: then the thing is looked at again, under the lock of those who
change it, and only what is still wrong there is changed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Generic, Protocol, TypeVar

from ramet_server.domain.call import Call

U = TypeVar("U")
U_co = TypeVar("U_co", covariant=True)
T = TypeVar("T")

Place = tuple[str, ...]
"""Where a check goes on; () is the beginning."""


class Outcome(StrEnum):
    """What became of a finding."""

    TOLD = "told"
    """It was only told."""
    MENDED = "mended"
    """It is no longer so."""
    LEFT = "left"
    """People must decide."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it must be."""

    code: str
    """Stable, such as ``NODE_DEPTH``."""
    space: str
    """Empty where it belongs to no space."""
    id: str
    """What it is about: a session, a node, ...; together with the code it names the finding."""
    found: str
    """What is."""
    expected: str
    """What should be."""
    outcome: Outcome = Outcome.TOLD
    reason: str = ""
    """Why it was left."""


@dataclass(frozen=True, slots=True)
class Flaw(Generic[U]):
    """A finding and how it is mended."""

    finding: Finding
    mend: Callable[[U], None] | None = None
    """Mends it within the unit that found it, which holds the locks; None: it is left to people."""
    why_left: str = ""
    """Why nothing mends it."""


@dataclass(frozen=True, slots=True)
class Page(Generic[U]):
    """What a check found in one state."""

    flaws: Sequence[Flaw[U]] = ()
    after: Place | None = None
    """Where it goes on; None at the end."""


class Check(Protocol[U]):
    """One kind of thing that is looked at, in one space or in none."""

    def page(self, unit: U, after: Place) -> Page[U]:
        """Looks at the next things."""
        ...

    def again(self, unit: U, finding: Finding) -> Sequence[Flaw[U]]:
        """Locks what a finding is about and looks at it once more."""
        ...


class VerifyStore(Protocol[U_co]):
    """Opens units over the space of a call."""

    def snapshot(self, call: Call, fn: Callable[[U_co], T]) -> T:
        """Runs ``fn``, which only reads, over one consistent state."""
        ...

    def write(self, call: Call, fn: Callable[[U_co], T]) -> T:
        """Runs ``fn`` and commits; ``fn`` may run more than once, and only its last run counts."""
        ...


def carry_out(store: VerifyStore[U], call: Call, check: Check[U], *, repair: bool) -> Iterator[Finding]:
    """Yields what a check finds in the space of the call, mended where that is wished and safe."""
    after: Place | None = ()
    while after is not None:
        page = store.snapshot(call, partial(check.page, after=after))
        for flaw in page.flaws:
            yield _mended(store, call, check, flaw) if repair else flaw.finding
        after = page.after


def _mended(store: VerifyStore[U], call: Call, check: Check[U], flaw: Flaw[U]) -> Finding:
    def work(unit: U) -> Finding:
        for again in check.again(unit, flaw.finding):
            if again.finding.code != flaw.finding.code:
                continue
            if again.mend is None:
                return replace(flaw.finding, outcome=Outcome.LEFT, reason=again.why_left)
            again.mend(unit)
        # Another one mended it, or what was mended before it took it along.
        return replace(flaw.finding, outcome=Outcome.MENDED)

    if flaw.mend is None:
        return replace(flaw.finding, outcome=Outcome.LEFT, reason=flaw.why_left)
    return store.write(call, work)
