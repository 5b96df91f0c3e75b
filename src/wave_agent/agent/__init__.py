"""The agent: what it is made of, its turns and its tool calls."""
