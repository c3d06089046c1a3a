"""Generated stubs of protos/ramet/telemetry/v1."""
