"""The whole contract of SessionStorage, as classes of tests."""

from __future__ import annotations

from tests.conformance.collecting import classes_of
from tests.conformance.session import (
    appends,
    contexts,
    diffs,
    digests,
    erasure,
    forks,
    idempotency,
    json_text,
    limits,
    listing,
    reading,
    rewinds,
    server_info,
    sessions,
    slots,
    spaces,
    tool_groups,
    transaction_conflicts,
    transaction_repeats,
    transactions,
    trims,
    watches,
)

CONTRACT = classes_of(
    sessions,
    listing,
    appends,
    reading,
    tool_groups,
    trims,
    rewinds,
    erasure,
    slots,
    digests,
    contexts,
    forks,
    diffs,
    watches,
    idempotency,
    transactions,
    transaction_conflicts,
    transaction_repeats,
    spaces,
    limits,
    json_text,
    server_info,
)
