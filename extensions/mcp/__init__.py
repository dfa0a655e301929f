"""MCP: servers whose tools sessions use, and sessions for other programs; the extra `mcp`, docs/mcp.md."""
