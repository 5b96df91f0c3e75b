"""A part of what `make soak` tries, with the same inputs every time: a tenth, and a fiftieth in `make test`."""

import pytest

from tests.fuzz.properties import PROPERTIES, Property

EXAMPLES = [20, pytest.param(2_000, marks=pytest.mark.thorough)]


# They compute all the time, so on a busy machine (a load of 20) some take longer than what else is taken for hanging.
# Measuring their coverage would double that, and shows nothing that the other tests do not.
@pytest.mark.no_cover
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda one: one.name)
@pytest.mark.parametrize("examples", EXAMPLES)
def test_every_input_is_read_or_refused_in_its_own_words(holds: Property, examples: int):
    holds.hold(examples, derandomize=True)
