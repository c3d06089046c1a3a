"""Telemetry: what agents did, step by step, taken as events and answered for."""

from telemetry.building import build, build_arriving, build_leaving, build_sweep, build_verify
from telemetry.servicer import TelemetryServicer

__all__ = ["TelemetryServicer", "build", "build_arriving", "build_leaving", "build_sweep", "build_verify"]
