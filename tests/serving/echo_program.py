"""The tiny service as a program of its own, with ``ramet-server``'s way to start, serve and drain."""

import os
import sys
from pathlib import Path
from typing import Any

from ramet_server.commands.serve import serve
from ramet_server.commands.services import ServedService
from ramet_server.domain.call import Call
from ramet_server.serving.settings import Settings, environment_name
from tests.serving.echo_service import DESCRIPTOR, EchoServicer, Text

COMMAND = (sys.executable, "-m", "tests.serving.echo_program")
"""What runs the program; its one argument is the folder of ``entered`` and ``go``."""


class WaitingServicer(EchoServicer):
    """Says that a call came by writing to ``entered``, and answers when ``go``, a named pipe, is written to."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def Say(self, request: Any, call: Call) -> Any:
        (self._folder / "entered").write_text(request.text)
        (self._folder / "go").read_text()
        return Text(text=request.text)


def main() -> None:
    """Serves until a signal, by the settings in the environment."""
    folder = Path(sys.argv[1])
    listen, url = (os.environ[environment_name(name)] for name in ("listen", "database_url"))
    settings = Settings(listen=listen, database_url=url, lame_duck_seconds=0)
    serve(settings, [ServedService("echo", DESCRIPTOR, lambda *_: WaitingServicer(folder), ("Say", "{}"))])


if __name__ == "__main__":
    main()
