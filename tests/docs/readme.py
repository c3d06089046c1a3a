"""The README's commands, as a newcomer would copy them."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Its lines, for a block of the shell."""
        return [line for line in self.text.splitlines() if line]


def blocks(language: str) -> list[Block]:
    """Returns the README's blocks in a language, in order."""
    text = (ROOT / "README.md").read_text()
    return [Block(*match) for match in _BLOCK.findall(text) if match[0] == language]


def commands() -> list[str]:
    """Returns every command of the README, in order."""
    return [command for block in blocks("sh") for command in block.commands]
