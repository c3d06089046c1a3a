"""What must hold of the forest; knows neither gRPC nor SQL."""
