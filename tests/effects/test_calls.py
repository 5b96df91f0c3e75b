"""The effects of calls, tool by tool; any call has effects."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.effects.arena import surroundings
from tests.rows import rows
from wave_agent.effects.calls import TOOLS, effects_of
from wave_agent.effects.only_reading import only_reads
from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.values import NO_EFFECTS, UNKNOWN_EFFECTS, Effects
from wave_agent.tools.registry import builtin_tools

AROUND = Surroundings(directory="/p/sub", project="/p", variables={"HOME": "/home/me"})


@rows(
    ("tool", "given_input", "expected"),
    [
        ("Read", {"file_path": "/a/b"}, Effects(reads=("/a/b",))),
        ("Read", {"file_path": "../x"}, Effects(reads=("/p/x",))),
        ("Read", {"file_path": "~/x"}, Effects(reads=("/home/me/x",))),
        ("Read", {"file_path": "//a/*"}, Effects(reads=("/a/[*]",))),
        ("Write", {"file_path": "/a", "content": ""}, Effects(writes=("/a",))),
        ("Edit", {"file_path": "/a"}, Effects(reads=("/a",), writes=("/a",))),
        ("MultiEdit", {"file_path": "/a"}, Effects(reads=("/a",), writes=("/a",))),
        ("NotebookEdit", {"notebook_path": "/a"}, Effects(reads=("/a",), writes=("/a",))),
        ("Grep", {"pattern": "x"}, Effects(reads=("/p/sub", "/p/sub/**"))),
        ("Grep", {"pattern": "x", "path": "/q", "glob": "*.py"}, Effects(reads=("/q", "/q/**/*.py"))),
        ("Grep", {"pattern": "x", "glob": "*.{py,md}"}, Effects(reads=("/p/sub", "/p/sub/**"))),
        ("Grep", {"pattern": "x", "glob": 3}, UNKNOWN_EFFECTS),
        ("Grep", {"pattern": "x", "path": 3}, UNKNOWN_EFFECTS),
        ("Glob", {"pattern": "**/*"}, NO_EFFECTS),
        ("TodoWrite", {"todos": []}, NO_EFFECTS),
        ("BashOutput", {"bash_id": "1"}, NO_EFFECTS),
        ("KillShell", {"shell_id": "1"}, NO_EFFECTS),
        ("WebFetch", {"url": "https://Example.com:8000/x"}, Effects(hosts=("example.com",))),
        ("WebFetch", {"url": "http://["}, Effects(hosts=("*",), complete=False)),
        ("WebFetch", {}, Effects(hosts=("*",), complete=False)),
        ("WebSearch", {"query": "x"}, Effects(hosts=("*",))),
        ("Read", {}, UNKNOWN_EFFECTS),
        ("Read", {"file_path": ""}, UNKNOWN_EFFECTS),
        ("Read", {"file_path": "a\0b"}, UNKNOWN_EFFECTS),
        ("Bash", {}, UNKNOWN_EFFECTS),
        ("Bash", {"command": ["ls"]}, UNKNOWN_EFFECTS),
        (
            "mcp__server__tool",
            {"path": "/a"},  # it may be a directory
            Effects(reads=("/a", "/a/[*]"), writes=("/a", "/a/[*]", "/a/**"), complete=False),
        ),
        ("Unknown", {}, UNKNOWN_EFFECTS),
    ],
)
def test_each_tool_says_what_a_call_would_do(tool: str, given_input: dict[str, Any], expected: Effects) -> None:
    assert replace(effects_of(tool, given_input, AROUND), origins=()) == expected


def test_every_builtin_tool_has_a_row() -> None:
    assert {tool.name for tool in builtin_tools()} <= set(TOOLS)


def test_without_a_home_a_tilde_is_a_name() -> None:
    around = Surroundings(directory="/p", project="/p")
    assert effects_of("Read", {"file_path": "~/x"}, around).reads == ("/p/~/x",)


VALUES = st.one_of(st.none(), st.integers(), st.text(), st.lists(st.text(), max_size=2))
SIGNS = st.sampled_from(
    [
        *("cat ", "git ", "sed ", "s/a/b/", "-i", "make ", "npm run ", "bash ", "./x ", "$(", ")", "`", "'", '"', "\\"),
        *("<", ">", "|", "&", ";", "\n", "<<E\n", "E\n", "*", "[", "]", "{", "}", "~", "=", ":", "://", "@", "\0", "é"),
        *(
            "curl ",
            "ssh ",
            "find ",
            "-exec ",
            "xargs ",
            "awk ",
            "jq ",
            "tar ",
            "cp ",
            "mv ",
            "openssl ",
            "docker ",
            " ",
        ),
        *("--", "-", "-f", "-C ", "secret.txt", "/dev/tcp/h/1", "\ud800", "\U0010ffff", "$x", "${x:-y}", "%", "#", "!"),
    ]
)
LINES = st.one_of(st.text(max_size=60), st.lists(SIGNS, max_size=14).map("".join))


@given(st.one_of(st.sampled_from(sorted(TOOLS)), st.text()), st.dictionaries(st.text(), VALUES, max_size=3), VALUES)
def test_any_call_has_effects(tool: str, given_input: dict[str, Any], value: object) -> None:
    keys = ("file_path", "path", "glob", "url", "command", "notebook_path")
    for call in (given_input, {**given_input, **dict.fromkeys(keys, value)}):
        assert isinstance(effects_of(tool, call, AROUND), Effects)


@given(LINES)
def test_any_line_has_effects(line: str) -> None:
    around = surroundings("/srv/project")
    found = effects_of("Bash", {"command": line}, around)
    assert all(path.startswith("/") and "\0" not in path for path in (*found.reads, *found.writes, *found.deletes)), (
        found
    )
    assert only_reads(line, found, around) in (True, False)


@given(LINES, st.sampled_from(["bash f", "make", "make x", "npm test", "just", "sed -f f x", "source f a b", "./f"]))
def test_any_script_has_effects(text: str, line: str) -> None:
    around = Surroundings(directory="/p", project="/p", read_text=lambda _: text)
    assert isinstance(effects_of("Bash", {"command": line}, around), Effects)
