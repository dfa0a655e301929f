"""MCP: servers with tools for sessions, and sessions as tools of others; the extra `mcp`, docs/mcp.md."""
