"""Fixtures of the conformance suites. A backend's module adds the one that differs: `backend`."""

from __future__ import annotations

import uuid

import pytest

from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.conformance.backends import Backend
from tests.conformance.calling import within
from tests.conformance.session.making import put


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
def telemetry(backend: Backend, space: str) -> TelemetryStub:
    """The Telemetry of the backend, within the test's space."""
    return TelemetryStub(within(backend.channel, space))


@pytest.fixture
def session(storage: SessionStorageStub) -> str:
    """The id of a new, empty session."""
    return put(storage, "main").id
