"""One of several processes that serve one address. Their parent starts it, as in ``worker all 2``; nobody else does.

Standard input brings the settings as a line of JSON, then perhaps the line ``now``, which ends the worker
at once; its end is the parent's end. Standard output tells the parent, by lines of JSON, what it waits for.
"""

import asyncio
import json
import signal
import sys
from typing import IO

import click

from ramet_server.commands.serve import serve
from ramet_server.commands.services import of_command
from ramet_server.serving.replicas import NOW, told_listening, told_refusal
from ramet_server.serving.settings import Settings


class _Worker:
    """A server that hears from its parent when to stop."""

    def __init__(self, number: int, control: IO[bytes]) -> None:
        self.number = number
        self._control = control
        self._listening: asyncio.Task[None] | None = None

    def stops(self) -> tuple[asyncio.Event, asyncio.Event]:
        """Returns what asks to drain and what asks to end at once."""
        drain, now = asyncio.Event(), asyncio.Event()
        # However many signals: a service manager signals the parent and the workers, and means one stop.
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, drain.set)
        self._listening = asyncio.create_task(self._listen(drain, now), name="parent")
        return drain, now

    def announce(self, text: str) -> None:
        """Tells the parent that calls are taken."""
        click.echo(told_listening(text))

    async def _listen(self, drain: asyncio.Event, now: asyncio.Event) -> None:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self._control)
        while line := await reader.readline():
            if line.strip() == NOW:
                now.set()
        drain.set()


def main() -> None:
    """Serves until it is told to stop."""
    command, number = sys.argv[1], int(sys.argv[2])
    # Unbuffered, since what follows the first line is read by the loop.
    control = open(0, "rb", buffering=0)  # noqa: SIM115 - open as long as the process
    given = control.readline()
    if not given:
        sys.exit("The parent of this worker is gone.")
    try:
        serve(Settings(**json.loads(given)), of_command(command), _Worker(number, control))
    except click.ClickException as error:
        click.echo(told_refusal(error.message))
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
