"""The sweep: finishes, across both services, what calls and crashes left to do."""

from ramet_server.sweeping.background import in_background
from ramet_server.sweeping.sweep import Counts, Step, Sweep

__all__ = ["Counts", "Step", "Sweep", "in_background"]
