"""Sessions on disk: recorded, found again, verified."""
