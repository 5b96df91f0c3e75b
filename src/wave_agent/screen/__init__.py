"""The interactive screen: `wave` without `-p`. Loaded only when opened; everything goes through `Agent`."""
