"""Servers that are killed: at each step of an operation, and at random under load."""
