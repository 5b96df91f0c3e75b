"""Whole sessions: the real `wave` command against a real HTTP server that plays a scripted model.

They run on the API that `WAVE_TEST_API` names, against a server that refuses what the real one refuses; `test_apis.py`
runs some of them on all APIs.

Each test is named by what would go wrong for somebody who lets a model work with this agent for a day.
"""

import json
import os
from pathlib import Path

import pytest

from tests.cli.project import SWITCH, Project


@pytest.fixture(autouse=True)
def on_this_api(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("chat_format") and os.environ.get(SWITCH, "openai-chat") != "openai-chat":
        pytest.skip("about the chat format")


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
