"""What other systems lack, taken away from Python in a child process: `docs/platforms.md` says that Wave works so."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Wave = Callable[..., subprocess.CompletedProcess[str]]
CHILD = """
import asyncio, builtins, fcntl, os, select, selectors, signal, socket, subprocess, sys, tempfile
selectors.DefaultSelector = selectors.PollSelector
sys.platform = "darwin"
of_linux = {
    os: "pidfd_open eventfd eventfd_read eventfd_write memfd_create splice copy_file_range sched_getaffinity "
        "sched_setaffinity getrandom posix_fadvise posix_fallocate setns unshare O_PATH O_NOATIME getxattr listxattr",
    select: "epoll EPOLLIN EPOLLONESHOT EPOLLHUP EPOLLERR",
    socket: "SO_PEERCRED",
    signal: "pidfd_send_signal sigtimedwait sigwaitinfo",
    fcntl: "F_OFD_SETLK F_OFD_SETLKW F_OFD_GETLK F_SETPIPE_SZ F_GETPIPE_SZ F_ADD_SEALS",
}
for module, names in of_linux.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)

def without_proc(real):
    def looked_up(path, *rest, **named):
        if isinstance(path, (str, bytes)) and os.fsencode(path).startswith(b"/proc"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return real(path, *rest, **named)
    return looked_up

builtins.open, os.open, os.readlink, os.listdir = map(without_proc, (open, os.open, os.readlink, os.listdir))
sys.argv = ["wave", *sys.argv[1:]]
from wave_agent.__main__ import main
sys.exit(main())
"""


@pytest.fixture
def wave(tmp_path: Path) -> Wave:
    (tmp_path / "project").mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WAVE_", "COV"))}
    own = {"HOME": str(tmp_path), "WAVE_HOME": str(tmp_path / "home"), "WAVE_LOCAL_PORTS": ""}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command, place, environment = [sys.executable, "-c", CHILD, *words], tmp_path / "project", {**kept, **own}
        return subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    return run


def test_the_demo_works_without_what_only_linux_has(wave: Wave) -> None:
    ran = wave("demo")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "build/result.txt is still there" in ran.stdout
    assert "the tests pass" in ran.stdout


def test_a_recipe_passes_its_cases_without_what_only_linux_has(wave: Wave) -> None:
    assert wave("hooks", "new", "tidy", "--recipe", "shell-guard", "--lang", "python", "--yes").returncode == 0
    ran = wave("hooks", "test", "--trust", ".wave/hooks/tidy.cases.json")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert " passed, 0 failed" in ran.stdout


def test_the_doctor_says_what_another_system_does_not_have(wave: Wave) -> None:
    ran = wave("doctor", "--json")
    assert ran.stderr == ""
    (sandbox,) = [check for check in json.loads(ran.stdout) if check["check"] == "sandbox"]
    assert sandbox["status"] == "skipped"
    assert "needs Linux and bubblewrap; this is darwin" in sandbox["detail"]


def test_a_sandbox_that_another_system_does_not_have_is_refused(wave: Wave) -> None:
    ran = wave("-p", "Hello.", "--sandbox", "--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "needs Linux and bubblewrap" in ran.stderr
