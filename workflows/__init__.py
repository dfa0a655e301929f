"""Declarations of people: from TOML to validated specs."""
