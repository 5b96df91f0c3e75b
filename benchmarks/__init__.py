"""Benchmarks, each with a baseline (its floor) measured in the same run. `make bench` runs them all."""
