"""Hooks of ours in other agents, which tell of their sessions; needs no extra, docs/hooks.md."""
