"""File formats: strict JSON with locations, YAML as JSON, edits that preserve the rest of a file."""
