"""What must hold of telemetry, free of gRPC and SQL."""
