"""Whether the forest is whole, and how to mend it where it is not."""

from tree_service.rules.verifying.verification import VerifyRules

__all__ = ["VerifyRules"]
