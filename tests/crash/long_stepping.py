"""A server that dies in the midst of an operation leaves nothing half-made, and the operation goes on afterwards."""

from pathlib import Path

import pytest

from tests.crash.operations import OPERATIONS, Operation
from tests.crash.stepping import kill_at_each_step

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
async def test_each_step_can_be_the_last(operation: Operation, database_url: str, tmp_path: Path) -> None:
    cuts = await kill_at_each_step(operation, database_url, tmp_path)
    print(operation.name, [(cut.step, cut.left) for cut in cuts])
    assert {"before", "after"} <= {cut.left for cut in cuts}
