"""The logic of `wave hooks`, without the command line."""
