"""A server that dies in the midst of an operation leaves nothing half-made; ``make crash`` takes every step."""

from pathlib import Path

import pytest

from tests.crash.operations import BY_NAME
from tests.crash.stepping import kill_at_each_step


@pytest.mark.parametrize(("name", "every"), [("append", 6), ("fork", 12)])
async def test_a_killed_operation_is_whole_or_not_there(
    database_url: str, tmp_path: Path, name: str, every: int
) -> None:
    cuts = await kill_at_each_step(BY_NAME[name], database_url, tmp_path, every)
    assert cuts[0].left == "before"
