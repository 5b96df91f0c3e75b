"""Settings: their layers, whom they come from, and which of them are trusted."""
