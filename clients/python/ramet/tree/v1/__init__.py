"""Generated stubs of protos/ramet/tree/v1."""
