"""The screen: `wave` without `-p`. Loaded only when it opens; everything it does goes through `Agent`."""
