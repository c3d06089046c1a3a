"""What must hold for sessions, records and slots; free of gRPC and SQL."""
