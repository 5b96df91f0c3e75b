"""Percentiles of any number of durations, in a bounded amount of memory."""

from collections.abc import Mapping
from math import ceil, log

_STEP = log(1.01)
"""Buckets grow by 1 %: so exact is a percentile."""
_LEAST_MS = 0.001


def bucket_of(duration_ms: float) -> int:
    """The number of the bucket that a duration falls into."""
    return ceil(log(max(duration_ms, _LEAST_MS)) / _STEP)


def percentile_of(buckets: Mapping[int, int], part: float) -> float:
    """The nearest-rank percentile in milliseconds, at most 1 % too high. `buckets`: number → how many durations."""
    rank = max(1, ceil(part * sum(buckets.values())))
    for number in sorted(buckets):
        rank -= buckets[number]
        if rank <= 0:
            return round(_value_of(number), 3)
    return 0.0


def _value_of(number: int) -> float:
    return 1.01**number
