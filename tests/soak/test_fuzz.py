"""The properties of `tests/fuzz`, for as long as it takes to find what is rare."""

import pytest

from tests.fuzz.properties import PROPERTIES, Property

EXAMPLES = 20_000


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda one: one.name)
def test_every_input_is_read_or_refused_in_its_own_words(holds: Property, capsys: pytest.CaptureFixture[str]):
    done = holds.hold(EXAMPLES, derandomize=False)
    with capsys.disabled():
        print(f"\n  {done}")
