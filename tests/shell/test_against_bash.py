"""Lines that nobody would write, run by a real Bash: whenever that runs `git push`, a rule has seen it; whenever that
changes a protected file, so has the guard of it.

A grammar for Bash is written by hand, and parts some words elsewhere than Bash does. Those that were found this way are
among the spellings of `test_shell.py`. Two kinds of lines: signs in a row, and commands in constructs in constructs.
"""

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from wave_agent.permissions.protected_paths import ProtectedPaths
from wave_agent.rules.rule import Places, parse_rule
from wave_agent.shell.reader import read_writes

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")

RULE = parse_rule("Bash(git push*)")
PLACES = Places("/srv/project", "/home/me")
BASH = shutil.which("bash") or "bash"

WORDS = [
    "git",
    "git ",
    "git push",
    "\\git",
    "g",
    "it",
    "push",
    " push",
    "ls",
    "ls ",
    "true",
    "true;",
    "x",
    "y",
    "f",
    "é",
]
BLANKS = [" ", " ", " ", "\n", "\n", "\t", "\r", "\\\n", "\n\\", "\n ", ";\n", "\n\n", "\n#", "$IFS", "${IFS}"]
SIGNS = [
    "\\",
    "'",
    '"',
    ";",
    "&",
    "|",
    "&&",
    "||",
    "(",
    ")",
    "{",
    "}",
    " { ",
    "; }",
    "#",
    "!",
    "! ",
    "=",
    "<",
    ":",
    "*",
    "?",
]
SIGNS += [
    "~",
    "\x01",
    "-",
    "@",
    ",",
    "..",
    "%",
    "^",
    "/",
    "$",
    "`",
    "[ ",
    "] ",
    "[[",
    "]]",
    "((",
    "))",
    "true&&",
    "false||",
]
EXPANSIONS = [
    "$x",
    "${x}",
    "x=git",
    "x=git;",
    "$y",
    "y=push;",
    "$(",
    "$'",
    '$"',
    "\\x67",
    "\\147",
    "$((",
    "${",
    "#}",
    ":-git}",
]
EXPANSIONS += ["{git,", "push}", "{a,", "<(", ">(", "+(", "!("]
REDIRECTIONS = ["<<E", "<<'E'", "<<-E", "E\n", "\nE\n", "> f", " >f", "1>&2", ">&", "<<<"]
KEYWORDS = [
    "if ",
    "then ",
    "fi",
    "else ",
    "elif ",
    "do ",
    "done",
    "while ",
    "until ",
    "case x in",
    "esac",
    "in ",
    "f()",
]
KEYWORDS += ["function f", "time ", "eval ", "for x in git;", "select ", "exec ", "command ", "builtin ", "env "]
PIECES = [*WORDS, *BLANKS, *SIGNS, *EXPANSIONS, *REDIRECTIONS, *KEYWORDS]
SPELLINGS = ["git push", "\\git push", "'git' push", "git \\push", "$x push", "g\\\nit push"]


SEEDS = [
    "git push",
    "\\git push",
    "'git' push",
    "git -C . push",
    "git >f push",
    "{git,push}",
    "$'\\x67it' push",
    "x=git; $x push",
    "x='git push'; $x",
    "x=git; ${x} push",
    "y=git; x=y; ${!x} push",
    "a=(git push); ${a[@]:0:2}",
    "a=(x git); ${a[1]} push",
    'cmds=("git push"); for c in "${cmds[@]}"; do $c; done',
    "BASH_CMDS[foo]=$(type -P git); foo push",
    "hash -p $(type -P git) foo; foo push",
    "$BASH -c 'git push'",
    "/proc/self/exe -c 'git push'",
    "/proc/$$/exe <<< 'git push'",
    "$(type -P git) push",
    "$(rev <<< 'hsup tig')",
    "rev <<< 'hsup tig' | sh",
    "eval \"$(rev <<< 'hsup tig')\"",
    "xargs git <<< push",
    "echo push | xargs git",
    "rev <<< hsup | xargs git",
    "echo 'git push' > >(sh)",
    "echo 'git push' | tee >(sh)",
    "echo git push > s; sh s",
    "f() { git \"$@\"; }; f push",
    "f() { $1; }; f 'git push'",
    "set -- git push; \"$@\"",
    "read -r a b <<< 'git push'; $a $b",
    "git push & wait",
    "git push <<< x",
    "git push <<E\nx\nE",
    "a[$(git push)]=1",
    "echo $((a[$(git push)]))",
    "x='a[$(git push)]'; echo $((x))",
    "(cd . && echo == && git push)",
    "x=$(echo ==; git push)",
    "time while ! git push; do break; done",
    "echo \"${x-'$(git push)'}\"",
    "coproc git push",
    "exec git push",
    "! git push",
]  # fmt: skip
CONSTRUCTS = [
    "{0}",
    "( {0} )",
    "({0})",
    "{{ {0}; }}",
    "{{ {0}\n}}",
    "if {0}; then :; fi",
    "if :; then {0}; fi",
    "if false; then :; else {0}; fi",
    "while {0}; do break; done",
    "until {0}; do break; done",
    "while :; do {0}; break; done",
    "for i in 1; do {0}; done",
    "for i in 1\ndo {0}\ndone",
    "for ((i=0;i<1;i++)); do {0}; done",
    "for i in 1; {{ {0}; }}",
    "case a in a) {0};; esac",
    "case a in (b) ;; *) {0} ;& esac",
    "case a in\na)\n{0}\nesac",
    "f() {{ {0}; }}; f",
    "f() ( {0} ); f",
    "function f {{ {0}; }}; f",
    "f()\n{{\n{0}\n}}\nf",
    "time {0}",
    "time -p {0}",
    "time {{ {0}; }}",
    "! {0}",
    "coproc {{ {0}; }}; wait",
    "coproc {0}; wait",
    "x=$({0})",
    "x=`{0}`",
    "export x=$({0})",
    "a=(1 $({0}))",
    "a[0]=$({0})",
    "echo $({0})",
    'echo "$({0})"',
    'echo "a $({0}) b"',
    "echo `{0}`",
    'echo "`{0}`"',
    "echo ${{x:-$({0})}}",
    'echo "${{x:-$({0})}}"',
    "echo \"${{x-'$({0})'}}\"",
    'echo "${{x:-"$({0})"}}"',
    "echo \"${{x+'a'}}$({0})\"",
    "echo ${{x#$({0})}}",
    "echo $(( 1 + $({0}; echo 1) ))",
    "echo $((a[$({0})0]))",
    "(( $({0}) 1 ))",
    "[[ -n $({0}) ]]",
    "[[ a == $({0}) || b ]]",
    "[[ ! a =~ ^(a|$({0}))$ ]]",
    '[ -n "$({0})" ]',
    "cat <({0})",
    "cat < <({0})",
    ": > >({0})",
    "cat <<E\n$({0})\nE",
    'cat <<E\n"$({0})\nE\n:',
    "cat <<-E\n\t`{0}`\n\tE",
    "cat <<'E'\n'\nE\n{0}",
    "cat <<E; {0}\n'\nE",
    "echo == && {0}",
    "(echo ==; {0})",
    "echo = | {0}",
    "echo ++ || :; {0}",
    'echo \'a"b\' "c\'d" e\\"f; {0}',
    "echo a\\;b; {0}",
    "echo $'a\\'b'; {0}",
    "echo a#b; {0} # c'd",
    "# it's\n{0}",
    "true \\\n&& {0}",
    "false ||\n{0}",
    "true |& {0}",
    "{0} | cat",
    "{0} |\ncat",
    "{0} 2>&1 | tee out",
    "{0} > out 2>&1",
    "{0} &> out",
    "{0}\ntrue",
    "true\n{0}",
    "true\r\n{0}",
    "{{ {0}; }} 2>/dev/null | cat",
    "x=1 y='a b'; {0}",
    "echo {{a,b}}; {0}",
    'echo ${{#x}} $# $$ $! "$@"; {0}',
    "set -e; {0}",
    "trap {1} EXIT",
    "eval {1}",
    "bash -c {1}",
    "sh -c {1}",
    "$BASH -c {1}",
    "$SHELL -c {1}",
    "bash <<< {1}",
    "echo {1} | bash",
    "printf '%s\\n' {1} | bash",
    "bash <<'END'\n{0}\nEND",
    "cat <<'END' | bash\n{0}\nEND",
    "bash <(echo {1})",
    ". /dev/stdin <<< {1}",
    'x={1}; eval "$x"',
    'x={1}; bash -c "$x"',
    "env bash -c {1}",
    "xargs -0 bash -c <<< {1}",
    "echo {1} > s; bash s",
    'f() {{ eval "$1"; }}; f {1}',
    "trap {1} DEBUG; :",
    "rev <<< {2} | bash",
    'eval "$(rev <<< {2})"',
    "shopt -s expand_aliases; alias q={1}; eval q",
    "command eval {1}",
    "PS4='$({0})'; set -x; :",
]


def signs(random: Random) -> str:
    """Signs in a row, with a command among them."""
    line = "".join(random.choices(PIECES, k=random.randint(2, 12)))
    at = random.randint(0, len(line))
    return f"{line[:at]}{random.choice(SPELLINGS)}{line[at:]}"


def nested(random: Random, seeds: list[str]) -> str:
    """A command in constructs in constructs, now and then with a sign too many or too few."""
    line = random.choice(seeds)
    for _ in range(random.randint(1, 4)):
        line = random.choice(CONSTRUCTS).format(line, shlex.quote(line), shlex.quote(line[::-1]))
        if random.random() < 0.1:
            line = f"{line}{random.choice(['; ', ' && ', chr(10), ' | '])}{random.choice(seeds)}"
    if random.random() < 0.25:
        at = random.randint(0, len(line))
        line = f"{line[:at]}{random.choice(PIECES)}{line[at + random.randint(0, 1) :]}"
    return line


def run(line: str, work: Path, environment: dict[str, str]) -> bool:
    """Whether Bash came to an end with it. Nothing of it is left: some lines call themselves for ever."""
    try:
        process = subprocess.Popen(
            [BASH, "-c", line],
            cwd=work,
            env={**environment, "FUNCNEST": "16"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except ValueError:
        return False
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        return False
    finally:
        for deed in (signal.SIGSTOP, signal.SIGKILL):  # what is stopped starts no other
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, deed)
        process.wait()
    return True


def unseen(stage: Path, seed: int, number: int, make: Callable[[Random], str]) -> list[str]:
    """Those that run it, and that the rule does not see."""
    (stage / "bin").mkdir(parents=True)
    for name, text in {"git": 'printf "%s|" "$@" >> "$LOG"; echo >> "$LOG"', "ls": ":"}.items():
        (stage / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (stage / "bin" / name).chmod(0o755)
    for name in ("bash", "sh", "cat", "tee", "rev", "xargs", "env"):
        if path := shutil.which(name):
            (stage / "bin" / name).symlink_to(path)
    random, missed = Random(seed), list[str]()
    for at in range(number):
        line = make(random)
        work = stage / f"work{at % 50}"
        work.mkdir(exist_ok=True)
        log = stage / f"log{at}"  # of its own: what a line has left in the background must not count for the next
        environment = {"PATH": str(stage / "bin"), "HOME": str(work), "LOG": str(log), "SHELL": BASH}
        if not run(line, work, environment):
            continue
        called = log.read_text(errors="replace").split("\n") if log.exists() else []
        ran = any(arguments.startswith("push") for arguments in called)
        if ran and not RULE.matches("Bash", {"command": line}, PLACES):
            missed.append(line)
    return missed


WRITES = [
    "echo x > .wave/settings.json",
    "echo x >> .wave/settings.json",
    ": >| .wave/settings.json",
    "> .wave/settings.json",
    "echo x &> .wave/settings.json",
    "echo x | tee .wave/settings.json",
    "tee .wave/settings.json <<< x",
    "cp b.txt .wave/settings.json",
    "cp settings.json .wave",
    "mv b.txt .wave/settings.json",
    "rm .wave/settings.json",
    "rm -r .wave",
    "mv .wave gone",
    "cd .wave && echo x > settings.json",
    "(cd .wave; rm settings.json)",
    "f=.wave/settings.json; echo x > $f",
    "f=settings.json; echo x > .wave/$f",
    "for f in .wave/*; do echo x > $f; done",
    "find .wave -name settings.json -delete",
    "find . -name settings.json -exec rm {} +",
    "sed -i s/x/y/ .wave/settings.json",
    "dd if=b.txt of=.wave/settings.json",
    "ln -sf ../b.txt .wave/settings.json",
    "cat b.txt > .wa've'/settings.json",
    "cat > .wave/settings.json <<E\nx\nE",
    "{ echo x; } > .wave/settings.json",
    "while read l; do echo $l; done < b.txt > .wave/settings.json",
    "exec 3> .wave/settings.json",
    "echo .wave/settings.json | xargs rm",
    "rm .wave/settings{.json,}",
]


def unseen_writes(stage: Path, seed: int, number: int) -> list[str]:
    """Lines that change a protected file, and of which that is not seen."""
    tools = stage / "bin"
    tools.mkdir(parents=True)
    for name in ["bash", "sh", "cat", "tee", "rev", "xargs", "env", "cp", "mv", "rm", "find", "sed", "dd", "ln"]:
        if path := shutil.which(name):
            (tools / name).symlink_to(path)
    random, missed = Random(seed), list[str]()
    for at in range(number):
        line = nested(random, WRITES)
        if "rev <<<" in line:
            continue  # a path that the line puts together has no name in it: docs/security.md says so
        work = stage / f"work{at}"
        file = work / ".wave" / "settings.json"
        file.parent.mkdir(parents=True)
        file.write_text("xyz\n")
        (work / "b.txt").write_text("other\n")
        (work / "settings.json").write_text("other\n")
        environment = {"PATH": str(tools), "HOME": str(work), "SHELL": BASH, "PWD": str(work)}
        protected = ProtectedPaths(frozenset({str(file)}), ())
        seen = any(protected.touched(write) for write in read_writes(line, environment, str(work)))
        if not seen and run(line, work, environment):
            changed = file.is_symlink() or not file.exists() or file.read_text() != "xyz\n"
            missed += [line] if changed else []
        shutil.rmtree(work, ignore_errors=True)
    return missed


def test_a_rule_sees_whatever_bash_runs_of_signs_in_a_row(tmp_path: Path) -> None:
    assert unseen(tmp_path, 7, 900, signs) == []


def test_a_rule_sees_whatever_bash_runs_in_constructs(tmp_path: Path) -> None:
    assert unseen(tmp_path, 7, 500, lambda random: nested(random, SEEDS)) == []


def test_a_change_of_a_protected_file_is_seen_in_constructs(tmp_path: Path) -> None:
    assert unseen_writes(tmp_path, 7, 500) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_every_seed_runs_git_push(tmp_path: Path, seed: str) -> None:
    assert unseen(tmp_path / "seen", 1, 1, lambda _: f"{seed}\nwait") == []
    log = tmp_path / "seen" / "log0"
    assert log.exists() or ">(sh)" in seed or ("rev" in seed and shutil.which("rev") is None)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(4))
def test_a_rule_sees_whatever_bash_runs_in_many_lines(tmp_path: Path, seed: int) -> None:
    assert unseen(tmp_path / "signs", seed, 10_000, signs) == []
    assert unseen(tmp_path / "nested", seed, 10_000, lambda random: nested(random, SEEDS)) == []


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(2))
def test_a_change_of_a_protected_file_is_seen_in_many_lines(tmp_path: Path, seed: int) -> None:
    assert unseen_writes(tmp_path, seed, 10_000) == []
