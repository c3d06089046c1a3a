"""Deleting a whole space, across the services."""

from ramet_server.clearing.clearing import Cleared, Clearing

__all__ = ["Cleared", "Clearing"]
