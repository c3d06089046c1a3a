"""A door before a database server that can be slammed at the worst moment."""

import select
import socket
import threading
from enum import Enum, auto
from types import TracebackType
from typing import Self

_CHUNK = 1 << 16


class Cut(Enum):
    """When a connection that sends COMMIT is cut."""

    NEVER = auto()
    BEFORE_COMMIT = auto()
    """The server never sees the COMMIT."""
    AFTER_COMMIT = auto()
    """The server commits, and the client never hears of it."""


class Proxy:
    """Passes connections on to a port of 127.0.0.1, from a port of its own."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cut = Cut.NEVER
        """What to do; it goes back to NEVER with the first cut."""
        self.cuts = 0
        self._threads: list[threading.Thread] = []
        self._closing = threading.Event()
        self._acceptor = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._acceptor.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closing.set()
        # Closing alone does not wake a thread that waits in accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._pass_on, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._target_port)) as server:
            while not self._closing.is_set():
                ready, _, _ = select.select([client, server], [], [], 0.2)
                for source in ready:
                    try:
                        data = source.recv(_CHUNK)
                    except ConnectionError:
                        return
                    if not data:
                        return
                    committing = source is client and data.endswith((b"\x03COMMIT", b";COMMIT", b";COMMIT; END"))
                    if committing and self.cut is not Cut.NEVER:
                        self._slam(server, data)
                        return
                    (server if source is client else client).sendall(data)

    def _slam(self, server: socket.socket, data: bytes) -> None:
        cut, self.cut = self.cut, Cut.NEVER
        if cut is Cut.AFTER_COMMIT:
            server.sendall(data)
            # The server's answer proves the commit; it goes no further.
            answer = b""
            while not _is_whole(answer):
                answer += server.recv(_CHUNK)
        self.cuts += 1


def _is_whole(answer: bytes) -> bool:
    """Tells whether the answers to some statements, none of which returns rows, are all there."""
    while len(answer) >= 4:
        packet, answer = (
            answer[4 : 4 + int.from_bytes(answer[:3], "little")],
            answer[4 + int.from_bytes(answer[:3], "little") :],
        )
        if packet[:1] != b"\x00" or len(packet) < 7:
            return True
        # An OK: two counts, here of one byte each, and the status, whose bit tells whether more answers follow.
        if not packet[3] & 0x08:
            return True
    return False
