"""What a line of Bash runs and writes, determined without running it."""
