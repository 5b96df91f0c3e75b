"""The operating system: processes, threads, files and who started whom."""
