"""The project as workers on other machines get it."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from wave_agent.replay.packed import PackError, pack_project
from wave_agent.replay.scratch import CopyLimits


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("home/project/src/a.py", "home/project/.git/refs/heads/.keep", "home/.wave/guard.sh", "opt/tool.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "home/.wave/guard.sh").chmod(0o755)
    (tmp_path / "home/.wave/keys.json").write_text("secret")
    (tmp_path / "home/project/link").symlink_to("/etc/hosts")
    return tmp_path


def packed(place: Path, *needed: str, limits: CopyLimits | None = None):
    files = [str(place / name) for name in needed]
    return pack_project(str(place / "home/project"), str(place / "home"), files, limits or CopyLimits())


def test_the_project_and_what_hooks_name_arrive_and_nothing_else_of_the_home_directory(place: Path) -> None:
    found = packed(place, "home/.wave/guard.sh", "home/project/src/a.py")
    (place / "there").mkdir()
    project, home = found.unpack(place / "there")
    assert (Path(project) / "src/a.py").read_text() == "home/project/src/a.py"
    assert os.readlink(Path(project) / "link") == "/etc/hosts"
    assert (Path(project) / ".git/refs/heads").is_dir()
    assert os.access(Path(home) / ".wave/guard.sh", os.X_OK)
    assert os.listdir(Path(home) / ".wave") == ["guard.sh"]


def test_the_same_files_have_the_same_digest_and_damage_is_noticed(place: Path) -> None:
    found = packed(place)
    assert packed(place).digest == found.digest
    (place / "there").mkdir()
    with pytest.raises(PackError, match="did not arrive"):
        replace(found, data=found.data[:-1]).unpack(place / "there")
    (place / "home/project/src/a.py").write_text("changed")
    assert packed(place).digest != found.digest


def test_a_file_outside_has_to_be_on_the_worker(place: Path) -> None:
    found = packed(place, "opt/tool.sh")
    for name in ("here", "there"):
        (place / name).mkdir()
    assert found.unpack(place / "here")[1] == ""
    (place / "opt/tool.sh").unlink()
    with pytest.raises(PackError, match=r"A worker lacks .*/opt/tool.sh, which hooks name: install it on all workers"):
        found.unpack(place / "there")


def test_what_does_not_fit_is_named_and_a_hook_that_needs_it_is_not_replayed(place: Path) -> None:
    (place / "home/project/large.bin").write_bytes(b"x" * 5000)
    limits = CopyLimits(one_file=4000)
    assert packed(place, limits=limits).left_out == ("large.bin (0 MiB)",)
    with pytest.raises(PackError, match=r"Hooks need large.bin, which is too large for workers"):
        packed(place, "home/project/large.bin", limits=limits)
