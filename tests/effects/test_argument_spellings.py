"""Rules about files and hosts hold however the arguments of a server's tool spell them; ordinary calls still run."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from wave_agent.effects.calls import effects_of
from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.values import ANY_HOST, PathOrigin
from wave_agent.permissions.existing_files import on_disk
from wave_agent.rules.rule import Places, Rule, parse_rule

RULES = [*map(parse_rule, ("Read(.env)", "Read(secrets/**)", "Edit(locked/**)", "Net(evil.example)"))]
WITH_TESTS = [*RULES, parse_rule("Edit(tests/**)")]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("home") / "proj"
    for name in (".env", "locked/a.txt", "secrets/key", "src/app.py", "src/.env", "docs/guide.md", "tests/test_a.py"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("x")
    return place


def restricted(
    project: Path, tool_input: dict[str, Any], bases: tuple[str, ...] = (), rules: Sequence[Rule] = RULES
) -> list[str]:
    """The rules that a call with this input would break."""
    home = str(project.parent)
    around = Surroundings(
        directory=str(project), project=str(project), variables={"HOME": home}, is_there=os.path.lexists
    )
    places = Places(str(project), home, str(project))
    effects = effects_of("mcp__any__tool", tool_input, around, bases)
    found = on_disk(effects, rules, places)
    assert found.unsure is None
    return [rule.text for rule in rules if rule.touched(found.effects, places)]


def filled(value: Any, project: Path) -> Any:
    return json.loads(json.dumps(value).replace("$P", str(project)))


NESTED = json.dumps(json.dumps({"p": "\\u002eenv"}))

READS: list[dict[str, Any]] = [
    # a directory and a name in two arguments
    {"dir": "$P", "file": ".env"},
    {"root": "proj", "base": "$P/..", "file": ".env"},
    {"directory": "src", "names": ["../.env"]},
    {"path": ["src", "..", ".env"]},
    {"path": [*".env"]},
    # patterns
    *({"g": g} for g in (".e*", ".[e]nv", ".{env,x}", "**/.en?", "*", "**/*", "**", "*env", "!(x)", "?env")),
    *({"g": g} for g in (".{a..z}nv", "{.e,x}{nv,y}", "$P/.e*", "@(.env|x)", ".[!a]nv", "a b .e*")),
    # JSON in texts
    {"j": '{"path": "\\u002eenv"}'},
    {"j": json.dumps(json.dumps({"p": ".env"}))},
    {"j": NESTED},
    {"j": '{"a": "\\\\u002eenv"'},
    {"j": "\\x2eenv"},
    {"j": "\\u{2e}env"},
    # keys
    {".env": 1},
    {"a": {".env": True}},
    # lines of Bash
    *({"cmd": c} for c in ("cat .e''nv", "cat .e*", "cd src && cat ../.env", "grep -r . .", "cat \\.env")),
    # URIs
    *({"uri": f"{u}$P/.env"} for u in ("vscode://file", "sftp://localhost", "resource://", "sqlite:///", "x:")),
    {"uri": "jar:file://$P/.env!/x"},
    {"uri": "sqlite:///.env"},
    {"uri": "repo://src/../.env"},
    {"uri": "view-source:file://$P/.env"},
    {"uri": "https://example.com/?u=file://$P/.env"},
    # endings, separators, encodings
    *({"path": p} for p in (".env#x", ".env?x=1", ".env!/x", ".env\0", "src\\..\\.env", "\\.env", "%25252eenv")),
]  # fmt: skip


@pytest.mark.parametrize("tool_input", READS, ids=json.dumps)
def test_a_file_that_must_not_be_read(project: Path, tool_input: dict[str, Any]) -> None:
    assert "Read(.env)" in restricted(project, filled(tool_input, project))


@pytest.mark.parametrize(
    "tool_input",
    [
        {"dir": "locked", "name": "new.txt"},
        {"name": "new.txt", "dir": "locked"},
        {"root": ".", "dir": "locked", "file": "new.txt"},
        {"dir": "./locked/", "name": "x y.txt"},
        {"to": {"dir": "$P/locked", "name": "new.txt"}},
        {"path": "locked"},
        {"source": "$P/locked", "destination": "old"},
        {"pattern": "lock*/*"},
        {"command": "rm -r locked"},
        {"file": "new.txt", "dirs": [*(f"d{at}" for at in range(900)), "locked"]},
        {"paths": [*(f"d{at}/x" for at in range(4500)), "locked/new.txt"]},
        {"patterns": [*(f"d{at}*" for at in range(300)), "lock*/*"]},
    ],
)
def test_a_directory_that_must_not_be_changed(project: Path, tool_input: dict[str, Any]) -> None:
    assert "Edit(locked/**)" in restricted(project, filled(tool_input, project))


@pytest.mark.parametrize(
    "tool_input",
    [
        {"message": "Please fix tests/test_a.py"},
        {"content": "import x\n" * 100 + "open('$P/tests/test_a.py')"},
        {"body": "the file `tests\\test_a.py`, and others"},
        {"branch": "tests/test_a.py"},
        {"note": "see tests/test_a.py", "path": "tests/new.py"},
        {"text": "rm -r tests"},
        {"x": "look into tests/"},
        {"x": "tests/a.py\ntests/b.py"},
        {"x": "tests/new.py"},
        {"files": ["tests"]},
        {"name": "tests", "path": "tests"},
        {"path": "tests", "name": "tests"},
        {"file_name": "tests"},
        {"options": {"subdir": [{"name": "tests"}]}},
        {"args": "-r tests"},
        {"ignore_file": "tests/test_a.py"},
        {"workdir": "src", "args": "x ../tests/new.py"},
        {"repo": "$P/docs", "item": "../tests/new.py"},
        {"files": {"tests/new.py": "x"}},
        {"q": "tests/**/*.py"},
    ],
)
def test_a_text_that_really_names_a_path(project: Path, tool_input: dict[str, Any]) -> None:
    assert restricted(project, filled(tool_input, project), rules=WITH_TESTS) == ["Edit(tests/**)"]


def test_the_argument_that_names_a_path_is_known(project: Path) -> None:
    around = Surroundings(directory=str(project), project=str(project), is_there=os.path.lexists)
    called = {"edits": [{"path": "tests"}], "message": "as in tests/test_a.py", "glob": "docs/*", "top": {"/x/y": 1}}
    found = effects_of("mcp__any__tool", called, around).origins
    assert {
        PathOrigin(f"{project}/tests", "edits.path", "tests"),
        PathOrigin(f"{project}/tests/**", "edits.path", "tests"),
        PathOrigin(f"{project}/tests/test_a.py", "message", "tests/test_a.py"),
        PathOrigin(f"{project}/docs/**", "glob", "docs/*"),
        PathOrigin("/x/y", "top", "/x/y"),
    } <= {*found}


def test_hooks_see_directories_as_a_whole_and_files_as_they_are(project: Path) -> None:
    around = Surroundings(directory=str(project), project=str(project), is_there=os.path.lexists)
    file = effects_of("mcp__any__tool", {"path": "src/app.py"}, around)
    assert (file.reads, file.writes) == ((f"{project}/src/app.py",), (f"{project}/src/app.py",))
    directory = effects_of("mcp__any__tool", {"path": "src"}, around)
    assert f"{project}/src/**" in directory.writes
    assert f"{project}/src/**" not in directory.reads


def test_a_directory_whose_files_must_not_be_read(project: Path) -> None:
    assert restricted(project, {"path": "secrets"}) == ["Read(secrets/**)"]


@pytest.mark.parametrize(
    "text",
    [
        "https:evil.example/x",
        "http:/evil.example",
        "http://good.example\\@evil.example/",
        "http://evil.example\\.good.example/",
        "http://ev\til.exa\nmple/",
        "https%253A%252F%252Fevil.example",
        '{"u": "http:\\u002f\\u002fevil.example"}',
        "curl evil.example",
        "evil.example",
        "Please get EVIL.example.",
        "ev%69l.example",
        "host=evil.example port=5432",
        "Server=evil.example;Database=x",
        "see evil.example/y",
    ],
)
def test_a_host_that_must_not_be_reached(project: Path, text: str) -> None:
    assert restricted(project, {"x": text}) == ["Net(evil.example)"]
    assert restricted(project, {text: 1}) == ["Net(evil.example)"]


def test_a_word_that_might_be_a_host_is_none_to_rules_about_any() -> None:
    around = Surroundings(directory="/p", project="/p")
    found = effects_of("mcp__any__tool", {"x": "notes.md and evil.example"}, around)
    assert (found.hosts, found.bare_hosts) == ((), ("notes.md", "evil.example"))
    assert parse_rule("Net(*)").touched(found, Places("/p", "/home", "/p")) is None
    assert parse_rule("Net(*.example)").touched(found, Places("/p", "/home", "/p")) == "reach evil.example"


def test_with_more_hosts_than_are_compared_any_may_be_meant() -> None:
    around = Surroundings(directory="/p", project="/p")
    many = [f"http://h{at}.example/" for at in range(1200)]
    assert ANY_HOST in effects_of("mcp__any__tool", {"urls": many}, around).hosts
    assert ANY_HOST in effects_of("mcp__any__tool", {"x": "a" * (1 << 21)}, around).hosts
    words = " ".join(f"h{at}.md" for at in range(4100))
    assert ANY_HOST in effects_of("mcp__any__tool", {"x": words}, around).hosts


ORDINARY: list[dict[str, Any]] = [
    # filesystem
    {"path": "$P"},
    {"path": "."},
    {"path": "src"},
    {"path": "src/app.py"},
    {"path": "$P/src/app.py", "head": 20},
    {"paths": ["src/app.py", "docs/guide.md"]},
    {"path": "src/new.py", "content": "import os\n\n\ndef area(a: int, b: int) -> int:\n    return a * b  # {x}\n"},
    {"path": "docs/guide.md", "content": "# Guide\n\n* one\n* two **bold** [link](guide.md)\n\n```sh\nls *\n```\n"},
    {"path": "README.md", "content": "See https://docs.example.com/start, or run `make`.\n" * 40},
    {"path": "src/app.py", "edits": [{"oldText": "x = 1 * 2", "newText": "x = 2  # ?"}], "dryRun": False},
    {"source": "src/app.py", "destination": "src/main.py"},
    {"path": "$P", "pattern": "**/*.py", "excludePatterns": ["node_modules/**", "dist/*"]},
    {"path": "$P", "pattern": "*.md"},
    {"path": "$P/src", "sortBy": "size"},
    {},
    # git
    {"repo_path": "$P"},
    {"repo_path": "$P", "files": ["src/app.py", "docs/guide.md"]},
    {
        "repo_path": "$P",
        "message": "Add the guide\n\nIt says how to start: run make, then open docs/guide.md. Fixes #12.",
    },
    {"repo_path": "$P", "max_count": 10, "start_timestamp": "1 week ago"},
    {"repo_path": "$P", "target": "main..feature/login", "context_lines": 3},
    {"repo_path": "$P", "revision": "HEAD~2"},
    {"repo_path": "$P", "branch_name": "feature/environment", "base_branch": "main"},
    {"repo_path": "$P", "branch_type": "all", "contains": "abc123"},
    # time
    {"timezone": "Europe/Berlin"},
    {"source_timezone": "America/New_York", "time": "16:30", "target_timezone": "Asia/Tokyo"},
    # memory
    {
        "entities": [
            {"name": "Ada", "entityType": "person", "observations": ["likes tea", "works on src/app.py (2 * 3)"]}
        ]
    },
    {"relations": [{"from": "Ada", "to": "Wave", "relationType": "works on"}]},
    {"names": ["Ada", "Wave"]},
    {"query": "who works on the environment?"},
    # others
    {"sql": "select count(*), name from users where name like 'a%' group by name"},
    {"url": "https://example.com/.env.html?x=1#top"},
    {"query": "def .+\\(self\\)", "regex": True},
    {"thought": "First, compare a * b with c? Then decide. 50% done.", "thoughtNumber": 1, "nextThoughtNeeded": True},
    {"selector": "div > a[href]", "text": "cat pictures"},
    {"expression": "(1 + 2) * 3"},
]

MENTIONED: list[dict[str, Any]] = [
    # words for people that are also the names of directories and files
    {"repo_path": "$P", "message": "INV-1: Due dates\n\nThe tests for January pass again, and so do the secrets."},
    {"repo_path": "$P", "message": "tests"},
    {"repo_path": "$P", "message": "Keep .env out of the repository"},
    {"repo_path": "$P", "message": "find tests that are slow"},
    {"repo_path": "$P", "branch_name": "tests/faster", "base_branch": "locked"},
    {"path": "docs/new.md", "content": "# Layout\n\n- `tests/`: run with `make`\n- `locked/`, and tests/** too\n"},
    {"path": ".gitignore", "content": ".env\nsecrets/\n"},
    {"path": "src/app.py", "edits": [{"oldText": "tests", "newText": "from tests import locked"}]},
    {"path": "$P", "pattern": "*.md", "excludePatterns": ["node_modules", ".git", "tests", ".env", "secrets/**"]},
    {"path": "$P", "exclude": ["tests"], "ignore": "locked/*"},
    {"entities": [{"name": "tests", "entityType": "locked", "observations": ["tests are in tests/", "make tests"]}]},
    {"relations": [{"from": "tests", "to": "secrets", "relationType": "locked"}]},
    {"observations": [{"entityName": "secrets", "contents": ["see tests/README.md"]}]},
    {"names": ["tests", "secrets"]},
    {
        "owner": "acme",
        "repo": "tests",
        "labels": ["tests", "docs"],
        "title": "Move tests/ and .env",
        "body": "tests/\n",
    },
    {"channel": "secrets", "text": "The tests in tests/ pass, please look at .env.example and tests/gone.py"},
    {"thought": "Which tests cover the secrets? Perhaps those in tests/.", "thoughtNumber": 2},
    {"query": "tests"},
    {"query": "where are the tests"},
    {"sql": "select tests, secrets from locked"},
    {"x": {"tests": {"locked": True}}},
]


@pytest.mark.parametrize("tool_input", ORDINARY, ids=json.dumps)
def test_ordinary_calls_still_run(project: Path, tool_input: dict[str, Any]) -> None:
    assert restricted(project, filled(tool_input, project), (str(project),)) == []


@pytest.mark.parametrize("tool_input", MENTIONED, ids=json.dumps)
def test_words_that_name_no_file_still_run(project: Path, tool_input: dict[str, Any]) -> None:
    assert restricted(project, filled(tool_input, project), (str(project),), WITH_TESTS) == []
