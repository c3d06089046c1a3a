"""Listening, health, reflection, errors, logs and draining: what every service has in common."""
