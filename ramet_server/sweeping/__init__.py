"""The sweep: finishes, across the services, what calls and crashes left to do."""

from ramet_server.sweeping.background import in_background
from ramet_server.sweeping.expiry import Aged
from ramet_server.sweeping.sweep import Counts, Foretold, Step, Sweep

__all__ = ["Aged", "Counts", "Foretold", "Step", "Sweep", "in_background"]
