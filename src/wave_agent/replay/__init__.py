"""Analyses recorded sessions: what happened when, what hooks cost, and what other hooks would have decided."""
