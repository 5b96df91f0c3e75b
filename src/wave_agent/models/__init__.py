"""Models: clients, conversion of messages, and repair of tool calls."""
