"""Fixtures of the conformance suites. A backend's module adds the one that differs: `backend`."""

from __future__ import annotations

import uuid

import pytest

from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub

# Before the suites are imported, so that their assertions tell what they compared.
pytest.register_assert_rewrite("tests.conformance.refusing", "tests.conformance.session", "tests.conformance.tree")

from tests.conformance.backends import Backend  # noqa: E402
from tests.conformance.calling import within  # noqa: E402
from tests.conformance.session.making import put  # noqa: E402


@pytest.fixture
def space() -> str:
    """A space that nobody else uses, so that tests may run in any order against one server."""
    return f"space-{uuid.uuid4().hex}"


@pytest.fixture
def storage(backend: Backend, space: str) -> SessionStorageStub:
    """The SessionStorage of the backend, within the test's space."""
    return SessionStorageStub(within(backend.channel, space))


@pytest.fixture
def tree(backend: Backend, space: str) -> SessionTreeStub:
    """The SessionTree of the backend, within the test's space."""
    return SessionTreeStub(within(backend.channel, space))


@pytest.fixture
def session(storage: SessionStorageStub) -> str:
    """The id of a new, empty session."""
    return put(storage, "main").id
