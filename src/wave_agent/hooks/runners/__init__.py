"""Runners: one for each kind of hook."""
