"""The ways of attack classes that are about names which stand somewhere else, and their neighbours, without running
them: what is read, written and reached is seen."""

import tomllib
from pathlib import Path

import pytest

from tests.attacks.attack_classes import load_classes
from tests.effects.arena import effects, surroundings
from tests.effects.matching import any_names
from tests.rows import rows
from wave_agent.shell.known import either
from wave_agent.shell.words import ANYTHING, MADE, Pattern, Several

CLASSES = {one.name: [attempt.line or "" for attempt in one.attempts] for one in load_classes()}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "l").write_text("x\n.env\n")
    return tmp_path


@rows(
    "line",
    [
        *CLASSES["files_by_other_names"],
        "history -r",
        "tar cf - -T l",
        "tar cf - --files-from l",
        "tar cf - -T <(echo .env)",
        "du --files0-from=- <<< .env",
        "find . | tar cf - -T -",
        "file -f l",
        "git annotate -S .env note.txt",
        "wget --config=.env",
        "x=abc.env; cat ${x:(-4)}",
        "x=abc.envq; cat ${x:3:-1}",
        "declare -gn r=x; x=.env; cat $r",
        "typeset -n r=x; x=.env; cat $r",
        "declare -n r=$UNKNOWN; cat $r",
        "export a=1 .env; cat $_",
        "unset .env; cat $_",
        "source x; cat $_",
        "ls .e*; cat $_",
        "x=abc.env; cat ${UNKNOWN:3}",
        "cp f > $_",
    ],
)
def test_what_is_read_is_seen_or_not_complete(line: str, project: Path) -> None:
    found = effects(line, surroundings(str(project)))
    assert any_names(found.reads, f"{project}/.env") or not found.complete, found


@rows(
    ("line", "file"),
    [
        ("GIT_WORK_TREE=d git checkout x", "d/x"),
        ("GIT_WORK_TREE=d git status", None),
        ("git --work-tree=d checkout x", "d/x"),
        ("git --work-tree=d status", None),
        ("TMPDIR=d mktemp", "d/tmp.1"),
        ("GIT_INDEX_FILE=i git read-tree HEAD", "i"),
        ("GIT_TRACE=1 git status", None),
        ("GIT_TRACE=i git status", None),
        ("HISTFILE=i; history -a", "i"),
        ("SSLKEYLOGFILE=i curl x", "i"),
        ("git checkout-index --prefix=d/ -- x", "d/x"),
        ("git checkout-index --prefix=d- -- x", "d-x"),
        ("git fast-export --export-marks=i HEAD", "i"),
        ("git credential-store --file=i store", "i"),
        ("git shortlog HEAD --output i", "i"),
        ("git init --separate-git-dir=d x", "d/config"),
        ("awk -v f=i '{print > f}'", "i"),
        ("awk '{print >> (f)}' f=i x", "i"),
        ("awk -v g=i '{print > f}'", None),
        ("ssh -E i h", "i"),
        ("ssh h -E i", "i"),
        ("ssh -o UserKnownHostsFile=i -o Port=1 h", "i"),
        ("openssl rand -writerand i 1", "i"),
        ("patch -r i x", "i"),
        ("patch x", "x.rej"),
        ("patch -B d/ x", "d/x"),
        ("patch -B d- x", "d-x"),
        ("patch -p1 <<< '+++ a/d/x'", "d/x"),
        ("patch -p1 <<< 'diff --git a/d/x b/d/x'", "d/x"),
        ("tar xf x --one-top-level=d", "d/x"),
        ("tar xf x --xform=s,a,d/,", "d/x"),
        ("for f in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do touch d/$f; done", "d/1"),
    ],
)
def test_what_is_written_is_seen(line: str, file: str | None, project: Path) -> None:
    found = effects(line, surroundings(str(project)))
    names = [file] if file is not None else ["d/x", "i", "d"]
    assert any(any_names(found.writes, f"{project}/{name}") for name in names) is (file is not None), found


@rows("line", CLASSES["hosts_in_lists_and_options"])
def test_the_host_is_seen(line: str, project: Path) -> None:
    assert "127.0.0.1" in effects(line, surroundings(str(project))).hosts


@rows(
    "line",
    [
        *CLASSES["hosts_that_are_not_known"],
        "openssl s_client -quiet",
        "docker --connection x ps",
        "git config url.https://x/.insteadOf gh: && git fetch q",
    ],
)
def test_a_host_that_is_not_known_is_reached(line: str, project: Path) -> None:
    assert "*" in effects(line, surroundings(str(project))).hosts


@rows(
    "line",
    [
        "openssl x509 -in a",
        "openssl",
        "logger x",
        "DOCKER_HOST=unix:///run/docker.sock docker ps",
        "GOPROXY=off go vet",
        "docker ps",
        "gdb -ex 'target remote | cat'",
        "gdb -ex bt a.out core",
        "git remote add q ../other; git fetch q",
        "git remote add q https://evil.example/x",
        "git remote -v",
        "ssh-keyscan -f - <<< ''",
    ],
)
def test_no_host_is_reached(line: str, project: Path) -> None:
    assert not effects(line, surroundings(str(project))).hosts


@rows(
    ("line", "hosts"),
    [
        ("ssh -J none h", ["h"]),
        ("ssh -o ProxyJump=a,ssh://me@b -o Port=1 h", ["h", "a", "b"]),
        ("ssh-keyscan -f - x <<< 'a,b '", ["x", "a", "b"]),
    ],
)
def test_hosts_of_ssh(line: str, hosts: list[str], project: Path) -> None:
    assert effects(line, surroundings(str(project))).hosts == tuple(hosts)


@rows(
    ("one", "other", "found"),
    [
        ("a", "b", Several("**")),
        ("src/a.py", "src/b.py", Several("src/**.py")),
        ("src/a/x", "src/b/y", Several("src/**")),
        ("a", "-r", Pattern("**")),
        ("a", "b c", Pattern("**")),
        ("*", "b", Pattern("**")),
        ("a", Several("b**"), Several("**")),
        ("a", Pattern("b*"), Pattern("**")),
        ("a", "../b", MADE),
        ("/a", "b", MADE),
        ("a", "/b", MADE),
        ("/a/x", "/a/y", Several("/a/**")),
        ("a", MADE, MADE),
        ("a", ANYTHING, ANYTHING),
    ],
)
def test_a_pattern_of_two_values(one: str, other: str, found: Pattern) -> None:
    either_of = either(one, other)
    assert (either_of, type(either_of)) == (found, type(found))


def test_every_class_that_is_used_here_is_there() -> None:
    assert tomllib.loads((Path(__file__).parent / "hosts.toml").read_text())["way"]
    assert all(CLASSES[name] for name in ("files_by_other_names", "hosts_in_lists_and_options"))
