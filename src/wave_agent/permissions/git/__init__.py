"""Which protected files a git command would change."""
