"""Whether the totals of diagnoses are those of their rows, and every row has its diagnosis."""

from telemetry.rules.verifying.verification import VerifyRules

__all__ = ["VerifyRules"]
