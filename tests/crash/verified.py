"""Whether the program ``ramet-server verify`` finds nothing."""

import subprocess

from tests.harness.server import PROGRAM


def assert_verified(database_url: str) -> None:
    """Asserts that the program finds nothing wrong with the database."""
    done = subprocess.run(
        [PROGRAM, "verify", "--database-url", database_url], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
