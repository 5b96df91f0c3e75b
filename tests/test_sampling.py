"""`make test` leaves some tests to `make test-all`, and runs tables as one test."""

from pathlib import Path

import pytest

from tests.conftest import THOROUGH
from tests.rows import rows

HERE = Path(__file__).parent


@rows("line", THOROUGH)
def test_every_line_names_tests_that_exist(line: str) -> None:
    file, *names = line.removeprefix("!").removeprefix("tests/").split("[")[0].split("::")
    assert (HERE / file).exists()
    if names:
        assert f"def {names[-1]}" in (HERE / file).read_text()


def test_failing_rows_are_reported_together() -> None:
    seen: list[int] = []

    @rows("number", [1, pytest.param(2, id="two"), 3])
    def is_odd(number: int) -> None:
        seen.append(number)
        assert number % 2 == 1

    with pytest.raises(ExceptionGroup, match=r"1 of 3 rows failed: 2") as refused:
        is_odd()
    assert seen == [1, 2, 3]
    assert refused.value.exceptions[0].__notes__ == ["in the row 2"]


def test_rows_in_two_directions_are_combined() -> None:
    seen: list[tuple[str, int]] = []

    @rows("letter", "ab")
    @rows(("number", "same"), [(1, 1), (2, 2)])
    def note(letter: str, number: int, same: int) -> None:
        assert number == same
        seen.append((letter, number))

    note()
    assert seen == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def test_a_row_with_marks_is_refused() -> None:
    with pytest.raises(AssertionError, match="marks"):
        rows("number", [pytest.param(1, marks=pytest.mark.soak)])
