"""Timing that survives a noisy machine: many short samples, of which the median counts."""

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import NamedTuple


class Claim(NamedTuple):
    """One line of the table."""

    name: str
    microseconds: float
    floor_name: str
    floor: float
    limit: float
    """Microseconds."""

    @property
    def holds(self) -> bool:
        return self.microseconds <= self.limit

    def __str__(self) -> str:
        verdict = "ok" if self.holds else "OVER"
        return (
            f"{self.name:<44} {self.microseconds:10.1f} µs   limit {self.limit:8.0f}   "
            f"{self.microseconds / self.floor:6.1f} x {self.floor_name} ({self.floor:.1f} µs)   {verdict}"
        )


def microseconds(work: Callable[[], object], *, samples: int = 200, inner: int = 10) -> float:
    """The median time of one call."""
    work()
    times: list[float] = []
    for _ in range(samples):
        started = perf_counter()
        for _ in range(inner):
            work()
        times.append((perf_counter() - started) / inner)
    return median(times) * 1e6
