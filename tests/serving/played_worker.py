"""A program that behaves as a worker does towards its parent, and serves nothing.

Its arguments are a folder and a number. It writes its pid to the file ``pid`` with the number, and does what the
words in the file ``play`` say: ``refuse``, ``die`` or ``wait`` before it serves, ``deaf`` to signals, ``exit CODE``.
"""

import os
import signal
import sys
from pathlib import Path

from ramet_server.serving.replicas import NOW, told_listening, told_refusal


def main() -> None:
    """Plays until told to end."""
    folder, number = Path(sys.argv[1]), sys.argv[2]
    words = (folder / "play").read_text().split()
    code = int(words[1]) if words[0] == "exit" else 0
    settings = sys.stdin.readline()
    assert '"listen": "127.0.0.1:1"' in settings
    if words[0] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if words[0] == "refuse":
        with (folder / "refused").open("a") as refused:
            refused.write(f"{number}\n")
        print(told_refusal("No such database."), flush=True)
        sys.exit(1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if words[0] == "deaf" else lambda *_: sys.exit(code))
    (folder / f"pid{number}").write_text(str(os.getpid()))
    if words[0] != "wait":
        print(told_listening(f"Listening {number}"), flush=True)
    for line in sys.stdin:
        if line.encode().strip() == NOW:
            sys.exit(0)


if __name__ == "__main__":
    main()
