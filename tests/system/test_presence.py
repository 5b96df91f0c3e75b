"""Whether a person gives a command: by what runs, what has run, and since when whoever gives it is there."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wave_agent.system.orphans import Leftovers, sessions_of
from wave_agent.system.presence import at_terminal, doubt

PROJECT = "/somewhere/project"
LOOK = "import sys; from pathlib import Path; from wave_agent.system.presence import doubt; "
LOOK += "from wave_agent.settings.no_hooks import require_own_terminal; "
LOOK += "sys.stdin.readline(); home, project, way = sys.argv[1:]; "
LOOK += "print(doubt(Path(home), project, terminal=way == 'terminal')); way == 'no-hooks' and "
LOOK += "require_own_terminal(Path(home), project)"


def session(home: Path, *, unattended: bool, project: str = PROJECT) -> Leftovers:
    begun = Leftovers(home, Path("/somewhere/one.jsonl"), project=project, unattended=unattended)
    begun.open()
    return begun


@pytest.mark.parametrize(
    ("unattended", "terminal", "why"),
    [
        (True, True, "a session of this project runs unattended"),
        (True, False, "a session of this project is running"),
        (False, True, ""),
        (False, False, "a session of this project is running"),
    ],
)
def test_while_a_session_runs(tmp_path: Path, unattended: bool, terminal: bool, why: str) -> None:
    running = session(tmp_path, unattended=unattended)
    assert doubt(tmp_path, PROJECT, terminal=terminal) == why
    assert doubt(tmp_path, "/somewhere/else", terminal=terminal) == ""
    running.close()
    assert doubt(tmp_path, PROJECT, terminal=terminal) == ""  # this process was there before


def next_tick() -> None:
    """Births are known by the tick, of which there are a hundred in a second."""

    def now() -> int:
        return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))

    begun = now()
    while now() < begun + 2:
        pass


def looker(home: Path, where: str) -> "subprocess.Popen[str]":
    """A process with a session of its own, that looks when it is told to."""
    return subprocess.Popen(
        [sys.executable, "-c", LOOK, str(home), PROJECT, where],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
@pytest.mark.parametrize(
    ("where", "why"), [("script", "the process that it comes from was started"), ("terminal", "this te")]
)
@pytest.mark.parametrize("end", ["closed", "killed"])
def test_what_began_while_a_session_ran_stays_in_doubt(tmp_path: Path, where: str, why: str, end: str) -> None:
    before = looker(tmp_path, where)
    next_tick()
    running = session(tmp_path, unattended=True)
    during = looker(tmp_path, where)
    if end == "closed":
        running.close()
    else:  # as the system does it
        (file,) = (tmp_path / "running").iterdir()
        content = file.read_bytes()
        file.unlink()
        running.close()
        (tmp_path / "ended").rename(tmp_path / "elsewhere")
        file.write_bytes(content)
        Leftovers(tmp_path, Path("/somewhere/two.jsonl")).open()  # the next agent notes that it is dead
        assert not file.exists()
    next_tick()
    after = looker(tmp_path, where)
    told = [process.communicate("go\n", timeout=60)[0] for process in (before, during, after)]
    assert (told[0], told[2]) == ("\n", "\n")
    assert told[1].startswith(why)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
@pytest.mark.parametrize("older", [True, False])
def test_without_a_leader_the_oldest_of_the_others_tells(tmp_path: Path, older: bool) -> None:
    """A leader that has ended, as that of a script in the background may have."""

    def without_leader() -> "subprocess.Popen[str]":
        """What it is told goes to the child that it has left behind."""
        leader = "import os, sys; os.fork() or os.execv(sys.executable, [sys.executable, '-c', *sys.argv[1:]])"
        process = subprocess.Popen(
            [sys.executable, "-c", leader, LOOK, str(tmp_path), PROJECT, "script"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.wait(60) == 0
        return process

    early = without_leader() if older else None
    next_tick()
    running = session(tmp_path, unattended=True)
    process = early or without_leader()
    running.close()
    told, _ = process.communicate("go\n", timeout=60)
    assert told == (
        "\n" if older else "the process that it comes from was started while a session of this project ran\n"
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_terminal_that_a_session_may_have_made_switches_no_hooks_off(tmp_path: Path) -> None:
    before = looker(tmp_path, "no-hooks")
    next_tick()
    running = session(tmp_path, unattended=True)
    during = looker(tmp_path, "no-hooks")
    told = [process.communicate("go\n", timeout=60)[0] for process in (before, during)]
    running.close()
    assert "Open a new terminal" not in told[0]
    assert "Open a new terminal" in told[1]


def test_notes_do_not_grow_for_ever_and_those_of_another_boot_do_not_count(tmp_path: Path) -> None:
    session(tmp_path, unattended=True).close()
    (file,) = (tmp_path / "ended").iterdir()
    boot = file.read_text().split()[0]
    file.write_text("".join(f"{boot} {number} {number + 1} 1\n" for number in range(1000)))
    session(tmp_path, unattended=True).close()
    assert len(sessions_of(tmp_path, PROJECT)) == 64
    file.write_text("other-boot 0 99999999999 1\nnonsense\n\n")
    assert sessions_of(tmp_path, PROJECT) == []


def test_a_pipe_is_no_terminal() -> None:
    reading, writing = os.pipe()
    try:
        assert not at_terminal(reading)
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize(
    ("options", "mount", "why"),
    [
        (["-T", "--boottime", "1000000"], "true", "was started while a session of this project ran"),
        (["-m"], "mount -t tmpfs x /proc", "/proc cannot be read"),
        (["-m"], "mount -t tmpfs x {home}/ended", "something is mounted on"),
    ],
    ids=["another clock", "no /proc", "notes covered"],
)
def test_who_hides_its_birth_or_the_notes_is_doubted(tmp_path: Path, options: list[str], mount: str, why: str) -> None:
    unshare = ["unshare", "-r", *options]
    tried = subprocess.run([*unshare, "true"], capture_output=True, check=False) if shutil.which("unshare") else None
    if tried is None or tried.returncode:
        pytest.skip("needs namespaces")
    session(tmp_path, unattended=True).close()
    line = f'{mount.format(home=tmp_path)} && exec "{sys.executable}" -c "$0" {tmp_path} {PROJECT} none'
    found = subprocess.run([*unshare, "sh", "-c", line, LOOK], input="\n", capture_output=True, text=True, check=False)
    assert why in found.stdout, found.stderr
