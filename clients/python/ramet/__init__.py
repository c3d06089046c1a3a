"""The Python client of Ramet."""

__version__ = "0.1.0"
