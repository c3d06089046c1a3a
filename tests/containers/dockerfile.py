"""The Dockerfile as instructions, as far as ours goes: no heredocs, no escapes but of line ends."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Instruction:
    """Such as COPY, and what follows it."""

    name: str
    text: str

    def exec_form(self) -> list[str]:
        """Reads the JSON list that the text is or, after flags, ends with."""
        words: list[str] = json.loads(self.text[self.text.index("[") :])
        return words


def stages() -> list[list[Instruction]]:
    """Returns the instructions of each stage, FROM first."""
    text = (ROOT / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    found: list[list[Instruction]] = []
    for line in joined.splitlines():
        name, _, rest = line.partition(" ")
        if name == "FROM":
            found.append([])
        found[-1].append(Instruction(name, rest.strip()))
    return found


def only(stage: list[Instruction], name: str) -> Instruction:
    """Returns the one instruction of this name."""
    (instruction,) = [each for each in stage if each.name == name]
    return instruction


def environment(stage: list[Instruction]) -> dict[str, str]:
    """Returns what ENV sets in a stage."""
    pairs = (word.partition("=") for each in stage if each.name == "ENV" for word in shlex.split(each.text))
    return {name: value for name, _, value in pairs}


def admitted() -> list[str]:
    """Returns the paths that .dockerignore lets into the build, which it begins by refusing everything."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    return [line[1:] for line in lines if line.startswith("!")]
