"""Benchmarks, each next to a baseline measured in the same run. `make bench` runs them all."""
