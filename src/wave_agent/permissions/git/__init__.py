"""What a git command would change among protected files."""
