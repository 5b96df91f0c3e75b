"""Inputs that are nearly right: most bugs live one step beside what is valid."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import strategies as st

from wave_agent.hooks.events import HookEvent
from wave_agent.hooks.reader import FIELDS, REPLY_FIELDS

Strategy = st.SearchStrategy

anything = st.characters()  # lone surrogates included: a `str` can hold them, UTF-8 cannot
texts = st.text(max_size=12) | st.text(anything, max_size=8) | st.sampled_from(["", " ", "\0", "\ufeff", "é", "\ud800"])
numbers = (
    st.integers()
    | st.floats()  # NaN and Infinity too: Python's writer spells them, JSON does not know them
    | st.sampled_from([10**400, -(2**63) - 1, 2**64, 1e308])
)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def known_as(words: Iterable[str]) -> Strategy[str]:
    """One of the words, as it is or slightly wrong."""
    right = st.sampled_from(sorted(words))
    return right | right.map(str.upper) | right.map(lambda word: word[:-1]) | right.map(lambda word: f" {word}")


def objects(keys: Iterable[str], value: Strategy[Any]) -> Strategy[dict[str, Any]]:
    """An object with some of these keys, a few of them misspelt or foreign."""
    return st.dictionaries(known_as(keys) | texts, value, max_size=4)


def written(value: Strategy[Any]) -> Strategy[str]:
    """The value as JSON, whole or with a wound."""
    return st.builds(
        lambda value, ascii_only, wound: wound(json.dumps(value, ensure_ascii=ascii_only)),
        value,
        st.booleans(),
        wounds,
    )


_NOISE = [
    "{",
    "}",
    "[",
    "]",
    '"',
    ",",
    ":",
    "\\",
    "\\ud800",
    "\0",
    "\n",
    "NaN",
    "1e999",
    "9" * 5000,
    "//",
    "'",
    "\ufeff",
]


def _wound(kind: str, where: float, noise: str) -> Callable[[str], str]:
    def apply(text: str) -> str:
        at = int(where * len(text))
        match kind:
            case "cut":
                return text[:at]
            case "tail":
                return text[at:]
            case "insert":
                return text[:at] + noise + text[at:]
            case "replace":
                return text[:at] + noise + text[at + 1 :]
            case "twice":
                return text + text
            case "key twice":
                return text.replace("{", '{"decision": "block", "hooks": {}, "decision": "approve",', 1)
            case "deep":
                return "[" * 300 + text + "]" * 300
            case _:
                return text

    return apply


wounds = st.builds(
    _wound,
    st.sampled_from(["none", "none", "cut", "tail", "insert", "insert", "replace", "twice", "key twice", "deep"]),
    st.floats(0, 1),
    st.sampled_from(_NOISE) | texts,
)

# --------------------------------------------------------------------------------------------------------- of a hook

_decisions = known_as(["block", "deny", "approve", "allow", "ask", "stop", "true", "accept", "decline"])
_field = (
    _decisions | st.booleans() | st.sampled_from(list(HookEvent)) | st.dictionaries(texts, values, max_size=2) | values
)
_names = [*FIELDS, *REPLY_FIELDS]
answers = st.builds(
    lambda top, inner: {**top, **({"hookSpecificOutput": inner} if inner is not None else {})},
    objects(_names, _field),
    st.none() | objects(_names, _field) | values,
)
hook_stdout = written(answers) | written(values) | st.text(anything, max_size=40)

# ------------------------------------------------------------------------------------------------------- of settings

_TOOLS = ["Bash", "Read", "Write", "Edit", "Grep", "Glob", "mcp__server", "mcp__server__tool", "*", ""]
_words = [
    "git push",
    "rm -rf",
    ":*",
    "*",
    "**",
    "src/**",
    "//etc/*",
    "~/x",
    "..",
    "[a",
    "[!a-z]",
    "{a,b}",
    "(",
    ")",
    "\\",
]
patterns = st.lists(st.sampled_from(_words) | texts, max_size=3).map("".join)
rule_texts = st.builds(lambda tool, pattern: f"{tool}({pattern})", known_as(_TOOLS) | texts, patterns) | texts
matcher_texts = st.lists(known_as(_TOOLS) | patterns | texts, max_size=4).flatmap(
    lambda parts: st.sampled_from(["|", ",", " ", ""]).map(lambda between: between.join(parts))
)

_HOOK_KEYS = ["type", "command", "args", "timeout", "name", "onFailure", "async", "if", "rewrite", "shadow", "hooks"]
_hook = (
    objects(
        _HOOK_KEYS, st.sampled_from(["command", "true", "block", "continue", "x", 5, 0.5, -1]) | rule_texts | values
    )
    | texts
    | values
)
_group = (
    objects(["matcher", "hooks", "sequential", "command"], matcher_texts | st.lists(_hook, max_size=3) | values) | _hook
)
_hooks = objects([*HookEvent, "preToolUse"], st.lists(_group, max_size=3) | values)
_permissions = objects(
    ["allow", "deny", "ask", "defaultMode", "additionalDirectories"],
    st.lists(rule_texts | values, max_size=3) | known_as(["default", "plan", "acceptEdits"]) | values,
)
_SETTINGS = ["hooks", "permissions", "env", "model", "models", "strictHooks", "maxStopBlocks", "cleanupPeriodDays"]
settings_values = st.builds(
    lambda top, hooks, permissions: {**top, "hooks": hooks, "permissions": permissions},
    objects(_SETTINGS, st.dictionaries(texts, values, max_size=2) | values),
    _hooks | values,
    _permissions | values,
)
settings_texts = written(settings_values) | written(values) | st.text(anything, max_size=60)

# ------------------------------------------------------------------------------------------------------- of commands

_SHELL = ["git", "push", "rm", "-rf", "/", "env", "sudo", "A=1", "&&", "||", "$(", "<<EOF", "EOF", "if", "then", "fi"]
_SHELL += ["xargs", "eval", "$x", "${x:-y}", "<(", *";|)`'\"\\\n{}(#\0é\ud800"]
commands = st.lists(st.sampled_from(_SHELL) | texts, max_size=10).flatmap(
    lambda parts: st.sampled_from([" ", ""]).map(lambda between: between.join(parts))
)
paths = st.lists(st.sampled_from(["..", ".", "", "src", "a b", "~", "[x]", "\n"]) | texts, max_size=5).map("/".join)

# ------------------------------------------------------------------------------------------------------- of the model

_ARGUMENTS = ["command", "file_path", "content", "name", "arguments", "parameters", "input", "function", "tool_calls"]
_call = objects(_ARGUMENTS, st.sampled_from(["Bash", "Read", "ls", '{"command": "ls"}']) | values)
_FRAMES = ["```json\n{}\n```", "<tool_call>{}</tool_call>", "Sure:\n{}", "{} // done", "<think>{}", "[TOOL_CALLS]{}"]
_FRAMES += ["<function=Bash><parameter=command>{}</parameter></function>", "<Bash><command>{}</command></Bash>"]
_FRAMES += ["Bash({})", "{}"]
almost_calls = st.builds(
    lambda frame, inside, wound, quotes: wound(frame.replace("{}", inside).replace('"', quotes)),
    st.sampled_from(_FRAMES),
    written(_call) | commands,
    wounds,
    st.sampled_from(['"', '"', "'", "“", '\\"', ""]),
)

_CHUNK = ["choices", "usage", "error", "delta", "message", "content", "tool_calls", "index", "finish_reason", "id"]
_CHUNK += ["function", "name", "arguments", "reasoning", "reasoning_content", "prompt_tokens", "refusal", "thinking"]
_piece = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | objects(_CHUNK, inner), max_leaves=8)
_fragment = st.fixed_dictionaries(
    {"index": st.sampled_from([0, 1, None, "0", {}]), "function": objects(["name", "arguments"], texts | values)},
    optional={"id": texts | values},
)
_delta = st.fixed_dictionaries(
    {},
    optional={
        "content": texts | st.lists(_piece, max_size=2) | values,
        "reasoning_content": texts | values,
        "tool_calls": st.lists(_fragment, max_size=2) | values,
    },
)
_choice = st.fixed_dictionaries(
    {"delta": _delta | values}, optional={"finish_reason": texts | values, "index": st.just(0) | values}
)
chunks = st.fixed_dictionaries(
    {"choices": st.lists(_choice, max_size=2) | values}, optional={"usage": _piece, "error": _piece}
)
_event = written(chunks | _piece).map(lambda text: f"data: {text}\n\n".encode(errors="surrogatepass"))
_between = st.sampled_from([b"data: [DONE]\n\n", b"\r", b": ping\n\n"])
streams = st.lists(_event | st.binary(max_size=20) | _between, max_size=6)

# ------------------------------------------------------------------------------------------------------ of transcripts

damage = st.lists(
    st.tuples(
        st.sampled_from(["cut", "flip", "double", "swap", "binary", "json", "nothing"]),
        st.integers(0, 10_000),
        st.integers(0, 10_000),
        st.binary(min_size=1, max_size=20) | written(values).map(lambda text: text.encode(errors="surrogatepass")),
    ),
    max_size=5,
)


_secret_pieces = st.one_of(
    st.sampled_from([
        "AKIA", "ASIA", "ABCDEFGHIJ234567", "ghp_", "github_pat_", "a1B2" * 9, "xoxb-", "1234567890-", "sk-", "x9" * 16,
        "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", "MIIE+/=", "password", "api_key", "token",
        "Secret", "=", ": ", "'", '"', "\\", "\n", " ", "hunter2hunter2", "<", "[masked: a password]", "é",
        "\\n", "%3D", "\\u00e9", "[31m", "-----BEGIN PGP PRIVATE KEY BLOCK-----", "Version: 1",
    ]),
    st.text(max_size=4),
    st.builds("AKIA{}".format, st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=15, max_size=17)),
    st.builds("gho_{}".format, st.text("abcXYZ019", min_size=35, max_size=38)),
    st.builds("password='{}'".format, st.text("abcdefgh1<$", min_size=7, max_size=10)),
)  # fmt: skip
secret_texts = st.lists(_secret_pieces, max_size=8).map("".join)
with_secrets = st.recursive(
    secret_texts | st.none() | st.integers(-9, 9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["password", "api_key", "text", "token", "a b"]), inner, max_size=3)
    ),
    max_leaves=5,
)
"""Values with texts that are full of secrets, and of what nearly is one."""


# ------------------------------------------------------------------------------------------------------ inputs of tools

LINKS = {
    "loop": "loop",
    "loop1": "loop2",
    "loop2": "loop1",
    "dangling": "none/at/all",
    "out": "../..",
    "root": "/",
    "init": "/proc/1/root",
    "zero": "/dev/zero",
    "env": ".env",
    "here": ".",
}
"""In the project, by name."""
_path_steps = st.sampled_from(
    [
        *("a.txt", ".env", "d", "b.txt", "new", "fifo", *LINKS, "..", ".", "", "~", "~x", "\0", "\ud800", "\udcff"),
        *("x" * 256, "\n", " ", "*", "é", "e\u0301", "\u202e", "-", "$HOME", "mem", "fd", "0", "self", "1", "root"),
    ]
)
_path_starts = st.sampled_from(
    [
        *("", "", "", "", "/", "//", "///", "~/", "~root/", "/proc/1/", "/proc/self/", "/proc/self/fd/", "/dev/"),
        *("/sys/", "/proc/self/root/", "/proc/thread-self/", "x/" * 2100),
    ]
)
tool_paths = st.builds(lambda start, steps: start + "/".join(steps), _path_starts, st.lists(_path_steps, max_size=5))
_anything = st.none() | st.booleans() | st.integers() | st.floats() | st.lists(st.text(), max_size=2) | st.text()
_any_values = tool_paths | _anything
_file_texts = st.sampled_from(["", "one", "two\n", "\ud800", "\0", "x" * 5000]) | st.text(max_size=20)


def _a_call_of(tool: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    usual = st.fixed_dictionaries(fields)
    odd = st.dictionaries(st.sampled_from([*fields, "x"]), _any_values, max_size=4)
    return st.tuples(st.just(tool), usual | usual | usual | odd)


tool_calls = st.one_of(
    _a_call_of("Read", file_path=tool_paths),
    _a_call_of("Read", file_path=tool_paths, offset=_anything, limit=st.integers()),
    _a_call_of("Write", file_path=tool_paths, content=_file_texts),
    _a_call_of("Edit", file_path=tool_paths, old_string=_file_texts, new_string=_file_texts),
    _a_call_of("Glob", pattern=_file_texts, path=tool_paths),
    _a_call_of("Grep", pattern=_file_texts, path=tool_paths, glob=_file_texts),
    _a_call_of("TodoWrite", todos=_any_values),
    _a_call_of("BashOutput", bash_id=_any_values),
    _a_call_of("KillShell", shell_id=_any_values),
)
"""The name of a tool and its input, as a model may write it. What commands can hold is another matter."""
