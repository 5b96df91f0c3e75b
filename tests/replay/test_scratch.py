"""The copy of a project that hooks are replayed in."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from wave_agent.replay.scratch import ChosenFiles, CopyLimits, choose_files, copy_files, remove_tree
from wave_agent.replay.worker import relocated


def copy_project(
    project: Path, target: Path, needed: Sequence[str] = (), limits: CopyLimits | None = None
) -> ChosenFiles:
    chosen = choose_files(project, needed, limits)
    assert list(copy_files(project, target, chosen.names)) == []
    return chosen


def write(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(name)


def files(directory: Path) -> set[str]:
    return {
        str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file() and ".git/" not in str(path)
    }


def test_what_git_ignores_is_left_out_and_told_but_not_what_hooks_need(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(
        project, "src/a.py", "secret.env", "big/data", "tools/guard.sh", ".wave/settings.local.json", "node_modules/x/y"
    )
    (project / ".gitignore").write_text("*.env\nbig/\n/tools/\n.wave/\n")
    made = copy_project(project, tmp_path / "copy", [str(project / "tools/guard.sh"), "/etc/hosts"])
    assert files(tmp_path / "copy") == {"src/a.py", ".gitignore", "tools/guard.sh", ".wave/settings.local.json"}
    assert made.left_out == ("node_modules/ (can be regenerated)", "big/ (ignored)", "secret.env (ignored)")


def test_a_repository_is_copied_with_it_so_that_hooks_can_ask_git(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(project, "a.txt")
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(project)], check=True)
    copy_project(project, tmp_path / "copy")
    asked = subprocess.run(
        ["git", "symbolic-ref", "--short", "HEAD"], cwd=tmp_path / "copy", capture_output=True, text=True, check=True
    )
    assert asked.stdout == "trunk\n"
    subprocess.run(["git", "symbolic-ref", "HEAD", "refs/heads/other"], cwd=tmp_path / "copy", check=True)
    assert (project / ".git" / "HEAD").read_text() == "ref: refs/heads/trunk\n"


def test_a_git_file_that_points_elsewhere_is_left_out(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(project, "a.txt")
    (project / ".git").write_text("gitdir: /somewhere")
    made = copy_project(project, tmp_path / "copy")
    assert files(tmp_path / "copy") == {"a.txt"}
    assert made.left_out == (".git (it only points to another repository)",)


def test_the_copy_is_bounded_and_what_hooks_need_comes_first(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(project, *(f"{number}.txt" for number in range(20)), ".wave/guard.sh")
    made = copy_project(project, tmp_path / "copy", limits=CopyLimits(files=5))
    assert len(made.names) == 5
    assert ".wave/guard.sh" in files(tmp_path / "copy")
    assert "everything beyond the limit (too many files, or too large)" in made.left_out
    small = copy_project(project, tmp_path / "small", limits=CopyLimits(total=20))
    assert 1 <= len(small.names) < 20


def test_links_and_modes_stay_and_a_link_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(project, "run.sh")
    (project / "run.sh").chmod(0o755)
    (project / "link").symlink_to("/etc")
    copy_project(project, tmp_path / "copy")
    assert os.access(tmp_path / "copy" / "run.sh", os.X_OK)
    assert os.readlink(tmp_path / "copy" / "link") == "/etc"


def test_a_directory_is_exchanged_wherever_a_text_names_it_and_nowhere_else() -> None:
    given = {"a": "/p/x and /p", "b": ["/project", "/other/p", "cd /p; ls"], "c": 7, "/p": "/p-old"}
    assert relocated(given, "/p", "/new/place") == {
        "a": "/new/place/x and /new/place",
        "b": ["/project", "/other/p", "cd /new/place; ls"],
        "c": 7,
        "/p": "/p-old",
    }
    assert relocated(given, "", "/q") is given


def test_a_copy_that_stands_in_the_project_does_not_hold_itself(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(project, "z/a.txt", "a/b.txt", "tmp/wave-backtest-x/needed/c.txt")
    copy_project(project, project / "tmp" / "wave-backtest-x" / "project")
    assert files(project / "tmp" / "wave-backtest-x" / "project") == {"z/a.txt", "a/b.txt"}


def test_what_a_hook_made_unreadable_is_removed_all_the_same(tmp_path: Path) -> None:
    write(tmp_path, "run/a/b/c.txt")
    (tmp_path / "run/a/b").chmod(0)
    (tmp_path / "run/a").chmod(0o500)
    remove_tree(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_file_that_vanishes_or_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert list(copy_files(tmp_path, tmp_path / "copy", ["gone", "pipe"])) == [
        "gone (No such file or directory)",
        "pipe (not a file)",
    ]
