"""Makes the Python stubs of every contract, or with --check tells which of the committed ones are stale.

Runs in the environment of requirements/stubs.txt (`make stubs`): its generator is no newer than
any gRPC and protobuf that the SDK supports.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

PROTOS = Path(__file__).resolve().parent
SDK = PROTOS.parent / "clients" / "python"
GENERATED = ("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*_pb2_grpc.pyi")


def generate(into: Path) -> None:
    """Writes the stubs of all contracts below a folder, with the comments of the contracts in their type stubs."""
    sources = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    programs = Path(sys.executable).parent
    plugins = [f"--plugin=protoc-gen-{name}={programs}/protoc-gen-{name}" for name in ("mypy", "mypy_grpc")]
    outputs = [f"--{kind}_out={into}" for kind in ("python", "grpc_python")]
    outputs += [f"--{kind}_out=quiet:{into}" for kind in ("mypy", "mypy_grpc")]
    # Our own include path is relative, so that no stub tells where it was made.
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", *plugins, *outputs, *sources]
    subprocess.run(command, cwd=PROTOS, check=True)  # noqa: S603 - every part of the command is made above


def stubs(root: Path) -> dict[str, bytes]:
    """Reads the generated files below a folder by their path in it."""
    return {
        str(path.relative_to(root)): path.read_bytes() for pattern in GENERATED for path in sorted(root.rglob(pattern))
    }


def main() -> int:
    """Writes the stubs into the SDK, or with --check compares them and returns 1 where they differ."""
    parser = argparse.ArgumentParser(description="Make the Python stubs of the contracts.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a committed stub is stale")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        fresh = stubs(Path(scratch))
    committed = stubs(SDK)
    stale = sorted(name for name in fresh | committed if fresh.get(name) != committed.get(name))
    if check:
        for name in stale:
            print(f"stale: clients/python/{name}")
        print("Stubs are stale: run `make stubs`." if stale else f"{len(fresh)} stub files are fresh.")
        return 1 if stale else 0
    for name in stale:
        target = SDK / name
        if name in fresh:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(fresh[name])
        else:
            target.unlink()
    print(f"{len(stale)} of {len(fresh)} stub files changed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
