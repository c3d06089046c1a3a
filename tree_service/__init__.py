"""SessionTree: the shape of the forest, and the frozen config of each node."""

from tree_service.building import (
    build,
    build_arriving,
    build_latecomers,
    build_leaving,
    build_sweep,
    build_verify,
    joining_units,
)
from tree_service.servicer import SessionTreeServicer

__all__ = [
    "SessionTreeServicer",
    "build",
    "build_arriving",
    "build_latecomers",
    "build_leaving",
    "build_sweep",
    "build_verify",
    "joining_units",
]
