"""Searches agree: with and without rg, and with git about what is ignored."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import wave_agent
from tests.tools.trees import RG, needs_rg, write
from tests.waiting import until
from wave_agent.system.real_files import look
from wave_agent.tools.search.gitignore import GlobPattern
from wave_agent.tools.search.matches import compile_pattern
from wave_agent.tools.search.program import search

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not on PATH")

NAMES = st.sampled_from(["a", "b", "ab", "a.b", ".a", "b]", "a b", "é"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENTS = st.text(st.sampled_from("aab \n\r.é_0\x1c\u0301K"), max_size=20).map(str.encode) | st.binary(max_size=20)
ATOMS = st.sampled_from(
    ["a", "b", ".", r"\w", r"\s", r"\b", r"\d", "[ab]", "[^a]", "^", "$", "é", "k", r"\.", "(a|b)", "(?:ab)?", " "]
)
PATTERNS = st.lists(ATOMS.flatmap(lambda atom: st.sampled_from([atom, atom, f"{atom}x*"])), min_size=1, max_size=4).map(
    "".join
)
PIECES = st.sampled_from(["a", "b", "*", "?", "**", "[ab]", "[!a]", ".", "é", r"\*", " "])
RULES = st.builds(
    lambda no, root, parts, end: no + root + "/".join("".join(part) for part in parts) + end,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(st.lists(PIECES, min_size=1, max_size=2) | st.just(["**"]), min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)
quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def tree(directory: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = directory / name
        if (
            not any((directory / parent).is_file() for parent in path.relative_to(directory).parents)
            and not path.is_dir()
        ):
            write(directory, {name: content})


@needs_rg
@quick
@given(
    files=st.dictionaries(PATHS, CONTENTS, min_size=1, max_size=8),
    pattern=PATTERNS,
    ignore_case=st.booleans(),
    multiline=st.booleans(),
    mode=st.sampled_from(["content", "count", "files_with_matches"]),
    glob=st.sampled_from(["", "", "a*", "!*b", "a/**"]),
)
def test_grep_finds_the_same_with_and_without_rg(
    files: dict[str, bytes], pattern: str, ignore_case: bool, multiline: bool, mode: str, glob: str
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        tree(Path(directory), files)
        request = {
            "kind": "grep",
            "path": directory,
            **seen(directory),
            "project": directory,
            "cwd": directory,
            "pattern": pattern,
            "glob": glob,
            "output_mode": mode,
            "ignore_case": ignore_case,
            "numbers": True,
            "after": 1,
            "before": 0,
            "head_limit": 0,
            "characters": 30_000,
            "size": 120_000,
            "multiline": multiline,
        }
        assert search({**request, "rg": RG}, few=0) == search({**request, "rg": None})


@needs_git
@quick
@example(paths={"ax", "a/b/x", "x/a", "x/ab"}, rules=["a**/x", "x/a**"], nested={})
@given(
    paths=st.sets(PATHS.filter(str.isascii), min_size=1, max_size=8),
    rules=st.lists(RULES, max_size=4),
    nested=st.dictionaries(NAMES, st.lists(RULES, max_size=3), max_size=2),
)
def test_ignored_is_what_git_ignores(paths: set[str], rules: list[str], nested: dict[str, list[str]]) -> None:
    """ASCII names only: git's `?` is a byte, ours a character."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        tree(root, dict.fromkeys(sorted(paths), b""))
        ignores = {".": rules, **nested}
        for name, lines in ignores.items():
            if (root / name).is_dir():
                (root / name / ".gitignore").write_text("\n".join(lines))
        request = {
            "kind": "glob",
            "path": directory,
            **seen(directory),
            "project": directory,
            "cwd": directory,
            "pattern": "*",
            "head_limit": 0,
        }
        request |= {"characters": 30_000, "size": 120_000}
        assert search(request)["lines"] == files_of_git(directory)


@pytest.mark.parametrize(
    ("wanted", "lines"),
    [
        ({"kind": "glob", "pattern": "*.py"}, ["a.py", "sub/b.py"]),
        ({"kind": "glob", "pattern": "sub/**"}, ["sub/b.py"]),
        ({"output_mode": "files_with_matches"}, ["a.py", "sub/b.py"]),
        ({"output_mode": "files_with_matches", "glob": "sub/*"}, ["sub/b.py"]),
        ({"output_mode": "content", "numbers": True}, ["a.py:2:two", "sub/b.py:1:TWO two"]),
        ({"output_mode": "content", "after": 1, "before": 1, "glob": "a.py"}, ["a.py-one", "a.py:two", "a.py-three"]),
        ({"output_mode": "count", "ignore_case": True}, ["a.py:1", "sub/b.py:1"]),
        ({"output_mode": "content", "multiline": True, "pattern": "one.two"}, ["a.py:one", "a.py:two"]),
    ],
)
def test_what_a_search_finds(tmp_path: Path, wanted: dict[str, object], lines: list[str]) -> None:
    tree(tmp_path, {"a.py": b"one\ntwo\nthree\n", "sub/b.py": b"TWO two\n", "ignored.log": b"two\n", "bin": b"two\0"})
    (tmp_path / ".gitignore").write_text("*.log\n")
    directory = str(tmp_path)
    request = {
        "kind": "grep", "path": directory, **seen(directory), "project": directory, "cwd": directory, "rg": None,
        "pattern": "two", "glob": "", "type": "", "output_mode": "content", "ignore_case": False, "numbers": False,
        "after": 0, "before": 0, "head_limit": 0, "characters": 30_000, "size": 120_000, "multiline": False,
    }  # fmt: skip
    assert search({**request, **wanted})["lines"] == lines


def seen(directory: str) -> dict[str, object]:
    """What a call was permitted for."""
    found = look(directory)
    return {"real": found.real, "identity": found.file, "unread": ()}


def files_of_git(directory: str) -> list[str]:
    assert GIT is not None
    environment = {"HOME": directory, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    subprocess.run([GIT, "init", "-q", directory], env=environment, check=True, capture_output=True)
    listed = subprocess.run(
        [GIT, "-C", directory, "ls-files", "-z", "--others", "--exclude-standard"],
        env=environment,
        check=True,
        capture_output=True,
    )
    return sorted(os.fsdecode(name) for name in listed.stdout.split(b"\0") if name)


@example("{" * 100 + "a" + "}" * 50, "a")
@given(st.text(st.sampled_from("ab*?[]!^{},/\\.-"), max_size=12), st.text(st.sampled_from("ab/."), max_size=8))
def test_any_text_is_a_glob_pattern(pattern: str, path: str) -> None:
    GlobPattern(pattern).matches(path)


@given(st.text(st.sampled_from("ab/.*"), min_size=1, max_size=8))
def test_an_escaped_pattern_matches_itself_alone(path: str) -> None:
    pattern = GlobPattern("/" + path.replace("*", r"\*"))
    assert pattern.matches(path)
    assert not pattern.matches(path + "x")


def test_posix_classes_are_translated() -> None:
    assert compile_pattern("^[[:upper:]_]+$", ignore_case=False, multiline=False).search("A_B")


KILLED = """
import os, subprocess, sys
*argv, request = sys.argv[1:]
print(subprocess.Popen([sys.executable, *argv, request.replace("AGENT", str(os.getpid()))]).pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
async def test_a_search_ends_with_the_agent_that_started_it(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a" * 60 + "b")
    fields = {"kind": "grep", "path": str(tmp_path), "project": str(tmp_path), "cwd": str(tmp_path), "glob": ""}
    options = {"output_mode": "content", "ignore_case": False, "numbers": True, "after": 0, "before": 0, "rg": None}
    limits = {"head_limit": 0, "characters": 30_000, "size": 120_000, "multiline": False}
    endless = json.dumps({**fields, **options, **limits, **seen(str(tmp_path)), "pattern": "(a+)+$", "agent": 0})
    endless = endless.replace('"agent": 0', '"agent": AGENT')
    packages = str(Path(wave_agent.__file__).parents[1])
    boot = "import sys; sys.path.append(sys.argv[1]); from wave_agent.tools.search.program import main; main()"
    command = [sys.executable, "-c", KILLED, "-I", "-S", "-c", boot, packages, endless]
    searching = started_and_orphaned(command)
    try:
        await until(lambda: not is_running(searching), 30)
    finally:
        with suppress(ProcessLookupError):
            os.kill(searching, signal.SIGKILL)


def started_and_orphaned(command: list[str]) -> int:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        searching = int(agent.stdout.readline())
        agent.kill()
    return searching


def is_running(pid: int) -> bool:
    """One that has ended and is not collected yet does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
