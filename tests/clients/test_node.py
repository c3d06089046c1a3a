"""A Node client with stubs loaded from protos/ calls every RPC: see node/calls.test.mjs."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.clients.calls import example_calls

_HERE = Path(__file__).parent / "node"


@pytest.mark.node
def test_node_calls_every_rpc(served_address: str) -> None:
    assert (_HERE / "node_modules").exists(), "the packages of the Node client are missing: run `make tools`"
    done = subprocess.run(
        ["node", "--test", "--test-reporter=tap", "calls.test.mjs"],
        cwd=_HERE,
        env=os.environ | {"RAMET_ADDRESS": served_address},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"^# pass (\d+)$", done.stdout, re.MULTILINE)
    # One test per call, and one that holds the calls against the services that were loaded.
    assert passed is not None
    assert int(passed[1]) == len(example_calls()) + 1, done.stdout
