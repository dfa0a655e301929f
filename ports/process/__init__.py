"""Processes that are proven dead: a helper, and one supervisor for each command."""
