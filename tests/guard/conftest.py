from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guard.judging import Arena


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Arena]:
    arena = Arena(tmp_path)
    yield arena
    arena.end_resident()
