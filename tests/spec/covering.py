"""Which parts of the two specifications a test shows.

The ids are `011 FR-002` (a requirement), `011 US2.1` (a scenario of a user story), `011 SC-003` (a success criterion)
and `011 edge: no output` (an edge case). `docs/spec-map.md` has them all, and `test_spec_map.py` compares the two.
"""

from typing import Any

import pytest

covers = pytest.mark.covers


def row(name: str, *values: Any, covers: tuple[str, ...]) -> Any:
    """A row of a table of cases, with the parts that it covers."""
    return pytest.param(*values, id=name, marks=pytest.mark.covers(*covers))
