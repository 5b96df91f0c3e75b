"""MCP servers as tools: which ones are configured and trusted, and the process that speaks the protocol."""
