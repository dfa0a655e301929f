"""Checkpoints of a session's folder: its files before an agent changed them, and their restore."""
