"""Nodes leaving for an archive, and arriving from one."""
