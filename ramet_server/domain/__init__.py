"""What every rule stands on: errors, calls, ids, text and idempotency, free of gRPC and SQL."""
