"""A stand-in of a provider's service: it speaks the wire format, as a script says, and notes what it was asked."""

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Answer = dict[str, Any] | list[tuple[str, dict[str, Any]]]
"""A JSON body, or the events of a stream with their names; an empty name sends none."""


class Provider:
    """Answers each request with the next answer of its script."""

    def __init__(self, answers: Sequence[Answer], last_words: str = "") -> None:
        """Takes the answers, and what a stream ends with."""
        self.asked: list[dict[str, Any]] = []
        script = list(answers)
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                answer = script.pop(0)
                streams = isinstance(answer, list)
                body = json.dumps(answer) if isinstance(answer, dict) else _events(answer) + last_words
                self.send_response(200)
                self.send_header("content-type", "text/event-stream" if streams else "application/json")
                self.send_header("content-length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _events(events: Sequence[tuple[str, dict[str, Any]]]) -> str:
    return "".join((f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in events)
