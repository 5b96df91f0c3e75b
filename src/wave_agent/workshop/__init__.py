"""What `wave hooks` does, without the command line."""
