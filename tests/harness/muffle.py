"""A door before a server: calls go in and no answer comes out, as when a network fails at the worst time."""

import select
import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

_CHUNK = 1 << 16


class Muffle:
    """Passes connections on to a server, from a port of its own, until it is told to swallow the answers."""

    def __init__(self, target: str) -> None:
        """Takes the address of the server."""
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._silent = threading.Event()
        self._closing = threading.Event()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
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
        self.cut()
        for thread in self._threads:
            thread.join()

    def silence(self) -> None:
        """Swallows every answer from now on."""
        self._silent.set()

    def cut(self) -> None:
        """Cuts every connection; those that come afterwards are passed on with their answers."""
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._silent.clear()

    def retarget(self, target: str) -> None:
        """Passes later connections on to another server."""
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))

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
        with client, suppress(OSError), socket.create_connection(self._target) as server:
            self._open |= {client, server}
            try:
                while not self._closing.is_set():
                    ready, _, _ = select.select([client, server], [], [], 0.2)
                    for source in ready:
                        data = source.recv(_CHUNK)
                        if not data:
                            return
                        if source is client:
                            server.sendall(data)
                        elif not self._silent.is_set():
                            client.sendall(data)
            finally:
                self._open -= {client, server}
