"""The tables of programs that carry others: a rule sees through every row, and where the program is installed it shows
that the row is true."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.attacks.attack_classes import load_classes
from tests.rows import rows
from wave_agent.rules.rule import Places, parse_rule
from wave_agent.shell.carriers import AFTER, EVERYWHERE, LANGUAGES, SCRIPTS, VARIABLES, Variable
from wave_agent.shell.git_commands import CARRIES, COMMANDS, SAME_AS, UNDER
from wave_agent.shell.wrappers import PREFIXES

PLACES = Places("/srv/project", "/home/me")
CODE = """'run("git", "push") | system'"""


def restricts(command: str, rule: str = "git push:*") -> bool:
    return parse_rule(f"Bash({rule})").matches("Bash", {"command": command}, PLACES)


def spellings(option: str, value: str) -> list[str]:
    """Every way to attach a value to an option."""
    if len(option) == 2:
        return [f"{option} {value}", f"{option}{value}", f"-Q{option[1]} {value}", f"-Q{option[1]}{value}"]
    if not option.startswith("--"):
        return [f"{option} {value}"]
    return [f"{option} {value}", f"{option}={value}", f"{option[:-1]} {value}", f"{option[:-1]}={value}"]


def language_lines(name: str) -> list[str]:
    row = LANGUAGES[name]
    lines = [f"{name} {spelt}" for option in row.names for spelt in spellings(option, CODE)]
    lines += [f"{name} {CODE}"] if row.first or row.every else []
    lines += [f"{name} {flag} {CODE}" for flag in row.flags]
    lines += [f"{name} +{CODE} file"] if row.plus else []
    lines += [f"{name} <<< {CODE}", f"echo {CODE} | {name}"] if row.stdin and not row.first else []
    return lines


ROWS: dict[str, list[str]] = {}
for _name, _row in PREFIXES.items():
    ROWS.setdefault(_name, []).append(f"{_name} {'1 ' * _row.skipped}{'' if _row.git else 'git '}push")
for _name in sorted(EVERYWHERE):
    ROWS.setdefault(_name, []).extend((f"{_name} git push", f"{_name} -x 'cd . && git push'"))
for _name, _words in AFTER.items():
    ROWS.setdefault(_name, []).extend(f"{_name} {word} git push" for word in sorted(_words))
for _name, _given in SCRIPTS.items():
    ROWS.setdefault(_name, []).extend(
        f"{_name} {spelt}" for option in _given.names for spelt in spellings(option, "'git push'")
    )
for _name in LANGUAGES:
    ROWS.setdefault(_name, []).extend(language_lines(_name))


@rows("name", ROWS)
def test_a_rule_sees_through_every_row(name: str) -> None:
    unseen = [line for line in ROWS[name] if not restricts(line)]
    assert ROWS[name]
    assert not unseen


OTHERWISE = [
    "tar cIf 'git push' a.tar b",
    "tar xf a.tar -I 'git push'",
    "zip -T -TT 'git push' a",
    "gcc -wrapper git,push x.c",
    "go build -toolexec='git push' x",
    "ssh -oProxyCommand='git push' h",
    "sftp -o 'LocalCommand git push' h",
    "ed -s file <<< '!git push'",
    "vim file <<< ':!git push'",
    "sed '1e git push' x",
    "sed 's/x/git push/e' x",
    "make CC='git push'",
    "make -f - <<< $'x:\\n\\tgit push'",
    "ld-linux.so.2 git push",
    "git-push",
    "/x/git-push",
    "su root -s /bin/git -- push",
    "su - -s /bin/git root push",
    "fd x -x git push",
    "fd --exec=git push",
    "fd -Xgit push",
    "fd x --exec-batch git push",
    "find . -exec env -u + git push \\;",
    "xargs git < x",
    "x | xargs -I{} git {}",
    "xargs -a x git",
    "parallel git ::: push",
    "awk 'BEGIN{system(\"git push\")}'",
    "python3.12 -c 'git push'",
    "pypy -c 'git push'",
    "perl -we 'git push'",
    "git p",
    "git -C . p --force",
    "git --exec-path=/x log",
    "git -c alias.x=push x",
    "git -c alias.x='!git push' x",
    "git -c alias.x='\"push\"' x",
    "git -c include.path=x log",
    "git -c core.pager='git push' log",
    "git --config-env=alias.x=Y x",
    "git --config-env=core.pager=Y log",
    "git -c credential.helper='!git push' fetch",
    "git -c url.ext::x.insteadOf=y fetch",
    "git -c credential.helper='x;git push' fetch",
    "git clone -c core.fsmonitor='git push' a b",
    "git clone 'ext::git push'",
    "git clone 'ext::sh -c git% push'",
    'git -c "alias.x=$y" x',
    "git -c core.hooksPath=x commit",
    "printf '%s\\n' " + " ".join(["x"] * 70) + " | xargs -I{} echo {}; git p",
    "parallel echo ::: " + " ".join(["x"] * 70),
]


@rows("line", OTHERWISE)
def test_a_rule_sees_through_what_has_a_form_of_its_own(line: str) -> None:
    assert restricts(line)


@rows("name", CARRIES)
def test_a_rule_sees_what_a_subcommand_of_git_runs(name: str) -> None:
    row = CARRIES[name]
    plain = Places("/srv/project", "/home/me")
    rule = parse_rule("Bash(make deploy:*)")
    lines = [f"git {name} {option} 'make deploy'" for option in row.options if option != "-O"]
    lines += [f"git {name} {option}='make deploy'" for option in row.options if option.startswith("--")]
    if row.operands is not None:
        lines += [f"git {name} make deploy"] if not row.git else []
    assert [line for line in lines if not rule.matches("Bash", {"command": line}, plain)] == []
    assert not row.git or restricts(f"git {name} --config=x push")


@pytest.mark.parametrize(("names", "row"), UNDER.items())
def test_a_rule_sees_what_a_subcommand_under_another_runs(names: tuple[str, str], row: object) -> None:
    assert restricts(f"git {' '.join(names)} -q git push")
    assert not restricts(f"git {' '.join(names)}")


@pytest.mark.parametrize("names", SAME_AS)
def test_a_subcommand_of_another_name_counts(names: tuple[str, ...]) -> None:
    assert restricts(f"git {' '.join(names)} x", f"git {SAME_AS[names]}:*")


VARIABLE_NAMES = (
    *(
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_COUNT",
        "GIT_EXEC_PATH",
        "PERL5OPT",
        "RUBYOPT",
        "NODE_OPTIONS",
        "BASH_ENV",
        "ENV",
    ),
    *("PS4", "PAGER", "GIT_SSH_COMMAND", "LESSOPEN", "TAR_OPTIONS", "CC"),
)


@rows("row", VARIABLES, ids=lambda row: row.name.pattern)
def test_a_rule_sees_what_a_variable_has_others_run(row: Variable) -> None:
    names = [name for name in VARIABLE_NAMES if row.name.fullmatch(name)]
    assert names
    for name in names:
        assert restricts(f"{name}='--require=x $(git push) git push' ls")
        assert restricts(f"export {name}='--require=x -Mx `git push`;git push'; ls")


def test_a_rule_sees_a_program_that_a_variable_names_by_what_is_printed() -> None:
    assert restricts("PAGER=$(echo git push) man x")
    assert restricts("PAGER=<(echo git push) man x")
    assert not restricts("PAGER=$(echo less) man x")


INNOCENT = [
    "git -c user.name=x commit -m y",
    "git -c core.quotepath=off diff",
    "git -c core.hooksPath=/dev/null commit",
    "git -c http.extraHeader='a: b' fetch",
    "git -c x=push status",
    "git lfs pull",
    "GIT_CONFIG_GLOBAL=/dev/null git log",
    "GIT_CONFIG_NOSYSTEM=1 git log",
    "NODE_OPTIONS=--max-old-space-size=9 node x.js",
    "ENV=production npm start",
    "CC=clang make",
    "EDITOR=vim git commit",
    "RUBYOPT=-W0 ruby x.rb",
    "PERL5OPT=-w perl x.pl",
    "BASH_ENV= bash x",
    "awk '/git push/' x",
    "sed 's/git push/x/' y",
    "python3 x.py",
    "node x.js",
    "git submodule foreach",
    "git --exec-path",
    "git",
    "fd x",
    "su",
    "su -c ls",
    "hub --version",
    "ssh -o BatchMode=yes h ls",
    "zip -T x",
    "make all",
    "git -c credential.helper=store fetch",
    "git -c alias.x=push log",
    "tar",
    "tar xf a",
    "vim +12 file",
    "less +F file",
    "docker run image echo git push",
    "docker run -e 'A=b c' image",
    "sed -e p -e q x",
    "git clone a b",
    "git for-each-repo",
    "python3 -m pytest",
    "xargs",
    "git fetch --upload-pack=",
    "CC= make",
    'LESSOPEN="$x" less y',
]


@rows("line", INNOCENT)
def test_what_runs_nothing_else_is_let_pass(line: str) -> None:
    assert not restricts(line)


@rows(
    ("rule", "line", "expected"),
    [
        ("*push*", "git p", True),
        ("npm publish", "git p", False),
        ("git push", "git p", True),
        ("git", "git p", False),
        ("rm -rf:*", 'python3 -c \'run(["rm", "-rf", x])\'', True),
        ("rm -rf:*", 'python3 -c \'run(["rm", "-r", x])\'', False),
        ("git * --force", "perl -e 'git push x --force'", True),
        ("git push*", "perl -e 'git pushd'", True),
        ("git push:*", "perl -e 'git pushd'", False),
        (":", "perl -e 'x'", False),
        ("make deploy:*", "LD_PRELOAD=x ls", True),
    ],
)
def test_what_cannot_be_seen_counts_as_far_as_the_rule_may_be_meant(rule: str, line: str, *, expected: bool) -> None:
    assert restricts(line, rule) is expected


# ---------------------------------------------------------------------------------------------------- real programs


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_gits_own_commands_are_all_known() -> None:
    listed = subprocess.run(["git", "--list-cmds=builtins,main"], capture_output=True, text=True, check=True).stdout
    assert set(listed.split()) - COMMANDS == set()


IN_ATTACKS = {program for attacks in load_classes() for attempt in attacks.attempts for program in attempt.needs}
NOT_HERE = {
    **dict.fromkeys(("docker", "podman", "nerdctl", "kubectl", "oc"), "needs a daemon or a cluster"),
    **dict.fromkeys(("systemd-run", "systemd-inhibit", "systemd-nspawn", "machinectl", "run0"), "needs systemd"),
    **dict.fromkeys(("npx", "pnpx", "bunx", "uvx", "pnpm", "yarn", "bun", "pipx"), "fetches packages"),
    **dict.fromkeys(("uv", "poetry", "hatch", "pdm", "rye", "pipenv", "conda", "bundle"), "needs a project"),
    **dict.fromkeys(("rpm", "dpkg", "apt", "apt-get", "ip", "adb", "go", "crontab"), "changes the system"),
    **dict.fromkeys(("bsdtar", "scp", "sftp", "nc", "ncat", "netcat", "rsync", "wget", "svn", "hg"), "needs a server"),
    **dict.fromkeys(("{", "!", "builtin", "command", "exec", "time", "compgen", "complete"), "see test_shell"),
    **dict.fromkeys(("mapfile", "readarray"), "see test_shell"),
    **dict.fromkeys(
        ("perf", "valgrind", "ltrace", "strace", "schedtool", "start-stop-daemon", "cpulimit"), "needs rights"
    ),
    **dict.fromkeys(
        ("xvfb-run", "xterm", "wish", "gnome-terminal", "konsole", "kitty", "alacritty"), "needs a display"
    ),
    **dict.fromkeys(("pdflatex", "lualatex", "xelatex", "latex", "tex", "psql", "mysql", "mariadb"), "needs a server"),
    **dict.fromkeys(("pkexec", "runuser", "chpst", "gosu", "su-exec", "setuidgid", "chrt", "capsh"), "needs a user"),
}
"""Programs that cannot show it in a test, and why."""
OF_THEIR_OWN = {
    "bat": "bat --paging=always --pager='git push' note",
    "bc": "true",
    "cpio": "true",
    "dc": "dc -e '!git push'",
    "dotenv": "touch .env; dotenv run git push",
    "dpkg-architecture": "dpkg-architecture -c git push",
    "fakeroot": "fakeroot git push",
    "install": "true",
    "m4": "m4 <<< 'syscmd(git push)'",
    "man": "true",
    "numactl": "numactl -l git push",
    "nft": "true",
    "prlimit": "prlimit --nofile=99 git push",
    "rg": "rg --pre=./push hello note",
    "setarch": "setarch -R git push",
    "choom": "choom -n 0 -- git push",
    "sort": "true",
    "start-stop-daemon": "start-stop-daemon --start --exec git push",
}
"""What they want besides. `true`: what they run gets no arguments from a line, so that no line can show it."""


def can_be_shown(name: str) -> bool:
    """The program is installed, and no other test shows what it runs."""
    same = {other for other in LANGUAGES if LANGUAGES[other] is LANGUAGES.get(name)} | {name}
    is_shown = same & IN_ATTACKS or OF_THEIR_OWN.get(name) == "true"
    return shutil.which(name) is not None and name not in NOT_HERE and not is_shown


@pytest.mark.parametrize("name", [name for name in sorted(ROWS) if can_be_shown(name)])
def test_where_the_program_is_installed_the_row_is_true(name: str, tmp_path: Path) -> None:
    line = OF_THEIR_OWN.get(name, ROWS[name][0])
    (tmp_path / "bin").mkdir()
    for program, text in {"git": f'echo "$*" >> {shlex.quote(str(tmp_path / "log"))}', "push": "git push"}.items():
        (tmp_path / "bin" / program).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / program).chmod(0o755)
    shutil.copy(tmp_path / "bin" / "push", tmp_path / "push")
    (tmp_path / "note").write_text("hello\n")
    subprocess.run(
        ["bash", "-c", line],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path), "TERM": "dumb"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    log = tmp_path / "log"
    assert re.search(r"\bpush\b", log.read_text() if log.exists() else ""), line
