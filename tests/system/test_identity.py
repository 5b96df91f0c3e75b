"""Who works where."""

import subprocess
from pathlib import Path

import pytest

from tests.rows import rows
from wave_agent.system.identity import identity, repository_of, without_credentials


@rows(
    ("url", "shown"),
    [
        ("https://github.com/acme/app.git", "github.com/acme/app"),
        ("https://ada:s3cret@GitHub.com/acme/app.git", "github.com/acme/app"),
        ("https://x-access-token:ghs_abc@github.com/acme/app?token=x#y", "github.com/acme/app"),
        ("https://ada:pass/word@github.com/acme/app", "github.com/acme/app"),
        ("git@github.com:acme/app.git", "github.com/acme/app"),
        ("ssh://git@example.com:2222/acme/app/", "example.com:2222/acme/app"),
        ("/srv/git/app.git", "/srv/git/app.git"),
        ("file:///srv/git/app.git", "/srv/git/app.git"),
        ("", ""),
    ],
)
def test_a_remote_is_shown_without_credentials(url: str, shown: str) -> None:
    assert without_credentials(url) == shown


def git(directory: Path, *words: str) -> None:
    subprocess.run(["git", "-C", directory, *words], check=True, capture_output=True)


def test_the_repository_is_its_remote_also_in_a_worktree(tmp_path: Path) -> None:
    main, inner = tmp_path / "main", tmp_path / "main" / "src"
    inner.mkdir(parents=True)
    assert repository_of(str(inner)) == ""
    git(tmp_path, "init", "-q", str(main))
    assert set(identity(str(main))) == {"user", "hostname"}
    git(main, "remote", "add", "fork", "git@example.com:ada/app.git")
    assert repository_of(str(inner)) == "example.com/ada/app"
    git(main, "remote", "add", "origin", "https://ada:s3cret@example.com/acme/app.git")
    git(main, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert repository_of(str(tmp_path / "tree")) == "example.com/acme/app"
    assert identity(str(inner))["repository"] == "example.com/acme/app"


@pytest.mark.parametrize("content", [b"[remote", b'\xff\xfe[remote "origin"]\nurl =', b"x" * 100_000])
def test_a_configuration_that_cannot_be_read_names_no_repository(content: bytes, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".git" / "config").write_bytes(content)
    assert repository_of(str(tmp_path)) == ""
