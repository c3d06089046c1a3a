"""SessionStorage: the content of one session."""

from session_service.building import (
    build,
    build_arriving,
    build_clearing,
    build_leaving,
    build_sweep,
    build_verify,
    joining_units,
)
from session_service.servicer import SessionStorageServicer

__all__ = [
    "SessionStorageServicer",
    "build",
    "build_arriving",
    "build_clearing",
    "build_leaving",
    "build_sweep",
    "build_verify",
    "joining_units",
]
