"""SessionStorage: the content of one session."""

from session_service.building import build, build_sweep, build_verify
from session_service.servicer import SessionStorageServicer

__all__ = ["SessionStorageServicer", "build", "build_sweep", "build_verify"]
