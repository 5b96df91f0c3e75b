"""Sessions on disk: recording, finding, verifying."""
