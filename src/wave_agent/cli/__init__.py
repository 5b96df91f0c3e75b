"""The command line: one module for each command. Parses arguments, shows results, holds no logic."""
