"""Messages to domain values and back."""
