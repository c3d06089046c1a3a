"""The verification: whether all that the services store is as it must be, across them."""

from ramet_server.verifying.verification import Verification

__all__ = ["Verification"]
