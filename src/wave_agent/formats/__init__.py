"""Formats that people and programs write: strict JSON with places, YAML as JSON, edits that keep a file as it was."""
