"""Permission rules, `Tool(pattern)`."""
