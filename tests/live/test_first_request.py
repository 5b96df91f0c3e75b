"""What the model sees before it does anything. Otherwise it asks for all of this first, or works as if nobody cared."""

import json
import subprocess
from pathlib import Path

from tests.cli.project import Project, serving

LIMIT = 9000
"""Bytes of the whole first request in a project without instructions of its own."""


TRIES = 10
"""git has a tenth of a second to count the changes; on a busy machine that may be too short."""


def git(directory: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    subprocess.run(command, cwd=directory, check=True, stdout=subprocess.DEVNULL)


def test_the_model_starts_knowing_branch_changes_top_level_shell_and_mode(project: Project):
    git(project.directory, "init", "-q", "-b", "fix/cart")
    (project.directory / "src").mkdir()
    (project.directory / "src" / "cart.py").touch()
    (project.directory / "build").mkdir()
    (project.directory / ".gitignore").write_text("build/\n")
    (project.directory / "README.md").touch()
    with serving(*["Hello."] * TRIES) as server:
        for _ in range(TRIES):
            assert project.wave("-p", "Fix the cart.", server=server).returncode == 0
            if " changed file" in server.requests[-1].body["messages"][0]["content"]:
                break
    system, prompt = server.requests[-1].body["messages"]
    facts = dict(line.partition(": ")[::2] for line in system["content"].splitlines())
    assert prompt["content"] == "Fix the cart."
    assert facts["Project directory"] == str(project.directory)
    assert facts["Git branch"] == "fix/cart, 3 changed files"
    assert facts["Top level"] == "src/, README.md, .gitignore"
    assert facts["System"] == "Linux, shell bash"
    assert facts["Permission mode"].startswith("default. ")
    assert "<hook" not in system["content"]  # a small model imitated the tag


def test_the_first_request_stays_small_where_the_top_level_is_large(project: Project):
    for number in range(100):
        (project.directory / f"{number:03}-{'long-name' * 4}.txt").touch()
    with serving("Hello.") as server:
        assert project.wave("-p", "Fix the cart.", server=server).returncode == 0
    body = server.requests[0].body
    assert ", and 8" in body["messages"][0]["content"]
    assert len(json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()) <= LIMIT


def test_a_git_that_hangs_does_not_hold_up_the_first_request(project: Project, tmp_path: Path):
    git(project.directory, "init", "-q", "-b", "main")
    hanging = tmp_path / "bin" / "git"
    hanging.parent.mkdir()
    hanging.write_text("#!/bin/sh\nexec sleep 600\n")
    hanging.chmod(0o755)
    with serving("Hello.") as server:
        path = f"{hanging.parent}:{project.environment(server)['PATH']}"
        assert project.wave("-p", "Fix the cart.", server=server, PATH=path).returncode == 0
    assert "\nGit branch: main\n" in server.requests[0].body["messages"][0]["content"]
