"""Reading a history near a place, to find where tool-call groups begin and end."""

from collections.abc import Sequence

from session_service.rules import spans, tool_groups
from session_service.rules.ports import RecordRows
from session_service.rules.spans import Span
from session_service.rules.tool_groups import Group
from session_service.rules.values import LightRecord

_FIRST_STEP = 256
_LARGEST_STEP = 16 * 1024
_STEP_BYTES = 16 * 1024 * 1024
"""Arguments of tool calls come along, so the largest record decides how many rows are read at once."""


class History:
    """What a session shows, read within one unit of work."""

    def __init__(self, records: RecordRows, shown: Sequence[Span], max_record_bytes: int) -> None:
        self._records = records
        self._shown = shown
        self._largest_step = max(1, min(_LARGEST_STEP, _STEP_BYTES // max(1, max_record_bytes)))

    def block_before(self, seq: int) -> list[LightRecord]:
        """Returns the whole part before ``seq`` of the block that reaches up to it; empty where none does."""
        block: list[LightRecord] = []
        begins = False
        while not begins:
            earlier, begins = self._earlier(block[0].seq if block else seq, len(block))
            block = earlier + block
        return block

    def clean_cut(self, seq: int) -> int:
        """Returns the greatest seq, not above ``seq``, before which no tool-call group is split."""
        part = self._block_from(seq)
        groups = tool_groups.groups_of(part)
        cut = seq
        while tool_groups.orphans_from(groups, cut):
            earlier, begins = self._earlier(part[0].seq, len(part))
            part = earlier + part
            groups = tool_groups.groups_of(part)
            cut = tool_groups.clean_cut(groups, cut)
            if begins:
                break
        return cut

    def groups_at(self, records: Sequence[LightRecord]) -> list[Group]:
        """Returns the groups of consecutive records that end with the history, whatever part they begin in.

        Answers to calls before the first record are found by reading on backwards, and only then.
        """
        part = list(records)
        groups = tool_groups.groups_of(part)
        begins = False
        while not begins and part and _leading_orphan(part, groups):
            earlier, begins = self._earlier(part[0].seq, len(part))
            part = earlier + part
            groups = tool_groups.groups_of(part)
        return groups

    def _earlier(self, seq: int, have: int) -> tuple[list[LightRecord], bool]:
        """Returns a piece of the block before ``seq``, and whether the block begins with it."""
        step = self._step(have)
        piece = self._records.light(spans.clip(self._shown, 0, seq - 1), step, descending=True)
        for place, record in enumerate(piece):
            if not tool_groups.in_block(record):
                return piece[:place][::-1], True
        return piece[::-1], len(piece) < step

    def _block_from(self, seq: int) -> list[LightRecord]:
        part: list[LightRecord] = []
        while True:
            step = self._step(len(part))
            after = part[-1].seq if part else seq - 1
            piece = self._records.light(spans.clip(self._shown, after + 1, spans.OPEN_END), step)
            for place, record in enumerate(piece):
                if not tool_groups.in_block(record):
                    return part + piece[:place]
            part += piece
            if len(piece) < step:
                return part

    def _step(self, have: int) -> int:
        # As much as there is already, so that pairing the whole again each time stays cheap for long blocks.
        return min(max(_FIRST_STEP, have), self._largest_step)


def _leading_orphan(part: Sequence[LightRecord], groups: Sequence[Group]) -> bool:
    """Tells whether an answer in the first block found no call: its call may stand before it."""
    orphans = {group.seqs[0] for group in groups if group.orphan}
    for record in part:
        if not tool_groups.in_block(record):
            return False
        if record.seq in orphans:
            return True
    return False
