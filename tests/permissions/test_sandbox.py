"""The borders as values, what the agent itself must not write, and where no sandbox can be had."""

import os
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from wave_agent import Agent
from wave_agent.agent.options import Options
from wave_agent.errors import SandboxError, SessionError
from wave_agent.permissions.protected_paths import protected_paths
from wave_agent.permissions.sandbox import Borders, Sandbox, arguments, find_bubblewrap
from wave_agent.testing import ScriptedModel


def places(words: list[str]) -> list[str]:
    """Where something is mounted, in order."""
    after = {"--bind": 2, "--ro-bind": 2, "--tmpfs": 1, "--dev": 1, "--proc": 1}
    return [words[at + after[word]] for at, word in enumerate(words) if word in after]


def test_a_mount_never_covers_one_that_lies_below_it():
    borders = Borders(
        writable=("/home/me/project", "/home", "/"),
        pinned=("/home/me/project/.git",),
        read_only=("/home/me/project/.git/hooks",),
        hidden=("/home/me", "/run"),
        silenced=("/home/me/project/socket",),
        private={"/tmp": "/tmp/wave"},
    )
    order = places(arguments(borders))
    assert order[0] == "/"
    for at, path in enumerate(order):
        assert not any(earlier.startswith(f"{path.rstrip('/')}/") for earlier in order[:at])


def test_of_two_wishes_for_one_path_the_stricter_one_counts():
    words = arguments(Borders(writable=("/a",), pinned=("/a",), read_only=("/a",)))
    assert ("--ro-bind", "/a") in list(pairwise(words))
    assert ("--bind", "/a") not in list(pairwise(words))


@pytest.mark.parametrize("network", [True, False])
def test_the_network_is_cut_off_unless_it_is_allowed(network: bool):
    assert ("--unshare-net" in arguments(Borders(writable=(), network=network))) is not network


def sandbox(tmp_path: Path, *directories: Path, program: str = "bwrap") -> Sandbox:
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    state = tmp_path / "project" / "state"
    return Sandbox(
        program,
        project=str(project),
        directories=[str(directory) for directory in directories],
        protected=protected_paths(str(project), state, (), tmp_path),
        state=state,
        outputs=state / "projects" / "p" / "s",
        network=False,
    )


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("project/file", None),
        ("project/new/file", None),
        ("added/file", None),
        ("project/.gitignore", None),
        ("project/.wave-notes", None),
        ("file", "outside"),
        ("projects/file", "outside"),
        ("project/../file", "outside"),
        ("project/link/file", "outside"),
        ("project/state/notes", "outside"),
        ("project/state/projects/p/s/output.txt", "outside"),
        ("project/state/trust.json", "protected"),
        ("project/.wave", "protected"),
        ("project/.wave/settings.json", "protected"),
        ("project/.wave/anything", "protected"),
        ("project/.git/hooks/pre-push", "protected"),
        ("project/to-hooks/pre-push", "protected"),
        (".bashrc", "protected"),
    ],
)
def test_the_agent_itself_keeps_to_the_borders(tmp_path: Path, path: str, why: str | None):
    (tmp_path / "added").mkdir()
    found = sandbox(tmp_path, tmp_path / "added")
    (tmp_path / "project" / "link").symlink_to(tmp_path)
    (tmp_path / "project" / "to-hooks").symlink_to(".git/hooks")
    refusal = found.refusal(str(tmp_path / path))
    assert (why in refusal) if why and refusal else refusal is None and why is None


@pytest.mark.parametrize("added", ["state", "state/projects", "state/projects/p/s", ".wave", ".git/hooks"])
def test_adding_a_directory_gives_nothing_away_that_is_protected(tmp_path: Path, added: str):
    directory = tmp_path / "project" / added
    directory.mkdir(parents=True)
    assert sandbox(tmp_path, directory).refusal(str(directory / "file")) is not None


def test_without_the_program_it_says_what_to_install(tmp_path: Path):
    with pytest.raises(SandboxError, match="bubblewrap"):
        find_bubblewrap({"PATH": str(tmp_path)})


def test_the_program_is_not_taken_from_where_a_command_can_write(tmp_path: Path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "bin")
    program = tmp_path / "bin" / "bwrap"
    program.touch(mode=0o755)
    assert find_bubblewrap({"PATH": str(tmp_path / "link")}) == str(program)
    with pytest.raises(SandboxError):
        find_bubblewrap({"PATH": str(tmp_path / "link")}, distrusted=[str(tmp_path / "bin")])


def test_what_makes_a_program_load_files_does_so_only_inside(tmp_path: Path):
    found, environment = sandbox(tmp_path), {"LD_PRELOAD": "./x.so", "BASH_ENV": "./x.sh", "A": "1", "TMUX": "/tmp/t"}
    assert found.outside(environment) == {"A": "1", "TMPDIR": "/tmp"}
    words = found.command(["true"], environment, cwd="/")
    found.close()
    assert words[words.index("LD_PRELOAD") - 1 : words.index("LD_PRELOAD") + 2] == ["--setenv", "LD_PRELOAD", "./x.so"]
    assert "BASH_ENV" in words
    assert "TMUX" not in words


def test_a_program_that_does_not_work_is_quoted(tmp_path: Path):
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace\33[31m' >&2; exit 1\n")
    program.chmod(0o755)
    (tmp_path / "project").mkdir()
    with pytest.raises(SandboxError) as raised:
        Sandbox.open(
            project=str(tmp_path / "project"),
            directories=(),
            protected=protected_paths(str(tmp_path / "project"), tmp_path / "state", ()),
            state=tmp_path / "state",
            outputs=tmp_path / "state" / "out",
            network=False,
            environment={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        )
    assert "No permissions to create new namespace" in str(raised.value)
    assert "\33" not in str(raised.value)
    assert os.listdir(tmp_path / "project") == []


def test_an_env_that_cannot_restore_signals_costs_nothing_but_the_grace(tmp_path: Path):
    """Here bwrap is a program that fails whenever it is to run env."""
    program = tmp_path / "bwrap"
    program.write_text('#!/bin/sh\ncase "$*" in *" env "*) echo "env: unknown option" >&2; exit 125;; esac\n')
    program.chmod(0o755)
    found = sandbox(tmp_path, program=str(program))
    found.probe(os.environ)
    words = found.command(["true"], {}, cwd="/")
    found.close()
    assert (words[0], words[-1]) == (str(program), "true")
    assert "env" not in words


async def test_a_session_is_given_back_when_no_sandbox_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    options = Options(workdir=tmp_path / "project", model_client=ScriptedModel(["One.", "Two."]))
    async with Agent.from_options(options) as first:
        await first.send_message("Hi.")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError):
        Agent.from_options(replace(options, resume=first.session_id, sandbox=True))
    async with Agent.from_options(replace(options, resume=first.session_id)) as again:
        assert (await again.send_message("Again.")).text == "Two."


async def test_a_session_that_is_in_use_leaves_no_trace_of_a_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    options = Options(workdir=tmp_path / "project", model_client=ScriptedModel(["One."]))
    async with Agent.from_options(options) as first:
        await first.send_message("Hi.")
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(SessionError, match="in use"):
            Agent.from_options(replace(options, resume=first.session_id, sandbox=True))
        assert sorted(tmp_path.rglob("*")) == before
