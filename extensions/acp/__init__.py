"""ACP: editors that drive sessions, and agents that sessions drive; the extra `acp`, docs/acp.md."""
