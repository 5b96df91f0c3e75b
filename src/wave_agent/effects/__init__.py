"""What a tool call would read, write, delete, run and reach, determined without running it."""
