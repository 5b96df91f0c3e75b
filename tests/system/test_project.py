"""Where a project begins, for every place in which an agent can be started."""

import os
import subprocess
from pathlib import Path

import pytest

from wave_agent.system.project import Project, find_project

NOBODY = "/home/nobody"


def repository(directory: Path, *more: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    git(directory, "init", "-q", "-b", "main", *more)
    return directory


def git(directory: Path, *arguments: str) -> None:
    quiet = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *quiet, *arguments], cwd=directory, check=True, capture_output=True)


def found(start: Path, *settings: Path, home: Path | str = NOBODY) -> Project:
    start.mkdir(parents=True, exist_ok=True)
    return find_project(str(start), lambda one: Path(one) in settings, str(home))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


def test_the_outermost_directory_with_settings_is_the_project(repo: Path) -> None:
    assert found(repo / "a" / "b", repo, repo / "a" / "b") == Project(str(repo), str(repo / "a" / "b"), str(repo))
    inner = found(repo / "a" / "b", repo / "a")
    assert inner == Project(str(repo / "a"), str(repo / "a" / "b"), str(repo))
    assert inner.inner == ("", "b")
    assert inner.levels == (str(repo / "a"), str(repo / "a" / "b"))
    assert inner.path == (str(repo), str(repo / "a"), str(repo / "a" / "b"))


def test_else_the_root_of_the_repository_else_where_it_is_started(repo: Path, tmp_path: Path) -> None:
    assert found(repo / "a").directory == str(repo)
    assert found(tmp_path / "plain" / "a") == Project.at(str(tmp_path / "plain" / "a"))


def test_settings_around_a_repository_are_not_its_own(repo: Path) -> None:
    assert found(repo / "a", repo.parent).directory == str(repo)


def test_an_empty_git_directory_hides_no_repository(repo: Path) -> None:
    (repo / "a" / ".git").mkdir(parents=True)
    assert found(repo / "a", repo).directory == str(repo)
    (repo / "a" / ".git").rmdir()
    (repo / "a" / ".git").write_text("nothing")
    assert found(repo / "a", repo).directory == str(repo)
    (repo / "a" / ".git").unlink()
    os.mkfifo(repo / "a" / ".git")
    assert found(repo / "a", repo).directory == str(repo)


def test_a_worktree_is_a_project_of_its_own_also_inside_the_repository(repo: Path) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "first")
    git(repo, "worktree", "add", "-q", "trees/one")
    assert found(repo / "trees" / "one" / "a", repo).directory == str(repo / "trees" / "one")


def test_the_guards_of_a_repository_hold_in_its_submodules(repo: Path, tmp_path: Path) -> None:
    library = repository(tmp_path / "library")
    git(library, "commit", "-q", "--allow-empty", "-m", "first")
    git(repo, "submodule", "add", "-q", str(library), "lib")
    start = repo / "lib" / "src"
    assert found(start, repo) == Project(str(repo), str(start), str(repo))
    assert found(start) == Project(str(repo / "lib"), str(start), str(repo / "lib"))
    git(repo, "commit", "-qm", "with a submodule")
    git(repo, "worktree", "add", "-q", str(tmp_path / "tree"))
    git(tmp_path / "tree", "submodule", "update", "-q", "--init")
    assert found(tmp_path / "tree" / "lib", tmp_path / "tree").directory == str(tmp_path / "tree")


def test_a_clone_inside_a_repository_is_none_of_its_submodules(repo: Path) -> None:
    repository(repo / "vendor" / "other")
    assert found(repo / "vendor" / "other", repo).directory == str(repo / "vendor" / "other")
    repository(repo / "apart", "--separate-git-dir", str(repo / "elsewhere"))
    assert found(repo / "apart", repo).directory == str(repo / "apart")


def test_outside_git_directories_below_the_home_count_and_the_home_never(tmp_path: Path) -> None:
    start = tmp_path / "home" / "work" / "a"
    assert found(start, tmp_path / "home" / "work", home=tmp_path / "home").directory == str(start.parent)
    for one in (tmp_path / "home", tmp_path):
        assert found(start, one, home=tmp_path / "home").directory == str(start)
    assert found(tmp_path / "home", tmp_path, home=tmp_path / "home") == Project.at(str(tmp_path / "home"))


def test_a_repository_around_the_home_is_none_for_what_is_in_it(tmp_path: Path) -> None:
    home = repository(tmp_path / "home")
    assert found(home / "work" / "a", home, home=home).directory == str(home / "work" / "a")
    assert found(home, home=home).directory == str(home)


def test_outside_both_only_directories_of_the_same_owner_count(tmp_path: Path) -> None:
    start = tmp_path / "srv" / "app" / "a"
    assert found(start, tmp_path / "srv" / "app").directory == str(start.parent)
    assert found(start, Path("/")).directory == str(start)


def test_nothing_counts_from_a_place_that_everybody_can_write_to(tmp_path: Path) -> None:
    public = repository(tmp_path / "public")
    public.chmod(0o1777)
    assert found(public / "a", public, tmp_path).directory == str(public / "a")
    assert found(public, public).directory == str(public)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_a_directory_that_cannot_be_looked_at_is_no_repository(repo: Path) -> None:
    start = repo / "a"
    start.mkdir()
    repo.chmod(0)
    try:
        assert find_project(str(start), lambda _: False, NOBODY).directory == str(start)
    finally:
        repo.chmod(0o755)


def test_the_root_of_the_file_system_is_a_place_like_any_other() -> None:
    assert find_project("/", lambda _: True, NOBODY) == Project.at("/")
    assert Project.at("/").levels == ("/",)
    assert Project("/", "/srv/a", "/").levels == ("/", "/srv", "/srv/a")


def test_a_home_inside_a_repository_hides_nothing_of_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "shop")
    (root / "a" / "b").mkdir(parents=True)
    for home in (root / "a", root / "a" / "b"):
        assert found(root / "a" / "b", root, home=home).directory == str(root)
