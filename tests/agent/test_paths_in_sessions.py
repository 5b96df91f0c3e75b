"""Where commands that only read really look: through links, `..`, `~` and other ways out of the project."""

from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_effects_in_sessions import bash, results
from wave_agent.testing import call


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OLDPWD", str(tmp_path / "far"))
    project = (tmp_path / "project").resolve()
    for path in (tmp_path / "home", tmp_path / "far/deep", project / "sub/inner", project / "secret/x"):
        path.mkdir(parents=True)
    for path in (tmp_path / "far/key", project / "secret/key", project / "a.txt", project / "sub/b.txt"):
        path.write_text("canary-7f3a\n")
    (project / "z1").symlink_to(tmp_path / "far")
    (project / "up").symlink_to(tmp_path / "far/deep")
    (project / "sub/d").symlink_to("../secret/x")
    return project


@pytest.mark.parametrize("mode", ["default", "plan"])
async def test_these_leave_the_project(project: Path, mode: str) -> None:
    lines = [
        *(
            "cat up/../key",
            "cd up && cat ../key",
            "cat z[[:digit:]]/key",
            "cat ./u*/../key",
            "ls z*",
            "ls ./?1",
            "ls u*/..",
        ),
        *("ls ~", "find ~", "du -a ~", "stat ~", "ls ~root", "ls ~-", "ls ~+/..", "ls ~/x ~"),
        *("ls -RL .", "ls -LR", "find -L .", "find . -follow", "du -L", "du -aL .", "tree -l"),
        *("cd -", "cd", "cd ~", "cd ~-", "cd z1", "cd /", "cd .."),
        *("jq -n env", "jq -n '$ENV'", "jq -n '$ENV.X'", "awk 'BEGIN{print ENVIRON[\"X\"]}'"),
    ]
    found = await results(project, *map(bash, lines), permission_mode=mode)
    assert [line for line, one in zip(lines, found, strict=True) if not one.startswith("Not run")] == []


async def test_tools_for_files_take_two_dots_as_text(project: Path) -> None:
    settings: Any = {"permissions": {"deny": ["Read(secret/**)"]}}
    path = {"file_path": str(project / "sub/d/../key")}
    read, grep, glob = await results(
        project,
        call("Read", **path),
        call("Grep", pattern="canary", path="sub/d/..", output_mode="content"),
        call("Glob", pattern="*", path="sub/d/.."),
        settings=settings,
        permission_mode="bypassPermissions",
    )
    assert "canary" not in read
    assert "key" not in grep
    assert "key" not in glob
    await results(project, call("Write", file_path="up/../new", content="x"), permission_mode="bypassPermissions")
    assert (project / "new").exists()


async def test_these_stay_inside(project: Path) -> None:
    lines = [
        "cat sub/../a.txt",
        "cd sub && cat ../a.txt",
        "cat sub/d/../key",
        "ls ~+",
        "ls sub",
        "ls -R .",
        "cat a[.]txt",
    ]
    lines += ["grep '~x' a.txt", "jq .env a.txt", "cd sub", f"cd {project}", "du -a sub", "find . -name '*.txt'"]
    found = await results(project, *map(bash, lines))
    assert [line for line, one in zip(lines, found, strict=True) if one.startswith("Not run")] == []


async def test_going_back_to_the_project_is_not_asked_about(project: Path) -> None:
    settings: Any = {"permissions": {"allow": ["Bash(cd ..)"]}}
    lines = ["cd ..", "ls", f"cd {project}", "ls"]
    found = await results(project, *map(bash, lines), settings=settings)
    assert [one.startswith("Not run") for one in found] == [False, True, False, False]


async def test_a_link_before_two_dots_does_not_lead_around_a_rule(project: Path) -> None:
    lines = ["cat sub/d/../key", "cd sub/d && cat ../key", "cat < sub/d/../key", "cd -P sub/d/.. && cat key"]
    lines += ["cat sub/?/../key", "env -C sub/d/.. cat key", "tar -C sub/d/.. -cO key", "cat sub/[[:alpha:]]/../key"]
    settings: Any = {"permissions": {"deny": ["Read(secret/**)"]}}
    found = await results(project, *map(bash, lines), settings=settings, permission_mode="bypassPermissions")
    assert [line for line, one in zip(lines, found, strict=True) if not one.startswith("Not run")] == []
    assert not any("canary" in one for one in found)
