"""Generated stubs of protos/ramet/session/v1."""
