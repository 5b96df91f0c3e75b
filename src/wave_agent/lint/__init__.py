"""What is wrong with hooks: their settings, and the scripts that these name."""
