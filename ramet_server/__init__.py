"""What every service of Ramet stands on."""

__version__ = "0.1.0"
