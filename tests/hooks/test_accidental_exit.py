"""An exit 2 that nobody meant, made by real programs."""

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.hooks.accidental_exit import breakage
from wave_agent.hooks.events import Decision, HookEvent
from wave_agent.hooks.execution import HookJob
from wave_agent.hooks.runners.command import ProcessRunner
from wave_agent.hooks.semantics import read
from wave_agent.hooks.verdicts import Block, TellUser, Verdict

PYTHON = shlex.quote(sys.executable)

FILES = {
    "array.sh": "words=(a b)\necho ${words[0]}\n",
    "broken.sh": "if true; then\n  echo x\nfi fi\n",
    "open.sh": 'echo "never closed\n',
    "pipefail.sh": "set -o pipefail\n",
    "test.sh": "[ 1 -eq one ]\n",
    "arguments.py": "import argparse\nargparse.ArgumentParser().parse_args()\n",
}
ACCIDENTS = {
    "python without its script": (f"{PYTHON} gone.py", ["python"]),
    "dash without its script": ("dash gone.sh", ["dash"]),
    "dash with an array": ("dash array.sh", ["dash"]),
    "dash with pipefail": ("dash pipefail.sh", ["old dash"]),
    "bash with a syntax error": ("bash broken.sh", []),
    "bash with an open quote": ("bash open.sh", []),
    "bash comparing words": ("bash test.sh", []),
    "an inline syntax error": ("if true; then echo x; fi fi", []),
    "grep with a bad pattern": ("echo x | grep '['", []),
    "grep without its file": ("grep x gone.txt", []),
    "argparse": (f"{PYTHON} arguments.py --no-such-option", []),
    "ls": ("LC_ALL=C ls gone-file || exit 2", []),
    "jq without its file": ("jq . gone.json", ["jq"]),
    "perl without its script": ("perl gone.pl", ["perl"]),
}


async def run(command: str, directory: Path) -> tuple[int | None, Verdict]:
    job = HookJob(command=command, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}, cwd=str(directory), timeout=20)
    result = await ProcessRunner().run(job)
    return result.exit_code, read(HookEvent.PRE_TOOL_USE, result, name="guard")


@pytest.mark.parametrize("accident", ACCIDENTS)
async def test_the_block_stands_and_the_user_is_told_that_the_hook_looks_broken(accident: str, tmp_path: Path) -> None:
    command, needs = ACCIDENTS[accident]
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    if any(shutil.which(program) is None for program in needs if program in ("dash", "jq", "perl")):
        pytest.skip(f"{needs[0]} is not installed")
    code, verdict = await run(command, tmp_path)
    if code != 2:
        pytest.skip(f"this system's program exits with {code}")
    assert verdict.decision is Decision.BLOCK
    (told,) = [effect.text for effect in verdict.effects if isinstance(effect, TellUser)]
    assert told.startswith("hook guard blocked, but the hook itself looks broken: ")


async def test_the_usual_accidents_exit_with_2_here(tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    usual = ("python without its script", "bash with a syntax error", "grep with a bad pattern", "argparse")
    codes = {name: (await run(ACCIDENTS[name][0], tmp_path))[0] for name in usual}
    assert codes == dict.fromkeys(usual, 2)


@rows(
    "reason",
    [
        "rm -rf is not allowed here",
        "BLOCKED: git push to main",
        "git: force pushes are not allowed",
        "src/app.py:3: error: incompatible types",
        "No such file may be written",
        "Do not use grep: there is a Grep tool",
        "The syntax error in a.py has to go first",
        "3 problems:\n  line 1: too long\n  line 2: too long",
        "",
    ],
)
def test_a_reason_that_somebody_wrote_is_no_accident(reason: str) -> None:
    assert breakage(reason) is None


async def test_an_answer_in_json_is_meant(tmp_path: Path) -> None:
    answer = json.dumps({"reason": "no"})
    _, verdict = await run(f"echo '{answer}'; echo 'usage: x' >&2; exit 2", tmp_path)
    assert verdict.effects == (Block("no"),)


async def test_malformed_json_beside_an_accident_is_told_too(tmp_path: Path) -> None:
    _, verdict = await run("echo '{'; echo 'usage: x [y]' >&2; exit 2", tmp_path)
    assert len([effect for effect in verdict.effects if isinstance(effect, TellUser)]) == 2


async def test_a_hook_that_goes_on_after_an_error_and_gives_a_reason_is_not_suspected(tmp_path: Path) -> None:
    said = "one\\ntwo\\nthree\\nNot allowed."
    _, verdict = await run(f"echo start >&2; grep x gone.txt; printf '{said}' >&2; exit 2", tmp_path)
    assert verdict.effects == tuple(effect for effect in verdict.effects if isinstance(effect, Block))


@given(st.text())
def test_any_text_can_be_looked_at(text: str) -> None:
    found = breakage(text)
    assert found is None or ": " in found


@pytest.mark.parametrize(
    "said",
    [
        "error: Failed to spawn: `check.py`\n  Caused by: No such file or directory (os error 2)",
        "error: unexpected argument '--nope' found\n\nUsage: uv run [OPTIONS] [COMMAND]\n\nFor more, try '--help'.",
        "error: No interpreter found for Python 3.99 in search path",
        "error: Project directory `/gone` does not exist",
        "error: unrecognized subcommand 'rnu'",
        "warning: Failed to parse `pyproject.toml`:\n  key\n\nerror: Failed to parse: pyproject.toml\n  cause: TOML",
    ],
)
def test_what_uv_prints_with_its_own_exit_2_is_recognised(said: str) -> None:
    assert breakage(said) is not None


def test_an_error_that_a_hook_words_itself_is_no_accident() -> None:
    assert breakage("error: this file is generated, edit the template") is None
