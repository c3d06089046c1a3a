"""A port that accepts connections, reads what comes, and never answers."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self


class BlackHole:
    """Listens within the block; ``at`` may take over the port of a server that has stopped."""

    def __init__(self, port: int = 0) -> None:
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", port))
        self._listener.listen()
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.accepted = 0
        self._taken: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for taken in (self._listener, *self._taken):
            taken.close()

    def _accept(self) -> None:
        while True:
            try:
                taken, _ = self._listener.accept()
            except OSError:
                return
            # What comes stays in the buffers of the system: nobody reads, nobody answers.
            self._taken.append(taken)
            self.accepted += 1
