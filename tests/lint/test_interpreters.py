"""What keeps a hook from starting is found without starting it."""

from pathlib import Path

import pytest

from tests.lint.workbench import Workbench


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


@pytest.mark.parametrize(
    ("name", "first", "codes"),
    [
        ("hook.sh", "#!/usr/bin/env bash", []),
        ("hook.sh", "#!/bin/missing", ["W115"]),
        ("hook.sh", "#!/usr/bin/env missing-bash", ["W115"]),
        ("hook.sh", "#!/usr/bin/env -S A=1 missing-bash -e", ["W115"]),
        ("hook.sh", "#!/usr/bin/env -S 'bash", []),
        ("hook.sh", "#!", ["W115"]),
        ("hook.sh", "true", []),
        ("hook.py", "import sys", ["W115"]),
        ("hook.js", "process.exit(0)", ["W115"]),
        ("hook", "import sys", []),
    ],
)
def test_a_script_names_an_interpreter_that_is_there(bench: Workbench, name: str, first: str, codes: list[str]) -> None:
    bench.write(name, f"{first}\n")
    bench.hook(f"./{name}")
    assert [code for code in bench.codes() if code == "W115"] == codes


@pytest.mark.parametrize(
    ("command", "codes"),
    [
        ("python3 hook.py", []),
        ("missing-python hook.py", ["W115"]),
        ("/opt/missing/python3 hook.py", []),
        ("true", []),
        ("echo hello", []),
        ("cd /tmp", []),
        ("missing --check", ["W115"]),
        ("FOO=1 exec missing --check", ["W115"]),
        ("missing --check || true", []),
        ("missing 'not closed", []),
        ({"command": "missing", "args": ["--check"]}, ["W115"]),
        ({"command": "cat", "args": ["-"]}, []),
        ("./hook.bin", []),
    ],
)
def test_a_command_starts_a_program_that_is_there(bench: Workbench, command: object, codes: list[str]) -> None:
    bench.write("hook.py", "import sys\nsys.stdin.read()\n")
    bench.write("hook.bin", "\x7fELF\0")
    bench.hook(command)
    assert [code for code in bench.codes() if code == "W115"] == codes


def test_a_script_that_cannot_be_read_is_not_judged(bench: Workbench) -> None:
    (bench.project / "hook.sh").mkdir()
    bench.hook("./hook.sh")
    assert "W115" not in bench.codes()


@pytest.mark.parametrize(
    ("name", "text", "command", "codes"),
    [
        ("hook.sh", "#!/bin/bash\r\ntrue\r\n", "./hook.sh", ["W116"]),
        ("hook.sh", "#!/bin/bash\ntrue\r\n", "bash hook.sh", ["W116"]),
        ("hook.sh", "#!/bin/bash\ntrue\n", "bash hook.sh", []),
        ("hook.py", "#!/usr/bin/env python3\r\npass\r\n", "./hook.py", ["W116"]),
        ("hook.py", "pass\r\n", "python3 hook.py", []),
    ],
)
def test_line_endings_of_windows_are_found_where_they_break_a_script(
    bench: Workbench, name: str, text: str, command: str, codes: list[str]
) -> None:
    bench.write(name, text)
    (bench.project / name).write_bytes(text.encode())
    bench.hook(command)
    assert [code for code in bench.codes() if code == "W116"] == codes
