"""A command that is started without a shell is started as Bash would start it: each case is done by both."""

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from wave_agent.hooks.execution import HookExecutionResult, HookJob
from wave_agent.hooks.runners.command import Cancellation, ProcessRunner
from wave_agent.hooks.runners.without_shell import without_shell

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there is a shell done without")

BASH = "/bin/bash"
PATH = "/usr/local/bin:/usr/bin:/bin"
HERE = {"PATH": PATH, "SHLVL": "1"}
ENVIRONMENT = "/bin/cat /proc/self/environ"
"""A program that shows its environment, and costs next to nothing."""

slow_start = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def without(command: str, directory: Path, environment: Mapping[str, str], *arguments: str) -> HookExecutionResult:
    """What our runner makes of it, in a thread of ours."""
    job = HookJob(command=command, arguments=arguments, env=environment, cwd=str(directory), timeout=30)
    return ProcessRunner(shell=BASH).execute(job, Cancellation())


def with_bash(command: str, directory: Path, environment: Mapping[str, str], *arguments: str) -> HookExecutionResult:
    """What Bash makes of it."""
    line = (f'{command} "$@"', command, *arguments) if arguments else (command,)
    done = subprocess.run(
        [BASH, "-c", *line], cwd=directory, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    out, err = (text.decode(errors="replace").strip() for text in (done.stdout, done.stderr))
    if done.returncode < 0:
        return HookExecutionResult(signal=-done.returncode, stdout=out, stderr=err)
    return HookExecutionResult(exit_code=done.returncode, stdout=out, stderr=err)


def seen(result: HookExecutionResult) -> tuple[object, ...]:
    """What can be told of a run, the order of the environment aside."""
    return (result.exit_code, result.signal, result.stderr, sorted(part.strip() for part in result.stdout.split("\0")))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    script = tmp_path / "real" / "words"
    script.write_text('#!/bin/sh\nprintf \'<%s>\\0\' "$0" "$@"\n')
    script.chmod(0o755)
    return tmp_path / "real"


def programs_in(directory: Path, **texts: str) -> None:
    for name, text in texts.items():
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)


# What is started without a shell


@pytest.mark.parametrize(
    "command",
    [
        "./words",
        "./words --strict a=b c:d,e @f %g +h",
        "  ./words\ta  ",
        "./words 'a b' \"c  d\" '' \"\" e'f g'\"h i\"j",
        "./words '$HOME `x` \\ \" !' \"it's\" 'ä€'",
        './words "$NAME" "${NAME}x" "a $NAME b" "$BLANKS" "$EMPTY"',
        "./words $NAME ${NAME}/x a$NAME",
        '"$PLACE"/words a',
        "$PLACE/words a",
        "sh -c 'echo $0 $1' a b",
        "env -0",
        "'env' -0",
        "python3 -c 'print(1)'",
    ],
)
def test_plain_words(command: str, place: Path) -> None:
    environment = {**HERE, "NAME": "a/b", "BLANKS": " a * b ", "EMPTY": "", "PLACE": str(place)}
    assert without_shell(command, environment, str(place)) is not None
    assert seen(without(command, place, environment)) == seen(with_bash(command, place, environment))


# What only a shell can do, or may do otherwise than we know


@pytest.mark.parametrize(
    "command",
    [
        "./words a; ./words b",
        "./words a && ./words b",
        "./words a | cat",
        "./words a > /dev/stdout",
        "./words &",
        "./words *",
        "./words w?rds [w]ords",
        "./words {a,b}",
        "./words ~",
        "./words $(echo a)",
        "./words `echo a`",
        './words "$(echo a)"',
        './words "a\\"b"',
        "./words a\\ b",
        "./words $'a\\n'",
        './words $"a"',
        "./words # more",
        "./words a\n./words b",
        "./words $BLANKS",
        "./words $EMPTY",
        "./words $STAR",
        "./words $UNSET",
        './words "$UNSET"',
        "./words $HOSTNAME-",
        './words "$PWD" "$SHLVL"',
        "./words ${NAME:-x} ${#NAME}",
        "./words $? $# $@ $1",
        '"./words $NAME" a',
        "NAME=x ./words",
        "./a=b",
        "%1",
        "%/words a",
        "-x",
        "+x",
        " -x",
        "''",
        "echo a",
        "'echo' a",
        "true",
        "test -e words",
        "! ./words",
        "if",
        "exit 3",
        "kill -9 $$",
        "words",
        "no-such-program",
        "./no-such-program",
        "./not-a-program",
        "./no-first-line a",
        "./no-interpreter",
        ".",
        "/",
        "/tmp",
        "",
        " ",
    ],
)
def test_what_needs_a_shell(command: str, place: Path) -> None:
    (place / "%").mkdir()
    programs_in(place / "%", words="#!/bin/sh\necho ran")
    programs_in(place, **{"no-first-line": 'echo "$0 $1 $BASH_VERSION"', "no-interpreter": "#!/no/such\n"})
    (place / "not-a-program").write_text("#!/bin/sh\n")
    programs_in(place / "%", **{"-x": "#!/bin/sh\necho ran", "+x": "#!/bin/sh\necho ran"})
    environment = {**HERE, "NAME": "a/b", "BLANKS": "a b", "EMPTY": "", "STAR": "*", "PATH": f"{PATH}:{place}/%"}
    assert seen(without(command, place, environment)) == seen(with_bash(command, place, environment))


@pytest.mark.parametrize("path", ["", "bin:/usr/bin", "/usr/bin:", ":/usr/bin", ".", None])
def test_a_search_from_the_directory_is_left_to_bash(path: str | None, place: Path) -> None:
    (place / "bin").mkdir()
    programs_in(place, show="#!/bin/sh\necho here $_")
    programs_in(place / "bin", show="#!/bin/sh\necho in bin $_")
    environment = {} if path is None else {"PATH": path}
    assert without_shell("show", environment, str(place)) is None
    assert seen(without("show", place, environment)) == seen(with_bash("show", place, environment))


def test_the_first_in_the_path_that_can_be_run(place: Path) -> None:
    for name, mode in (("a", 0o644), ("b", 0o755), ("c", 0o755)):
        (place / name).mkdir()
        programs_in(place / name, show=f"#!/bin/sh\necho {name} $0; tr '\\0' '\\n' < /proc/$$/environ | grep ^_=")
        (place / name / "show").chmod(mode)
    (place / "d" / "show").mkdir(parents=True)
    environment = {"PATH": ":".join([*(f"{place}/{name}" for name in "dabc"), "/usr/bin", "/bin/"])}
    assert without_shell("show", environment, str(place)) is not None
    assert seen(without("show", place, environment)) == seen(with_bash("show", place, environment))


def test_the_builtins_and_words_of_this_bash_are_known() -> None:
    listed = subprocess.run([BASH, "-c", "compgen -b; compgen -k"], capture_output=True, text=True, check=True).stdout
    assert [word for word in listed.split() if without_shell(word, HERE, "/") is not None] == []


# What it gets


def test_arguments_come_after_it(place: Path) -> None:
    given_words = ("a b", "", "*", "$HOME", "\n", "-n")
    assert seen(without("./words", place, HERE, *given_words)) == seen(with_bash("./words", place, HERE, *given_words))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"SHLVL": "7"},
        {"SHLVL": "07"},
        {"SHLVL": "0"},
        {"SHLVL": "998"},
        {"SHLVL": "999"},
        {"SHLVL": "-3"},
        {"SHLVL": " 4 "},
        {"SHLVL": "x"},
        {"SHLVL": ""},
        {"OLDPWD": "/tmp"},
        {"OLDPWD": "/no/such"},
        {"OLDPWD": "."},
        {"OLDPWD": "bin"},
        {"SSH_CLIENT": "::1 1 1", "SHLVL": "0"},
        {"SSH2_CLIENT": "::1 1 1", "SHLVL": "00"},
        {"SSH_CLIENT": "::1 1 1", "SHLVL": "1"},
        {"OLDPWD": ""},
        {"PWD": "/tmp"},
        {"PWD": "relative"},
        {"PWD": ""},
        {"PWD": "/no/such"},
        {"_": "before"},
        {"PS1": "$ ", "PS2": "> ", "PS3": "? ", "PS4": "+ "},
        {"PS1": "$ ", "PS2": "> "},
        {"LC_ALL": "C"},
        {"LC_ALL": "no-such-place"},
        {"LC_CTYPE": "no-such-place", "LANG": "no-such-place", "LC_MESSAGES": "x", "LC_NUMERIC": "x", "LC_TIME": "x"},
        {"BASH_ENV": "./noise"},
        {"ENV": "./noise"},
        {"SHELLOPTS": "xtrace"},
        {"BASHOPTS": "expand_aliases"},
        {"BASH_FUNC_cat%%": "() { echo mine; }"},
        {"POSIXLY_CORRECT": "y"},
        {"IFS": "/"},
        {"CDPATH": "/", "GLOBIGNORE": "*", "HISTFILE": "/tmp/x", "TMOUT": "1", "EXECIGNORE": "*cat", "MAIL": "/x"},
        {"with-dash": "1", "with.dot": "2", "1digit": "3", "ümlaut": "4"},
        {"HOME": "/somewhere", "TERM": "xterm", "SHELL": "/bin/zsh", "HOSTNAME": "h", "USER": "u"},
        {"LINES": "3", "COLUMNS": "4"},
    ],
    ids=str,
)
@pytest.mark.parametrize("command", [ENVIRONMENT, "cat /proc/self/environ"])
def test_the_environment(changes: dict[str, str], command: str, place: Path) -> None:
    (place / "noise").write_text("echo noise\n")
    (place / ".bashrc").write_text("export TEAM_POLICY=strict\n")
    (place / "bin").mkdir()
    environment = {**HERE, "HOME": str(place), **changes}
    assert seen(without(command, place, environment)) == seen(with_bash(command, place, environment))


def test_every_variable_that_this_bash_knows(place: Path) -> None:
    listed = subprocess.run([BASH, "-c", "compgen -v"], capture_output=True, text=True, check=True).stdout
    wrong: list[str] = []
    for name in {*listed.split(), "BASH_COMPAT", "HISTCMD", "RANDOM", "LINENO", "FUNCNAME", "READLINE_LINE", "COPROC"}:
        environment = {**HERE, name: PATH if name == "PATH" else "5"}
        if without_shell(ENVIRONMENT, environment, str(place)) is None:
            continue
        if seen(without(ENVIRONMENT, place, environment)) != seen(with_bash(ENVIRONMENT, place, environment)):
            wrong.append(name)
    assert wrong == []


@pytest.mark.parametrize("given_name", [None, "link", "real", "real/../link", "real/.", "elsewhere"])
@pytest.mark.parametrize("directory", ["link", "real", "real/../link"])
def test_the_name_of_the_directory(given_name: str | None, directory: str, place: Path) -> None:
    environment = HERE if given_name is None else {**HERE, "PWD": f"{place.parent}/{given_name}"}
    there = Path(f"{place.parent}/{directory}")
    assert seen(without(ENVIRONMENT, there, environment)) == seen(with_bash(ENVIRONMENT, there, environment))


def test_nothing_else_differs_either(place: Path) -> None:
    """Signals, the mask of files, limits and descriptors. Not SigQ: it counts those of all the user's processes."""
    show = "grep -h '^Sig[^Q]' /proc/self/status; umask; ulimit -a; ls /proc/self/fd | wc -l"
    programs_in(place, show=f"#!/bin/sh\n{show}\n")
    assert seen(without("./show", place, HERE)) == seen(without("./show;", place, HERE))


def test_a_program_hears_of_its_children_whatever_the_agent_does(place: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    try:
        show = "grep ^SigBlk /proc/self/status"
        assert seen(without(show, place, HERE)) == seen(with_bash(show, place, HERE))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.parametrize("death", ["exit 0", "exit 2", "exit 127", "kill -9 $$", "kill -TERM $$", "kill -PIPE $$"])
def test_how_it_ends(death: str, place: Path) -> None:
    programs_in(place, dies=f"#!/bin/sh\necho out; echo err >&2; {death}\n")
    assert seen(without("./dies", place, HERE)) == seen(with_bash("./dies", place, HERE))


# Anything

pieces = st.one_of(
    st.sampled_from(
        [
            "./words",
            "cat",
            "a",
            "b c",
            "'",
            '"',
            "$NAME",
            "${NAME}",
            '"$NAME"',
            "$",
            "{",
            "}",
            "=",
            "%",
            "-",
            "\\",
            " ",
            "\t",
        ]
    ),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=3),
)
harmless = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


@slow_start
@given(tail=st.lists(pieces, max_size=6).map("".join), value=harmless)
@example(tail='"$NAME"', value="\x01\x7f\\")
@example(tail="$NAME", value="a\\b")
def test_any_line(tail: str, value: str, place: Path) -> None:
    """Only those that are started without a shell: nobody knows what the others would do."""
    command, environment = f"./words {tail}", {**HERE, "NAME": value}
    if without_shell(command, environment, str(place)) is not None:
        assert seen(without(command, place, environment)) == seen(with_bash(command, place, environment))


@slow_start
@given(
    st.dictionaries(
        st.text(st.characters(exclude_characters="\0=", exclude_categories=["Cs"]), min_size=1, max_size=5),
        harmless,
        max_size=4,
    )
)
def test_any_environment(place: Path, changes: dict[str, str]) -> None:
    environment = {**HERE, **changes}
    assert seen(without(ENVIRONMENT, place, environment)) == seen(with_bash(ENVIRONMENT, place, environment))


def test_a_long_line_costs_no_time() -> None:
    environment = {**HERE, "a": "b"}
    assert without_shell("./x " + "$a" * 50_000 + ";", environment, "/") is None
    assert without_shell("./x '" + "a" * 50_000, environment, "/") is None
    assert without_shell('./x "' + "${a}" * 50_000, environment, "/") is None


def test_it_is_not_done_for_another_shell(place: Path) -> None:
    job = HookJob(command="/bin/cat /proc/self/environ", env={}, cwd=str(place), timeout=30)
    assert "_=" not in ProcessRunner(shell="/bin/sh").execute(job, Cancellation()).stdout
