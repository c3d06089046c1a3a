"""Rules that send a mutation again."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.model.base import Base
from tests.model.client import Refusal


class RepeatRules(Base):
    """Repeats what was sent."""

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        """Sends a mutation again: it answers as it did first, and changes nothing."""
        sent = self.sent[-1 - data.draw(st.integers(0, min(4, len(self.sent) - 1)), label="how long ago")]
        answer: Any = self.client.attempt(sent.method, sent.request)
        if isinstance(answer, Refusal):
            # What it made may be gone since.
            assert answer.reason in ("SESSION_NOT_FOUND", "NODE_NOT_FOUND", "RECORD_NOT_FOUND", "BELOW_TRIM_FLOOR"), (
                answer
            )
        else:
            assert sent.stable(answer) == sent.first
        self.check_everything()
