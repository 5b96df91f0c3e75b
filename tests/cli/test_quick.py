"""Lines that run without the parser: they must mean what the parser says they mean."""

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wave_agent.cli.main import wave
from wave_agent.cli.quick import DEFAULTS, HELP_FILE, WIDE, flags_in, is_wide

WORDS = [
    *("-p", "--print", "-c", "--continue", "-r", "--resume", "--trust", "--trust-ref", "--sandbox", "--strict-hooks"),
    *("--model", "--base-url", "--cwd", "--settings", "--plugin-dir", "--allowed-tools", "--disallowed-tools"),
    *("--max-turns", "--output-format", "--permission-mode", "--append-system-prompt", "--no-project-hooks"),
    *(
        "--no-hooks",
        "--debug",
        "hooks",
        "json",
        "plan",
        "3",
        "0",
        "-1",
        "٣",
        "",
        "-",
        "--",
        "Bash(ls:*)",
        "a b",
        "-pHi",
    ),
    *("--model=x", "demo", "--unknown", "=", "--trus", "+5", " 5 ", "-pHi"),
]


def parsed(words: list[str]) -> dict[str, Any]:
    """What the parser makes of a line with one prompt after `-p`."""
    with wave.make_context("wave", list(words)) as ctx:
        # click 8 keeps a command apart from its words, in a field that click 9 does not have
        assert not [*getattr(ctx, "_protected_args", ()), *ctx.args], words
        return dict(ctx.params)


def test_a_plain_line_has_every_flag_that_the_parser_has() -> None:
    assert parsed(["-p", "Hi"]) == {**DEFAULTS, "prompt": "Hi"}


@given(st.lists(st.sampled_from(WORDS), max_size=8))
@example(["-p", "Hi", "--max-turns", "3", "--allowed-tools", "a", "--allowed-tools", "b"])
@example(["--trust", "-c", "-p", "Hi", "--output-format", "json", "--permission-mode", "plan"])
def test_the_parser_agrees_with_every_line_that_is_plain(words: list[str]) -> None:
    found = flags_in(words)
    if found is not None:
        assert found == parsed(words)


@pytest.mark.parametrize(
    "words",
    [
        *([], ["-p"], ["-p", ""], ["-p", "-"], ["-p", "a", "b"], ["-p", "a", "-p", "b"], ["demo"], ["-p", "a", "-cr"]),
        *(["-p", "a", "-c", "-r", "b"], ["-p", "a", "--max-turns", "0"], ["-p", "a", "--max-turns", "many"]),
        *(["-p", "a", "--output-format", "xml"], ["-p", "a", "--model"], ["--model", "--trust", "-p", "a"]),
    ],
    ids=" ".join,
)
def test_any_other_line_is_left_to_the_parser(words: list[str]) -> None:
    assert flags_in(words) is None or words == ["-p", "-"]


def test_a_dash_reads_the_prompt_from_stdin_either_way() -> None:
    assert flags_in(["-p", "-"]) is None  # it starts with a dash: the parser's business


def test_the_usage_in_the_file_is_what_the_parser_prints() -> None:
    with wave.make_context("wave", [], resilient_parsing=True, terminal_width=WIDE - 2) as ctx:
        assert Path(HELP_FILE).read_text() == wave.get_help(ctx) + "\n", "run make docs"
    assert Path(HELP_FILE).read_text().isascii()


@pytest.mark.parametrize(("columns", "wide"), [("80", True), ("200", True), ("79", False), ("-1", False), ("x", False)])
def test_the_file_is_for_wide_terminals(columns: str, wide: bool) -> None:
    assert is_wide({"COLUMNS": columns}) is wide


def test_without_a_terminal_the_usage_is_wide() -> None:
    code = "from wave_agent.cli.quick import is_wide; print(is_wide({}), is_wide({'COLUMNS': '0'}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "True True\n"


def test_in_a_narrow_terminal_the_parser_wraps_the_usage() -> None:
    ours, theirs = pty.openpty()
    # Given, since a test runner that loads readline has `COLUMNS` where only its children see it.
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    subprocess.run(["stty", "cols", "60"], stdin=theirs, timeout=60, check=True)
    command = [sys.executable, "-m", "wave_agent", "--help"]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.STDOUT, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the terminal is closed
            break
        shown += part
        if not part:
            break
    os.close(ours)
    assert process.wait(60) == 0
    assert max(map(len, shown.decode().splitlines())) <= 60


def test_the_usage_of_a_mistake_is_that_of_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "wave_agent", "-p", "Hi", "--allowed-tools", "Bash("]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    usage = click.Context(wave, info_name="wave", **wave.context_settings).get_usage()
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"{usage}\n")
    assert '"Bash(" is not a rule' in ran.stderr


@pytest.mark.parametrize("flags", [["-m"], ["-P", "-m"]])
def test_python_m_does_not_import_modules_of_the_current_directory(tmp_path: Path, flags: list[str]) -> None:
    """A freshly cloned project controls them."""
    for name in ("shlex", "asyncio", "json", "msgspec", "click"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').close()\n")
    run = subprocess.run(
        [sys.executable, *flags, "wave_agent", "hooks", "schema"],
        cwd=tmp_path,
        env={**os.environ, "WAVE_HOME": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert not (tmp_path / "ran").exists()
