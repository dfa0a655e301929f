"""The state folder of sessions: its store, and what it keeps, checks, moves and saves."""
