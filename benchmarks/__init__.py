"""Speed, always beside a floor that was measured in the same run. `make bench` runs them all."""
