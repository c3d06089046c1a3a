"""What is wrong with an archive, and where."""


class ArchiveError(Exception):
    """An archive, or what a run of it met, cannot be taken; tells the line and why."""

    def __init__(self, line: int, reason: str, place: str = "line") -> None:
        super().__init__(f"{place} {line}: {reason}")
        self.line = line
        """Counted from 1."""
        self.reason = reason
