"""The one history of the schema.

A revision must be repeatable: MySQL commits each DDL statement by itself, so that a revision that was
cut in its middle runs again from its start. ``repeatable`` has what that takes.
"""
