"""Every example is run as its reader would run it, and prints what its last comment says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))
MOST_LINES = 50

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)


def promised_output(example: Path) -> str:
    """The comment after `# Output:`, which ends the file."""
    _, mark, comment = example.read_text().rpartition("\n# Output:\n")
    assert mark, f"{example.name} does not end with `# Output:` and what it prints"
    lines = comment.splitlines()
    assert all(line.startswith("#") for line in lines), f"{example.name} goes on after its output"
    return "".join(line.removeprefix("#").removeprefix(" ") + "\n" for line in lines)


def without_trailing_space(text: str) -> str:
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The user's own, without a model and with a home that nobody minds."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WAVE_", "OPENAI_"))}
    home = tmp_path / "home"
    home.mkdir()
    return {**kept, "HOME": str(home), "WAVE_HOME": str(tmp_path / "wave")}


@each_example
def test_prints_what_it_says(example: Path, environment: dict[str, str], tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    ran = subprocess.run(
        [sys.executable, "-W", "error", example],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert without_trailing_space(ran.stdout) == promised_output(example)
    assert list((tmp_path / "wave" / "projects").rglob("*.jsonl")), "no transcript in WAVE_HOME: where did it go?"
    assert list((tmp_path / "home").iterdir()) == []
    assert list(project.iterdir()) == []


@each_example
def test_is_short_and_says_how_to_use_a_real_model(example: Path) -> None:
    text = example.read_text()
    assert len(text.splitlines()) <= MOST_LINES
    for name in ("model_client", "WAVE_BASE_URL", "WAVE_MODEL", "WAVE_API_KEY"):
        assert name in text


def test_the_list_of_examples_is_complete() -> None:
    assert len(EXAMPLES) >= 7
    listed = (EXAMPLES[0].parent / "README.md").read_text()
    assert [example.name for example in EXAMPLES if f"]({example.name})" not in listed] == []
