"""The whole contract of Telemetry, as classes of tests."""

from __future__ import annotations

from tests.conformance.collecting import classes_of
from tests.conformance.telemetry import (
    answers,
    ingest,
    measures,
    merging,
    server_info,
    spaces,
    streams,
    tailing,
    words,
)

CONTRACT = classes_of(ingest, streams, merging, answers, words, measures, tailing, spaces, server_info)
