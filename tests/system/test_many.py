"""The same work on many items."""

import os

import pytest

from wave_agent.system.cores import cores
from wave_agent.system.many import each


def doubled(number: int) -> tuple[int, int]:
    if number < 0:
        raise ValueError("negative")
    return number * 2, os.getpid()


def test_results_come_in_order_from_several_processes() -> None:
    found = list(each(doubled, range(1000), jobs=2))
    assert [number for number, _ in found] == list(range(0, 2000, 2))
    assert os.getpid() not in {process for _, process in found}


def test_few_items_are_worked_on_here() -> None:
    assert list(each(doubled, [1, 2])) == [(2, os.getpid()), (4, os.getpid())]
    assert cores() >= 1


def test_an_error_is_raised_and_ends_the_rest() -> None:
    with pytest.raises(ValueError, match="negative"):
        list(each(doubled, [*range(600), -1], jobs=2))
