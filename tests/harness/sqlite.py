"""SQLite files for tests."""

from pathlib import Path


def new_database(directory: Path, name: str = "ramet.db") -> str:
    """Returns the URL of a database file that does not exist yet."""
    return f"sqlite:///{directory / name}"
