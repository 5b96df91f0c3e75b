"""`--trust-ref` covers a project's servers: what the ref has starts, and what a branch has changed does not."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.configuration import Place
from tests.rows import rows
from wave_agent.mcp.servers import WaitingServer

ENTRY = {"command": "python3", "args": ["server.py"]}


def git(directory: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main")
    allowed = ("-c", "protocol.file.allow=always")
    subprocess.run(["git", *identity, *allowed, *arguments], cwd=directory, check=True, capture_output=True)


def commit(place: Place) -> None:
    git(place.project, "add", "-A")
    git(place.project, "commit", "-q", "-m", "a change")


def begun(place: Place) -> Place:
    """A branch that has not changed anything yet."""
    place.servers({"notes": ENTRY})
    place.write("server.py", "import helper\n")
    place.write("helper.py", "x = 1\n")
    place.write("linked.py", "x = 1\n")
    (place.project / "link.py").symlink_to("linked.py")
    place.write("README.md", "Notes.\n")
    place.write(".gitignore", "node_modules/\n")
    place.write(".wave/settings.json", {"deniedMcpServers": [{"serverName": "other"}]})
    git(place.project, "init", "-q")
    commit(place)
    git(place.project, "branch", "base")
    return place


@pytest.fixture
def branch(place: Place) -> Place:
    return begun(place)


def why(place: Place, ref: str = "base") -> str:
    """Why the server does not start; empty if it does."""
    found = place.configured(trust_ref=ref).get("notes")
    return found.why if isinstance(found, WaitingServer) else ""


def test_a_server_that_is_the_same_at_the_ref_starts_and_nothing_is_stored(branch: Place) -> None:
    assert branch.running(trust_ref="base") == ["notes"]
    branch.write("README.md", "More notes.\n")
    branch.write("node_modules/new/index.js", "// installed by CI")
    commit(branch)
    assert branch.running(trust_ref="base") == ["notes"]
    assert branch.store.consents(str(branch.project)) == {}
    assert branch.running() == []


def _changed(file: str, content: Any) -> Callable[[Place], Any]:
    return lambda place: place.write(file, content)


def _relinked(place: Place) -> None:
    (place.project / "link.py").unlink()
    (place.project / "link.py").symlink_to("server.py")


CHANGES: list[tuple[Callable[[Place], Any], str]] = [
    (_changed("server.py", "evil\n"), "differs from base: server.py"),
    (_changed("helper.py", "evil\n"), "differs from base: helper.py"),
    (_changed("linked.py", "evil\n"), "linked.py"),
    (_changed("json.py", "evil\n"), "differs from base: json.py"),
    (_relinked, "differs from base: link.py"),
    (lambda place: (place.project / "helper.py").unlink(), "differs from base: helper.py"),
    (lambda place: (place.project / "server.py").chmod(0o755), "differs from base: server.py"),
    (_changed(".mcp.json", {"mcpServers": {"notes": {**ENTRY, "env": {"A": "b"}}}}), "its entry"),
    (_changed(".wave/settings.json", {}), "deniedMcpServers in "),
]


@rows(("change", "said"), CHANGES)
def test_what_a_branch_changes_keeps_the_server_from_starting(
    tmp_path_factory: pytest.TempPathFactory, change: Callable[[Place], Any], said: str
) -> None:
    place = begun(Place(tmp_path_factory.mktemp("place")))
    change(place)
    commit(place)
    assert said in why(place)


def test_a_server_that_the_ref_does_not_have_does_not_start(branch: Place) -> None:
    branch.servers({"notes": ENTRY, "new": {"type": "http", "url": "https://example.com/mcp"}})
    commit(branch)
    assert branch.running(trust_ref="base") == ["notes"]
    assert branch.running(trust_ref="HEAD") == ["notes", "new"]


def test_what_is_in_a_submodule_is_not_covered(branch: Place, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "server.py").write_text("x = 1\n")
    git(other, "init", "-q")
    git(other, "add", "-A")
    git(other, "commit", "-q", "-m", "first")
    git(branch.project, "submodule", "add", "-q", str(other), "inner")
    branch.servers({"notes": {"command": "python3", "args": ["inner/server.py"]}})
    commit(branch)
    assert "inner/server.py" in why(branch, "HEAD")


def test_a_server_of_the_user_that_runs_the_projects_code_is_compared_too(branch: Place) -> None:
    os.remove(branch.project / ".mcp.json")
    commit(branch)
    git(branch.project, "branch", "-f", "base")
    branch.user({"mcpServers": {"notes": ENTRY}})
    assert branch.running(trust_ref="base") == ["notes"]
    branch.write("helper.py", "evil\n")  # not committed yet
    assert why(branch) == "differs from base: helper.py"


def test_without_git_nothing_starts(branch: Place) -> None:
    shutil.rmtree(branch.project / ".git")
    with pytest.raises(Exception, match="--trust-ref base: this is not a git repository"):
        branch.configured(trust_ref="base")
