"""Waiting for something to become true, for as long as it takes within reason."""

import threading
import time
from collections.abc import Callable

_GIVE_UP_AFTER_S = 60.0
_STEP_S = 0.02


def wait_until(true: Callable[[], object], what: str) -> None:
    """Returns once the condition holds; fails if that does not come at all."""
    pause = threading.Event()
    give_up_at = time.monotonic() + _GIVE_UP_AFTER_S
    while not true():
        assert time.monotonic() < give_up_at, f"in vain: {what}"
        pause.wait(_STEP_S)
