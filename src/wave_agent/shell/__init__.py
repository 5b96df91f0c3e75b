"""What a line of Bash runs and writes, as far as it can be seen without running it."""
