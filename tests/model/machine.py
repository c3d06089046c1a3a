"""The machines: the rules of each contract alone, and all together, and how much of it is run."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

from tests.model.forest_read_rules import ForestReadRules
from tests.model.read_rules import ReadRules
from tests.model.repeat_rules import RepeatRules
from tests.model.session_rules import SessionRules
from tests.model.transaction_rules import TransactionRules
from tests.model.watch_rules import TreeWatchRules, WatchRules

_EXAMPLES = int(os.environ.get("RAMET_MODEL_EXAMPLES", "20"))
_SEARCH = os.environ.get("RAMET_MODEL_SEARCH") == "1"

SETTINGS = settings(
    max_examples=_EXAMPLES,
    stateful_step_count=40,
    # The same runs every time, so that a failure is found again; RAMET_MODEL_SEARCH=1 looks for new ones.
    derandomize=not _SEARCH,
    database=None,
    deadline=None,
    print_blob=True,
    # A shrunk sequence is what a person reads; explaining it further takes long against a server.
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
"""About a minute on each backend. RAMET_MODEL_EXAMPLES sets how many runs of up to 40 steps each machine makes."""


class Conversations(SessionRules, TransactionRules, ReadRules, WatchRules, RepeatRules):
    """SessionStorage over one space."""


class Trees(ForestReadRules, TreeWatchRules, RepeatRules):
    """SessionTree over one space, used alone."""


class Both(SessionRules, TransactionRules, ReadRules, WatchRules, ForestReadRules, TreeWatchRules, RepeatRules):
    """Both contracts over one space."""

    def check_everything(self) -> None:
        """Compares all sessions and the whole forest with the model."""
        ReadRules.check_everything(self)
        ForestReadRules.check_everything(self)
