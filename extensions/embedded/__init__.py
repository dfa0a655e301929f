"""Embedded models: their weights, and the process that runs them; the extra `local`, docs/models.md."""
