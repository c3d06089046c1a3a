"""Which records of an archive have gone by: what both ends of it keep in mind, a few numbers per session."""

from collections.abc import Sequence

from session_service.rules.spans import Span, dropped


class Coverage:
    """The ranges that went by, by the name of their origin."""

    def __init__(self) -> None:
        self._gone: dict[str, list[Span]] = {}

    def missing(self, shown: Sequence[Span]) -> list[Span]:
        """Returns the part of a history that did not go by yet, in its order."""
        gone = [span for name in dict.fromkeys(span.origin for span in shown) for span in self._gone.get(name, ())]
        return dropped(shown, gone)

    def add(self, pieces: Sequence[Span]) -> None:
        """Notes ranges that went by, none of which did before."""
        for name in {span.origin for span in pieces}:
            of_name = [*self._gone.get(name, ()), *(span for span in pieces if span.origin == name)]
            self._gone[name] = _merged(of_name)


def _merged(ranges: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(ranges, key=lambda span: span.first_seq):
        if merged and merged[-1].last_seq + 1 >= span.first_seq:
            merged[-1] = Span(span.origin, merged[-1].first_seq, max(merged[-1].last_seq, span.last_seq))
        else:
            merged.append(span)
    return merged
