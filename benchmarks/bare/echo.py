"""The bare echo: what gRPC in Python costs before anything is done.

python -m benchmarks.bare.echo --listen 127.0.0.1:0
"""

import argparse
import asyncio

from benchmarks.bare.serving import serve


async def _echo(request: bytes, _: object) -> bytes:
    return request


def main() -> None:
    """Serves until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:0")
    asyncio.run(serve(parser.parse_args().listen, _echo))


if __name__ == "__main__":
    main()
