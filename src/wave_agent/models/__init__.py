"""What the agent thinks with."""
