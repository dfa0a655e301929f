"""Workflows as files: from TOML to a frozen and checked spec."""
