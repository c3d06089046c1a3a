"""The contracts over MariaDB, for all that speak MySQL's protocol."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.backends import Backend, serving
from tests.conformance.collecting import collect
from tests.conformance.session.contract import CONTRACT as SESSION_STORAGE
from tests.conformance.telemetry.contract import CONTRACT as TELEMETRY
from tests.conformance.tree.contract import CONTRACT as SESSION_TREE
from tests.harness.mariadb import MariaDb

pytestmark = pytest.mark.mariadb


@pytest.fixture(scope="module")
def backend(mariadb_server: MariaDb) -> Iterator[Backend]:
    """A server over a database of the MariaDB that all tests share."""
    url = mariadb_server.new_database()
    with serving(url) as served:
        yield served
    mariadb_server.drop_database(url)


collect(globals(), SESSION_STORAGE)
collect(globals(), SESSION_TREE)
collect(globals(), TELEMETRY)
