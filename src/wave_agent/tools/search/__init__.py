"""Glob and Grep."""
