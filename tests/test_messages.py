"""What the program says when something is wrong can be looked up in the documentation."""

import ast
import os
import re
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "wave_agent"
PAGES = sorted((ROOT / "docs" / "messages").glob("*.md"))
FROM_CLICK = {"UsageError", "BadParameter", "ClickException"}
WORDS = 3
"""A text with fewer words is a name, or a part of a sentence that begins elsewhere."""


@cache
def listed() -> list[str]:
    """The messages on the pages, as they are written there."""
    return [text for page in PAGES for text in re.findall(r"^- `+ ?(.*?) ?`+$", page.read_text(), re.MULTILINE)]


# ------------------------------------------------------------------------------------------------- what the source says


def errors_for_users(trees: list[ast.Module]) -> set[str]:
    """`WaveError`, all classes derived from it, and the errors of the command line."""
    parents = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found = {"WaveError"}
    while more := {name for name, bases in parents.items() if bases & found} - found:
        found |= more
    return found | FROM_CLICK


def test_every_error_for_users_that_the_source_raises_is_on_a_page():
    trees = {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
    errors = errors_for_users(list(trees.values()))
    pages = "\n".join(listed())
    checked, missing = 0, []
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
                continue
            if ast.unparse(node.exc.func).rpartition(".")[2] not in errors:
                continue
            filled_in = {
                id(part) for one in ast.walk(node.exc) if isinstance(one, ast.FormattedValue) for part in ast.walk(one)
            }
            texts = [
                one.value for one in ast.walk(node.exc) if isinstance(one, ast.Constant) and id(one) not in filled_in
            ]
            sentences = [text for text in texts if isinstance(text, str) and len(text.split()) >= WORDS]
            if sentences:
                longest = " ".join(max(sentences, key=len).split())
                checked += 1
                if longest not in pages:
                    missing.append(f"{path.relative_to(ROOT)}:{node.lineno}: {longest}")
    assert missing == []
    assert checked > 250  # the walk finds them


# ------------------------------------------------------------------------------------------------ what the program says


def wave(place: Path, *arguments: str, **variables: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WAVE_", "OPENAI_"))}
    own = {"HOME": str(place), "WAVE_HOME": str(place / "home"), "NO_COLOR": "1"}
    program = Path(sysconfig.get_path("scripts")) / "wave"
    ran = subprocess.run(
        [program, *arguments],
        cwd=place,
        env={**kept, **own, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode in (1, 2), (arguments, ran.stdout, ran.stderr)
    return ran.stderr


def is_listed(said: str) -> bool:
    """Whether a message on the pages, with its gaps filled in, is a part of what was said."""
    words = " ".join(said.split())
    return any(
        re.search(".*?".join(map(re.escape, text.split("…"))), words)
        for text in listed()
        if len(re.findall(r"[A-Za-z]{2,}", text)) >= 4
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


def test_what_a_wrong_command_line_gets_is_on_a_page(place: Path):
    nowhere = {"WAVE_BASE_URL": "http://127.0.0.1:9/v1", "WAVE_MODEL": "m", "NO_PROXY": "127.0.0.1"}
    assert is_listed(wave(place))
    assert is_listed(wave(place, "sesions"))
    assert is_listed(wave(place, "-p", "one", "two"))
    assert is_listed(wave(place, "-p", "Hello"))
    assert is_listed(wave(place, "-p", "Hello", "-r", "missing"))
    assert is_listed(wave(place, "-p", "Hello", "-c", "-r", "missing"))
    assert is_listed(wave(place, "-p", "Hello", "--trust-ref", "nowhere"))
    assert is_listed(wave(place, "-p", "Hello", "--plugin-dir", "missing"))
    assert is_listed(wave(place, "-p", "Hello", **nowhere))
    assert is_listed(wave(place, "hooks", "test", "PreTolUse"))
    assert is_listed(wave(place, "mcp", "get", "nothing"))
    assert is_listed(wave(place, "sessions", "show", "missing"))


def test_what_wrong_settings_get_is_on_a_page(place: Path):
    settings = place / ".wave" / "settings.json"
    settings.parent.mkdir()
    for text in (
        '{"hooks": {},}',
        '{"hooks": {"PreTolUse": [{"hooks": [{"command": "true", "onFailure": "block"}]}]}}',
        '{"hooks": {"PreToolUse": [{"hooks": [{"command": "true"}]}]}}',
        '{"permissions": {"deny": ["Bash("]}}',
        '{"permissions": {"deny": 5}}',
        '{"model": "a", "model": "b"}',
    ):
        settings.write_text(text)
        said = wave(place, "-p", "Hello", WAVE_BASE_URL="http://127.0.0.1:9/v1", WAVE_MODEL="m", NO_PROXY="127.0.0.1")
        assert is_listed(said.partition("Could not connect")[0]), (text, said)


def test_a_text_that_no_message_has_is_on_no_page():
    assert not is_listed("wave: The moon is made of cheese today.")
