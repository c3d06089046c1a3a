"""What SIGTERM and SIGINT ask of a server."""

import asyncio
import signal


def stop_signals() -> tuple[asyncio.Event, asyncio.Event]:
    """Returns what the first SIGTERM or SIGINT sets, to drain, and what the second sets, to end at once."""
    first, second = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        (second if first.is_set() else first).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    return first, second
