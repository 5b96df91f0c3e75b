"""The agent: its parts, its turns and its tool calls."""
