"""Timing for noisy machines: figure and baseline are measured alternately, and the median of many samples is used."""

import os
import time
from collections.abc import Callable, Sequence
from statistics import median, quantiles

from msgspec import Struct

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""For processes whose start is measured: an installed package has its bytecode."""


class Claim(Struct, frozen=True, kw_only=True):
    """One line of the table: a figure, its baseline, and its limit."""

    name: str
    value: float
    unit: str
    limit: float | None
    """In the unit. None: nothing is claimed, the figure explains another one."""
    floor_name: str = ""
    floor: float | None = None
    factor: float | None = None
    """The limit as a multiple of the baseline; None: it is a fixed figure."""
    spread: tuple[float, float] | None = None
    """The first and the last tenth of the samples."""
    at_least: bool = False
    """The figure must reach the limit, rather than stay below it."""
    group: str = ""

    @property
    def holds(self) -> bool:
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def ratio(self) -> float | None:
        return self.value / self.floor if self.floor else None

    def __str__(self) -> str:
        beside = f"{self.ratio:6.2f} x {self.floor_name} ({self.floor:.4g} {self.unit})" if self.ratio else ""
        sign = ">=" if self.at_least else "<="
        claimed = "" if self.limit is None else f"{sign} {self.limit:8.4g}  {'ok' if self.holds else 'MISSED'}"
        return f"{self.name:<56} {self.value:10.4g} {self.unit:<3} {claimed:<21} {beside}"


def in_floors(
    name: str, samples: Sequence[float], floors: Sequence[float], factor: float, *, floor_name: str, unit: str = "ms"
) -> Claim:
    """A claim that the median is at most `factor` times the median of its baseline."""
    floor = median(floors)
    return Claim(
        name=name,
        value=median(samples),
        unit=unit,
        limit=factor * floor,
        floor_name=floor_name,
        floor=floor,
        factor=factor,
        spread=spread_of(samples),
    )


def spread_of(samples: Sequence[float]) -> tuple[float, float] | None:
    if len(samples) < 10:
        return None
    tenths = quantiles(samples, n=10)
    return tenths[0], tenths[-1]


def in_turns(*works: Callable[[], object], rounds: int) -> list[list[float]]:
    """Milliseconds of each, measured alternately, so that a busy moment of the machine affects all of them."""
    for work in works:
        work()
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, taken in zip(works, times, strict=True):
            started = time.perf_counter()
            work()
            taken.append((time.perf_counter() - started) * 1000)
    return times


def microseconds(work: Callable[[], object], *, samples: int = 200, inner: int = 10) -> float:
    """The median time of one call."""
    work()
    times: list[float] = []
    for _ in range(samples):
        started = time.perf_counter()
        for _ in range(inner):
            work()
        times.append((time.perf_counter() - started) / inner)
    return median(times) * 1e6
