"""HTTP on asyncio, for the model client and for `http` hooks."""
