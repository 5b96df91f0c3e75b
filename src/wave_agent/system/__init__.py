"""The operating system: processes, threads, files, and which process started which."""
