from pathlib import Path

import pytest

from tests.guard.judging import Arena


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    return Arena(tmp_path)
