"""The SQL of the tables that telemetry owns."""
