"""Changes as they are committed."""

from __future__ import annotations

import threading
from typing import Any

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub
from tests.conformance.telemetry.making import tell
from tests.telemetry import events as e


class TestTailing:
    def test_what_changes_is_told_as_it_is_now(self, telemetry: TelemetryStub) -> None:
        tell(telemetry, e.started("before", session_id="other"))
        call: Any = telemetry.TailEvents(pb.TailEventsRequest(session_id="d"))
        ended = threading.Event()

        def go_on() -> None:
            # The call begins on the server some time after it was made here, and only then are changes told.
            number = 0
            while not ended.wait(0.2):
                number += 1
                tell(telemetry, e.step_completed(f"s{number}", "s", number), e.tool(f"t{number}", f"t{number}"))

        telling = threading.Thread(target=go_on)
        telling.start()
        try:
            kinds = set()
            for change in call:
                kinds.add(change.WhichOneof("row"))
                row = getattr(change, change.WhichOneof("row"))
                assert row.session_id == "d"
                if kinds == {"session", "step", "tool_invocation"}:
                    break
        finally:
            ended.set()
            telling.join()
            call.cancel()
