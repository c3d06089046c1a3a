"""Pins what the two distributions ask for, with hashes; or with --check tells where a pin no longer fits.

    server.txt  what the server runs on: the Dockerfile installs it
    dev.txt     the same, the extras of the SDK, and what tests and checks need: `make setup` installs it
    build.txt   what makes the wheels, for the Dockerfile
    stubs.txt   the generator of the stubs, in an environment of its own

Needs pip-tools (`make lock` brings it). Other arguments go to pip-compile: --upgrade, or --upgrade-package NAME.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
# No option of one machine, such as an index address, gets into a lock.
COMPILE = (
    *(
        "-m",
        "piptools",
        "compile",
        "--quiet",
        "--generate-hashes",
        "--strip-extras",
        "--allow-unsafe",
        "--no-annotate",
        "--no-header",
    ),
    *("--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host"),
)
HEADER = "# Made by `make lock` from pyproject.toml and clients/python/pyproject.toml.\n"


def wanted() -> dict[str, list[Requirement]]:
    """Reads what each lock must hold from the two project files."""
    server, sdk = (_project(folder) for folder in (ROOT, ROOT / "clients" / "python"))
    runtime = [*_parsed(server["project"]["dependencies"]), *_parsed(sdk["project"]["dependencies"])]
    # The SDK itself is installed from this tree.
    runtime = [requirement for requirement in runtime if requirement.name != "ramet"]
    groups = server["dependency-groups"]
    build, stubs = _parsed(groups["build"]), _parsed(groups["stubs"])
    dev = [line for line in groups["dev"] if isinstance(line, str)]  # the rest includes the group build
    extras = [line for lines in sdk["project"]["optional-dependencies"].values() for line in lines]
    dev = [*extras, *dev]
    return {"server": runtime, "build": build, "dev": [*runtime, *build, *_parsed(dev)], "stubs": stubs}


def pins(lock: str) -> dict[str, str]:
    """Reads the version that a lock gives each package, by the package's canonical name."""
    lines = (HERE / f"{lock}.txt").read_text().splitlines()
    pairs = (line.split()[0].split("==") for line in lines if "==" in line)
    return {canonicalize_name(name): version for name, version in pairs}


def misfits() -> list[str]:
    """Tells every requirement that its lock does not meet, and every shipped pin that development does not share."""
    found = []
    for lock, requirements in wanted().items():
        pinned = pins(lock)
        for requirement in requirements:
            version = pinned.get(canonicalize_name(requirement.name))
            if version is None or not requirement.specifier.contains(version):
                found.append(f"{lock}.txt has {version} of {requirement}")
    for name, version in (pins("server") | pins("build")).items():
        if pins("dev").get(name) != version:
            found.append(f"dev.txt has {pins('dev').get(name)} of {name}, not {version}")
    return found


def write(options: list[str]) -> None:
    """Writes the locks. What is pinned stays, unless an option says otherwise."""
    for lock, requirements in wanted().items():
        target = HERE / f"{lock}.txt"
        lines = [str(requirement) for requirement in requirements]
        if lock == "dev":
            lines += [f"-c {HERE / 'server.txt'}", f"-c {HERE / 'build.txt'}"]
        with tempfile.NamedTemporaryFile("w", suffix=".in") as source:
            source.write("\n".join(lines))
            source.flush()
            command = [sys.executable, *COMPILE, "-o", str(target), *options, source.name]
            subprocess.run(command, check=True)  # noqa: S603 - the options are those of whoever runs this
        pinned = target.read_text().removeprefix(HEADER)
        target.write_text(HEADER + pinned.lstrip("\n"))


def _project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())


def _parsed(lines: list[str]) -> list[Requirement]:
    return [Requirement(line) for line in lines]


def main() -> int:
    """Writes the locks, or with --check returns 1 where one does not fit."""
    if sys.argv[1:] != ["--check"]:
        write(sys.argv[1:])
    found = misfits()
    for misfit in found:
        print(f"misfit: {misfit}")
    print("The locks are stale: run `make lock`." if found else "The locks fit the project files.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
