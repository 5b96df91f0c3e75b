"""Whether a call may run: the decision, protected paths, the sandbox."""
