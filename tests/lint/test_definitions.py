"""Hooks in definitions of subagents are checked like those in settings."""

from pathlib import Path

import pytest

from tests.lint.workbench import Workbench
from wave_agent.lint.findings import TextEdit
from wave_agent.settings import extension_files

DEFINITION = """---
name: reviewer
description: Reviews changes
hooks:
  PreToolUse:
    - matcher: Bash
      hooks:
        - command: {command}
          timeout: {timeout}
---
You review.
"""


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    made = Workbench(tmp_path)
    made.write("guard.sh", "#!/bin/sh\ncat >/dev/null\n")
    return made


def define(bench: Workbench, command: str = "./guard.sh", timeout: str = "5", base: str = ".wave") -> str:
    return str(bench.write(f"{base}/agents/reviewer.md", DEFINITION.format(command=command, timeout=timeout)))


@pytest.mark.parametrize(
    ("command", "timeout", "base", "code", "line"),
    [
        ("$WAVE_PROJECT_DIR/guard.sh", "5", ".wave", "W101", 8),
        ("./missing.sh", "5", ".wave", "W110", 8),
        ("./guard.sh", "5", ".claude", "W102", 8),
        ("./guard.sh", "60000", ".wave", "W103", 9),
        ("[]", "5", ".wave", "W107", 8),
    ],
)
def test_a_mistake_is_found_with_its_line(
    bench: Workbench, command: str, timeout: str, base: str, code: str, line: int
) -> None:
    file = define(bench, command, timeout, base)
    (found,) = bench.check().findings
    assert (found.code, found.file, found.line) == (code, file, line)
    assert not isinstance(found.repair, TextEdit)  # that is for JSON


def test_a_sound_definition_and_one_without_hooks_have_no_findings(bench: Workbench) -> None:
    file = define(bench)
    bench.write(".wave/agents/plain.md", "---\nname: plain\ndescription: d\n---\nWork.\n")
    report = bench.check()
    assert report.findings == ()
    assert report.files == (file, str(bench.project / "guard.sh"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"---\nname: [\n---\nx\n", "not a valid front matter"),
        (b"---\nname: \xff\n---\nx\n", "is not UTF-8"),
        (b"---\n" + b"a" * (300 << 10), "reviewer.md: it "),
    ],
)
def test_a_definition_that_cannot_be_read_is_a_finding(bench: Workbench, content: bytes, reason: str) -> None:
    file = bench.write(".wave/agents/reviewer.md", "")
    file.write_bytes(content)
    (found,) = bench.check().findings
    assert found.code == "W100"
    assert reason in found.reason


def test_the_users_own_definitions_are_checked(bench: Workbench) -> None:
    file = bench.home / "agents" / "reviewer.md"
    file.parent.mkdir(parents=True)
    file.write_text(DEFINITION.format(command="/nowhere/guard.sh", timeout=5))
    assert [(one.code, one.file) for one in bench.check().findings] == [("W110", str(file))]


def test_a_definition_can_be_named(bench: Workbench) -> None:
    define(bench, "./missing.sh")
    define(bench, "./guard.sh", base=".claude")
    assert bench.codes(".wave/agents/reviewer.md") == ["W110"]
    assert bench.codes(".claude/agents/reviewer.md") == ["W102"]


def test_a_definition_among_too_many_files_is_a_finding(bench: Workbench) -> None:
    define(bench)
    for number in range(extension_files.MOST):
        bench.write(f".wave/agents/a{number}.md", "")
    (found,) = bench.check(".wave/agents/reviewer.md").findings
    assert (found.code, "too many files" in found.reason) == ("W100", True)
