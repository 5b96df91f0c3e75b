"""Whole sessions: the real `wave` command against a real HTTP server that plays a scripted model.

Each test is named by what would go wrong for somebody who lets a model work with this agent for a day.
"""

from pathlib import Path

import pytest

from tests.cli.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)
