"""The contract Telemetry: what agents did, step by step."""
