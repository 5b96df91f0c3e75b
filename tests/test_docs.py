"""Nothing in the documentation is unchecked: every fenced block is run or read, and every link leads somewhere.

    ```python              run, all blocks of a document in order in one process, in a directory of its own
    ```text                after a python block: what that block prints
    ```text picture        something to look at
    ```json, ```jsonl      parses; an object whose "hooks" is an object loads as settings, without a finding
    ```yaml                parses
    ```bash                passes `bash -n`
    ```console             `$ wave …` is run and prints what follows; of `$ make …` the targets exist
    … file=NAME            with any of these: written to that file before anything is run; a `test_….py` passes

In what is printed, `…` stands for anything within a line and, alone in a line, for any lines or none.
"""

import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, get_args

import click
import pytest

import wave_agent
import wave_agent.hooks
import wave_agent.testing
from tests.rows import rows
from wave_agent import Agent, Callbacks, PermissionRequest, Result
from wave_agent.agent.turn import TurnStatus
from wave_agent.cli.main import wave
from wave_agent.events import Event
from wave_agent.formats.yaml_json import parse_yaml
from wave_agent.hooks.definitions import Layer
from wave_agent.settings.hook_entries import parse_settings
from wave_agent.settings.layers import merge_settings

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "examples" / "README.md"]

LANGUAGES = ("bash", "console", "json", "jsonl", "python", "text", "yaml")
SETTING_UP = ("cd", "export", "git", "pip", "pipx", "uv", "uvx")
"""Commands that a console may show and nobody runs: they need the network, or mean something only to the reader."""

OF_OTHERS = (".gemini/",)
"""Settings of agents whose hooks Wave does not read."""

NOT_FOR_THE_GUIDE = ("from_options",)

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())


# --------------------------------------------------------------------------------------------- the blocks of a document


class Block(NamedTuple):
    place: str
    line: int
    """Of its first line of text, counted from 1."""
    language: str
    words: tuple[str, ...]
    """What stands behind the language."""
    text: str

    @property
    def file(self) -> str | None:
        return next((word.removeprefix("file=") for word in self.words if word.startswith("file=")), None)


FENCE = re.compile(r"(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<info>[^`]*)")


def blocks_of(markdown: str, name: str) -> Iterator[Block]:
    lines = markdown.splitlines()
    at = 0
    while at < len(lines):
        opening = FENCE.fullmatch(lines[at])
        at += 1
        if opening is None:
            continue
        start, fence, indent = at, opening["fence"], len(opening["indent"])
        while at < len(lines) and not re.fullmatch(rf" *{fence[0]}{{{len(fence)},}} *", lines[at]):
            at += 1
        assert at < len(lines), f"{name}:{start}: this fence is never closed"
        inside = [line[min(indent, len(line) - len(line.lstrip())) :] for line in lines[start:at]]
        language, *words = opening["info"].split() or [""]
        yield Block(f"{name}:{start}", start + 1, language, tuple(words), "".join(f"{line}\n" for line in inside))
        at += 1


def blocks(document: Path) -> list[Block]:
    return list(blocks_of(document.read_text(), document.relative_to(ROOT).as_posix()))


def outputs(found: Sequence[Block]) -> dict[Block, Block]:
    """The text blocks that stand directly after a python block: what that one prints."""
    return {
        code: shown
        for code, shown in pairwise(found)
        if (code.language, shown.language) == ("python", "text") and not code.file and not shown.words
    }


def shows(expected: str, printed: str) -> bool:
    """Whether `expected`, with its `…`, describes what was printed."""
    pattern = ""
    for line in expected.rstrip().splitlines():
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(map(re.escape, line.rstrip().split("…"))) + "\n"
    cleaned = "".join(f"{line.rstrip()}\n" for line in printed.rstrip().splitlines())
    return re.fullmatch(pattern, cleaned) is not None


# --------------------------------------------------------------------------------------------------- where they are run


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """No model, a home of its own, the `wave` of this installation, no colours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WAVE_", "OPENAI_"))}
    home = tmp_path / "home"
    home.mkdir()
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    own = {"HOME": str(home), "WAVE_HOME": str(tmp_path / "wave"), "PATH": path, "NO_COLOR": "1", "COLUMNS": "100"}
    return {**kept, **own}


def write_files(found: Sequence[Block], directory: Path) -> None:
    for block in found:
        if block.file is not None:
            file = directory / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
            file.chmod(0o755)


@pytest.fixture
def directory(document: Path, tmp_path: Path) -> Path:
    """Where the document's code runs, with the files that it shows."""
    project = tmp_path / "project"
    project.mkdir()
    write_files(blocks(document), project)
    return project


# ----------------------------------------------------------------------------------------------------------- the blocks


@each_document
def test_every_block_is_of_a_kind_that_is_checked(document: Path) -> None:
    found = blocks(document)
    printed = outputs(found).values()
    for block in found:
        assert block.language in LANGUAGES, (
            f"{block.place}: nothing checks a block of {block.language or 'no language'}"
        )
        if block.language == "text" and block not in printed:
            assert block.file or "picture" in block.words, (
                f"{block.place}: nothing checks this text. Put it after the python block that prints it, or write "
                "`text picture` if it is only to be looked at"
            )


RUN_BLOCKS = """\
import json, sys
namespace = {"__name__": "__main__"}
with open(sys.argv[1]) as file:
    blocks = json.load(file)
for place, line, text in blocks:
    code = compile("\\n" * (line - 1) + text, place.partition(":")[0], "exec", dont_inherit=True)
    print(sys.argv[2], flush=True)
    exec(code, namespace)
    sys.stdout.flush()
"""
MARK = "\N{BLACK SQUARE} the next block \N{BLACK SQUARE}"


@each_document
def test_python_blocks_run_and_print_what_they_say(
    document: Path, directory: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    found = blocks(document)
    code = [block for block in found if block.language == "python" and not block.file]
    work = tmp_path / "blocks.json"
    work.write_text(json.dumps([(block.place, block.line, block.text) for block in code]))
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN_BLOCKS, work, MARK],
        cwd=directory,
        env={**environment, "PYTHONIOENCODING": "utf-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=110,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    expected = outputs(found)
    for block, printed in zip(code, ran.stdout.split(f"{MARK}\n")[1:], strict=True):
        if block in expected:
            assert shows(expected[block].text, printed), f"{expected[block].place}: it prints\n{printed}"


@each_document
def test_python_files_compile_and_their_tests_pass(
    document: Path, directory: Path, environment: dict[str, str]
) -> None:
    for block in blocks(document):
        if block.language == "python" and block.file:
            compile(block.text, block.place, "exec", dont_inherit=True)
            if block.file.startswith("test_"):
                command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", block.file]
                ran = subprocess.run(
                    command, cwd=directory, env=environment, capture_output=True, text=True, check=False
                )
                assert ran.returncode == 0, f"{block.place}\n{ran.stdout}{ran.stderr}"


@each_document
def test_json_blocks_parse_and_settings_have_no_findings(document: Path) -> None:
    for block in blocks(document):
        if block.language == "jsonl":
            for line in block.text.splitlines():
                json.loads(line)
        if block.language == "json":
            value = json.loads(block.text)
            is_ours = not (block.file or "").startswith(OF_OTHERS)
            if is_ours and isinstance(value, dict) and isinstance(value.get("hooks"), dict):
                settings = merge_settings([parse_settings(block.text, Layer.PROJECT, block.place)])
                assert [str(issue) for issue in settings.issues] == []
                assert settings.hooks.hooks, f"{block.place}: these settings define no hook"


@each_document
def test_yaml_blocks_parse(document: Path) -> None:
    for block in blocks(document):
        if block.language == "yaml":
            assert parse_yaml(block.text).value, block.place


@each_document
def test_bash_blocks_are_bash(document: Path) -> None:
    for block in blocks(document):
        if block.language == "bash":
            checked = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, check=False)
            assert (checked.returncode, checked.stderr) == (0, ""), block.place


class Command(NamedTuple):
    line: str
    output: str


def commands_of(block: Block) -> list[Command]:
    """A line that begins with `$ ` and, until the next one, what it prints. A backslash continues it."""
    found: list[Command] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line.removeprefix("$ "), ""))
        else:
            assert found, f"{block.place}: a console block begins with a command, `$ …`"
            last = found.pop()
            continued = not last.output and last.line.endswith("\\")
            found.append(
                Command(f"{last.line}\n{line}", "") if continued else Command(last.line, f"{last.output}{line}\n")
            )
    return found


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z][\w-]*):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))


@each_document
def test_console_blocks_show_what_happens(document: Path, directory: Path, environment: dict[str, str]) -> None:
    for block in blocks(document):
        for command in commands_of(block) if block.language == "console" else []:
            words = shlex.split(command.line, comments=True)
            assert words, f"{block.place}: a command is missing"
            if words[0] == "make":
                wanted = {word for word in words[1:] if "=" not in word and not word.startswith("-")}
                assert wanted <= make_targets(), f"{block.place}: the Makefile has no {wanted - make_targets()}"
            elif "wave" in words and words[0] not in SETTING_UP:
                ran = subprocess.run(
                    ["bash", "-c", command.line],
                    cwd=directory,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=60,
                    check=False,
                )
                assert ran.returncode == 0 or command.output, f"{block.place}: {command.line}\n{ran.stdout}"
                if command.output:
                    assert shows(command.output, ran.stdout), f"{block.place}: {command.line} prints\n{ran.stdout}"
            else:
                assert words[0] in SETTING_UP, f"{block.place}: nothing checks `{command.line}`"


# ------------------------------------------------------------------------------------------------------------ the links


LINK = re.compile(r"\[[^\]\n]*\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]\n]+\]: *<?(\S+?)>?(?: .*)?$", re.MULTILINE)


def without_blocks(markdown: str) -> str:
    lines = markdown.splitlines()
    for block in blocks_of(markdown, "document"):
        count = block.text.count("\n")
        lines[block.line - 1 : block.line - 1 + count] = [""] * count
    return "\n".join(lines)


def links_of(markdown: str) -> list[str]:
    """Links in prose; what looks like one in code is none."""
    prose = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", without_blocks(markdown))
    return [*LINK.findall(prose), *REFERENCE.findall(prose)]


def anchors_of(markdown: str) -> set[str]:
    """What GitHub calls the headings."""
    titles = re.findall(r"^#+ +(.*?) *#*$", without_blocks(markdown), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "").lower() for title in titles)
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in plain}


@each_document
def test_links_lead_somewhere(document: Path) -> None:
    broken = []
    for link in links_of(document.read_text()):
        if re.match(r"[a-z][a-z+.-]*:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        inside = target.is_relative_to(ROOT) and target.exists()
        if not inside or (anchor and target.suffix == ".md" and anchor not in anchors_of(target.read_text())):
            broken.append(link)
    assert broken == []


NAMED = re.compile(r"\bdocs/[\w./-]+\.md(?:#[\w-]+)?")
LONGEST = 310
"""Lines of a page that a person reads from top to bottom."""


def test_pages_that_the_program_and_the_scripts_name_exist() -> None:
    sources = [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "scripts").glob("*.py"),
        ROOT / "Makefile",
        ROOT / "pyproject.toml",
    ]
    named = {name for source in sources for name in NAMED.findall(source.read_text())}
    assert len(named) > 3
    for name in sorted(named):
        path, _, anchor = name.partition("#")
        assert (ROOT / path).is_file(), name
        assert not anchor or anchor in anchors_of((ROOT / path).read_text()), name


def test_no_page_is_longer_than_a_readers_patience() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150
    generated = (ROOT / "docs" / "reference", ROOT / "docs" / "messages")
    pages = [page for page in (ROOT / "docs").rglob("*.md") if not page.is_relative_to(generated[0])]
    lengths = {page: len(page.read_text().splitlines()) for page in pages if not page.is_relative_to(generated[1])}
    assert [page.name for page, length in lengths.items() if length > LONGEST] == []


# -------------------------------------------------------------------------------------------------- nothing is left out


def code_in(document: Path) -> set[str]:
    """Every word of the document that stands in a block or as `code`."""
    spans = re.findall(r"`([^`\n]+)`", without_blocks(document.read_text()))
    return set(re.findall(r"\w+", "\n".join([*spans, *(block.text for block in blocks(document))])))


def test_the_guide_to_the_sdk_names_everything_there_is() -> None:
    arguments = inspect.signature(Agent.create).parameters
    methods = [name for name in vars(Agent) if not name.startswith("_") and name not in NOT_FOR_THE_GUIDE]
    shown = [*Result.__struct_fields__, *Callbacks.__struct_fields__, *PermissionRequest.__struct_fields__]
    events = [event.__name__ for event in get_args(Event)]
    names = {*arguments, *methods, *shown, *events, *TurnStatus, *wave_agent.__all__}
    pages = [ROOT / "docs" / "sdk.md", *(ROOT / "docs" / "sdk").glob("*.md")]
    assert sorted(names - set.union(*map(code_in, pages))) == []


def commands_below(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name, **command.context_settings)
        for word in command.list_commands(context):
            below = command.get_command(context, word)
            assert below is not None
            yield from commands_below(below, f"{name} {word}")


def test_the_reference_has_every_command_with_every_option() -> None:
    pages = "\n".join(page.read_text() for page in (ROOT / "docs" / "reference").rglob("*.md"))
    sections = {part.partition("\n")[0]: part for part in pages.split("\n## ")}
    missing = [
        f"{name} {option}"
        for name, command in commands_below(wave, "wave")
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
        for option in parameter.opts
        if not re.search(rf"^\| `[^`]*{option}(?![\w-])", sections.get(name, ""), re.MULTILINE)
    ]
    assert missing == []
    assert len(sections) > 40


def test_the_reference_has_every_public_name_of_the_package() -> None:
    pages = "\n".join(page.read_text() for page in (ROOT / "docs" / "reference" / "python").glob("*.md"))
    headings = re.findall(r"^## (\w+)$", pages, re.MULTILINE)
    public = {*wave_agent.__all__, *wave_agent.hooks.__all__, *wave_agent.testing.__all__}
    events = {event.__name__ for event in get_args(Event)}
    assert sorted(headings) == sorted(public | events | {"HookRun", "event_to_dict"})


def test_the_map_names_every_room_and_only_files_that_exist() -> None:
    package = ROOT / "src" / "wave_agent"
    pages = [ROOT / "docs" / "architecture.md", *(ROOT / "docs" / "architecture").glob("*.md")]
    text = "\n".join(page.read_text() for page in pages)
    rooms = [path.name for path in package.iterdir() if (path / "__init__.py").exists()]
    assert [room for room in rooms if f"`{room}/`" not in text] == []
    named = re.findall(rf"`((?:{'|'.join(rooms)})/[a-z_/]+)`", text)
    there = [(package / name).with_suffix(".py").exists() or (package / name).is_dir() for name in named]
    assert [name for name, found in zip(named, there, strict=True) if not found] == []


# ------------------------------------------------------------------------------------------------ the checks themselves


def test_blocks_are_found_with_their_language_words_and_text() -> None:
    text = "a\n```bash file=x.sh\necho\n```\n- b\n\n  ````text\n  ```\n    c\n  ````\n~~~\nd\n~~~\n"
    assert [(block.line, block.language, block.file, block.text) for block in blocks_of(text, "n")] == [
        (3, "bash", "x.sh", "echo\n"),
        (8, "text", None, "```\n  c\n"),
        (12, "", None, "d\n"),
    ]


def test_a_fence_that_is_not_closed_is_found() -> None:
    with pytest.raises(AssertionError, match="n:1: this fence is never closed"):
        list(blocks_of("```python\nx = 1\n", "n"))


@rows(
    ("expected", "printed", "fits"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a \n\n", True),
        ("a\n", "a\nb\n", False),
        ("took … ms\n", "took 12 ms\n", True),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("a\n…\nd\n", "a\nd\n", True),
        ("a\n…\n", "a\n", True),
        ("a…\n", "a\nb\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_an_ellipsis_stands_for_anything(expected: str, printed: str, fits: bool) -> None:
    assert shows(expected, printed) is fits


def test_a_console_block_is_commands_with_their_output() -> None:
    block = Block("n:1", 2, "console", (), "$ wave \\\n  demo\none\ntwo\n$ make test\n")
    assert commands_of(block) == [Command("wave \\\n  demo", "one\ntwo\n"), Command("make test", "")]


def test_links_are_looked_for_in_prose_only() -> None:
    text = "[a](b.md) and `[c](d.md)`\n```python\n[e](f)\n```\n[g]: h.md\n"
    assert links_of(text) == ["b.md", "h.md"]


def test_headings_are_anchors_and_comments_in_code_are_none() -> None:
    assert anchors_of("# What a `run` means\n```bash\n# no\n```\n## [Fields](x)\n") == {"what-a-run-means", "fields"}


def test_every_threat_is_shown_by_tests_that_there_are() -> None:
    threats = (ROOT / "docs" / "security.md").read_text().partition("## Threats")[2].partition("\n## ")[0]
    rows = [row for row in threats.splitlines() if row.startswith("| ")][2:]
    sources = [file.read_text() for file in (ROOT / "tests").rglob("test_*.py")]
    for row in rows:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, row
        for name in named:
            assert any(f"def {name}(" in source for source in sources), name
