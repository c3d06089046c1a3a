"""Telemetry: what agents did, step by step, taken as events and answered for."""

from telemetry.building import build
from telemetry.servicer import TelemetryServicer

__all__ = ["TelemetryServicer", "build"]
