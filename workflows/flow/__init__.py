"""Workflows, as people declare them: a TOML file in, a frozen and checked spec out."""
