"""Whether what the service stores is as it must be, and how to mend what is not."""

from session_service.rules.verifying.verification import VerifyRules

__all__ = ["VerifyRules"]
