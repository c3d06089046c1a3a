"""The contracts over SQLite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.backends import Backend, serving
from tests.conformance.collecting import collect
from tests.conformance.session.contract import CONTRACT as SESSION_STORAGE
from tests.conformance.telemetry.contract import CONTRACT as TELEMETRY
from tests.conformance.tree.contract import CONTRACT as SESSION_TREE
from tests.harness.sqlite import new_database


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    """A server over a SQLite file."""
    with serving(new_database(tmp_path_factory.mktemp("conformance"))) as served:
        yield served


collect(globals(), SESSION_STORAGE)
collect(globals(), SESSION_TREE)
collect(globals(), TELEMETRY)
