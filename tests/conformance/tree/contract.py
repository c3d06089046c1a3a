"""The whole contract of SessionTree, as classes of tests."""

from __future__ import annotations

from tests.conformance.collecting import classes_of
from tests.conformance.tree import (
    awaiting,
    configs,
    deletions,
    forest,
    idempotency,
    lists,
    moves,
    nodes,
    refs,
    server_info,
    spaces,
    watches,
    wide,
)

CONTRACT = classes_of(
    nodes, lists, moves, deletions, refs, configs, forest, awaiting, watches, idempotency, spaces, wide, server_info
)
