"""Whether a call may run: the decision, protected paths and the sandbox."""
