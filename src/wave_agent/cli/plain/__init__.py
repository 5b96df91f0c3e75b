"""`wave --plain`: a session in lines of text, for screen readers and for terminals that can show nothing else."""
