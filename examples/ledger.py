"""What the demo expected and what it got, told line by line and summed up at the end."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Ledger:
    """Counts checks, and remembers every one that is wrong."""

    right: int = 0
    wrong: list[str] = field(default_factory=list)

    def same(self, what: str, got: Any, expected: Any) -> None:
        """Checks one number, text or value."""
        if got == expected:
            self.right += 1
            return
        self.wrong.append(f"{what}: expected {_short(expected)}, got {_short(got)}")
        print(f"  WRONG  {self.wrong[-1]}")

    def verdict(self) -> int:
        """Prints the sum and returns the exit code."""
        if not self.wrong:
            print(f"\nAll {self.right} checks are right.")
            return 0
        bar = "!" * 78
        print(f"\n{bar}\nTHE DEMO WENT WRONG: {len(self.wrong)} of {self.right + len(self.wrong)} checks\n")
        for line in self.wrong:
            print(f"  - {line}")
        print(bar)
        return 1


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}... ({len(text)} characters)"
