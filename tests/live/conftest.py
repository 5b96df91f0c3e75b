"""Whole sessions: the real `wave` command against a real HTTP server that plays a scripted model.

Each test is named by what would go wrong for somebody who lets a model work with this agent for a day.
"""

import json
from pathlib import Path

import pytest

from tests.cli.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def theirs(project: Project) -> Project:
    """A project whose settings for another agent count."""
    project.home.mkdir()
    (project.home / "settings.json").write_text(json.dumps({"compat": {"claude": True}}))
    (project.directory / ".claude" / "hooks").mkdir(parents=True)
    return project
