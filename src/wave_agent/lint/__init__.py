"""Find mistakes in hooks: in their settings and in the scripts they run."""
