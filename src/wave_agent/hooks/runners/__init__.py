"""The doors through which a hook is run, one for each kind."""
