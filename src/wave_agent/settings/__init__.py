"""Settings: layers, sources and trust."""
