"""Create a hook: its script, cases and settings entry, from a template or a recipe.

This module only generates text; files are written after the user has reviewed them.
"""

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from wave_agent.errors import SettingsError
from wave_agent.formats.json_edits import append
from wave_agent.formats.strict_json import StrictJSONError
from wave_agent.hooks.events import EVENTS, Decision, EventRow, Flow, HookEvent, OnFailure
from wave_agent.recipes import LANGUAGES, Recipe, settings_group
from wave_agent.settings.places import LARGEST_FILE
from wave_agent.settings.schema_file import with_schema
from wave_agent.system.project_files import NotReadError, read_project_file
from wave_agent.tools.files import FileRefusedError, replace

DIRECTORY = ".wave/hooks"
SETTINGS = ".wave/settings.json"
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")
WORD = "FORBIDDEN"
"""The placeholder word that a template's guard blocks."""


class Wish(Struct, frozen=True, kw_only=True):
    """Describes the hook to create."""

    name: str
    event: HookEvent
    language: str
    matcher: str | None = None
    recipe: Recipe | None = None


class NewFile(Struct, frozen=True):
    """A file and its new content."""

    name: str
    before: str | None
    """None if it does not exist yet."""
    after: str
    executable: bool = False


def new_hook(wish: Wish, project: str) -> list[NewFile]:
    """The files of a new hook. Raises `SettingsError` if the settings cannot be extended."""
    row, recipe = EVENTS[wish.event], wish.recipe
    script = f"{DIRECTORY}/{wish.name}.{LANGUAGES[wish.language]}"
    text = recipe.scripts[wish.language] if recipe else _script(wish.name, row, wish.language)
    cases = recipe.cases if recipe else _cases(row, wish.matcher)
    entry = {"name": wish.name, **(recipe.entry if recipe else _entry(row))}
    if wish.matcher is not None:
        entry["matcher"] = wish.matcher
    settings = _read(Path(project, SETTINGS))
    try:
        base = with_schema(settings or "", Path(project, SETTINGS))
        after = append(base, ("hooks", wish.event.value), settings_group(entry, script))
    except StrictJSONError as error:
        raise SettingsError(f"{SETTINGS}:{error.line}:{error.column}: not valid JSON: {error.problem}") from None
    except TypeError as error:
        raise SettingsError(f"{SETTINGS}: cannot add a hook: {error}") from None
    return [
        NewFile(script, None, text, executable=True),
        NewFile(f"{DIRECTORY}/{wish.name}.cases.json", None, _pretty_cases(cases, wish.name)),
        NewFile(SETTINGS, settings, after),
    ]


def write(files: list[NewFile], project: str) -> None:
    """Existing files are never overwritten; settings are written only if unchanged since they were shown. Raises
    `SettingsError`; what was created until then is removed.

    Settings are written last: a hook with a missing script is worse than an unused script.
    """
    created: list[Path] = []
    try:
        for file in files:
            _write(Path(project, file.name), file, created)
    except SettingsError:
        for path in created:
            with suppress(OSError):
                path.unlink()
        raise


def _write(path: Path, file: NewFile, created: list[Path]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.before is not None:
            return _write_over(path, file)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755 if file.executable else 0o644)
        created.append(path)
        with os.fdopen(descriptor, "w", encoding="utf-8") as new:
            new.write(file.after)
    except OSError as error:
        raise SettingsError(f"{file.name} cannot be written: {error.strerror}") from None


def _write_over(path: Path, file: NewFile) -> None:
    if _read(path) != file.before:
        raise SettingsError(f"{file.name} has changed in the meantime; nothing was added to it.")
    try:
        replace(str(path), file.after.encode())
    except FileRefusedError as refusal:
        raise SettingsError(str(refusal)) from None


def _read(file: Path) -> str | None:
    try:
        content = read_project_file(str(file), "/", LARGEST_FILE)
        return None if content is None else content.decode()
    except NotReadError as error:
        raise SettingsError(f"{file} {error}.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{file}: it is not UTF-8") from None


# -------------------------------------------------------------------------------------------------------- the templates


def _can_block(row: EventRow) -> bool:
    return row.flow[Decision.BLOCK] is not Flow.PROCEED


def _field(row: EventRow) -> str:
    """The event's most informative stdin field."""
    if row.arguments:
        return row.arguments[-1][0]
    texts = [field.name for field in row.stdin if field.type == "string" and field.name not in row.aliases]
    return texts[-1] if texts else row.stdin[-1].name


def _entry(row: EventRow) -> dict[str, Any]:
    return {"onFailure": "block"} if row.function_on_failure is OnFailure.BLOCK else {}


def _cases(row: EventRow, matcher: str | None) -> dict[str, Any]:
    """One case the template lets through and, if it can block, one that it blocks."""
    tool = (matcher or "Bash").split("|")[0]
    target = {"tool": tool if re.fullmatch(r"\w+", tool) else "Bash"} if row.has_tool else {}
    payload: Mapping[str, Any] = {row.target: matcher.split("|")[0]} if matcher and row.target and not target else {}
    event = {"event": row.event.value, **target}
    if not _can_block(row):
        expect = "context" if row.text_is_context else "none"
        return {"cases": [{"name": f"{row.event} is handled", **event, "payload": payload, "expect": expect}]}
    field, called = _field(row), target.get("tool", "")
    said, calm = ({field: _said(row, field, called, word)} for word in (WORD, "fine"))
    refused = {"outcome": "block", "reason": WORD}
    return {
        "cases": [
            {"name": f"{WORD} is blocked", **event, "payload": {**payload, **said}, "expect": refused},
            {"name": "everything else is allowed", **event, "payload": {**payload, **calm}, "expect": "none"},
        ]
    }


def _said(row: EventRow, field: str, tool: str, word: str) -> Any:
    kind = next(one.type for one in row.stdin if one.name == field)
    if kind != "object":
        return word
    shape = _INPUTS.get(tool, _ANY_INPUT) if field == "tool_input" else _ANY_INPUT
    return {name: text.format(word=word) for name, text in shape.items()}


_ANY_INPUT: Mapping[str, str] = {"command": "echo {word}"}
_INPUTS: Mapping[str, Mapping[str, str]] = {
    "Write": {"file_path": "notes.txt", "content": "{word}"},
    "Edit": {"file_path": "notes.txt", "old_string": "old", "new_string": "{word}"},
    "Read": {"file_path": "{word}.txt"},
    "MultiEdit": {"file_path": "{word}.txt"},
    "NotebookEdit": {"notebook_path": "notes.ipynb", "cell_id": "cell-0", "new_source": "{word}"},
    "WebFetch": {"url": "https://example.com/{word}", "prompt": "what it is"},
    "Glob": {"pattern": "{word}*"},
    "Grep": {"pattern": "{word}"},
}
"""Sample inputs for these tools, so that a guard that checks one field has a case for it."""


def _pretty_cases(cases: Mapping[str, Any], hook: str) -> str:
    """One case per line, which is easy to read and extend. Each case runs only this hook."""
    named = [{"name": case["name"], "hook": hook, **case} for case in cases["cases"]]
    lines = ",\n".join(f"    {json.dumps(case, ensure_ascii=False)}" for case in named)
    return f'{{\n  "cases": [\n{lines}\n  ]\n}}\n'


def _script(name: str, row: EventRow, language: str) -> str:
    kind = "guard" if _can_block(row) else "context" if row.text_is_context else "log"
    text = _TEMPLATES[language, kind]
    again = _AGAIN[language] if row.block_counter else ""
    for key, value in {
        "@NAME@": name,
        "@EVENT@": row.event.value,
        "@WHEN@": row.when,
        "@FIELD@": _field(row),
        "@WORD@": WORD,
        "@AGAIN@": again,
    }.items():
        text = text.replace(key, value)
    return text


_AGAIN = {
    "bash": "# Already continued once: let the turn end, or it never would.\n"
    '[[ ! $event =~ \\"stop_hook_active\\"[[:space:]]*:[[:space:]]*true ]] || exit 0\n',
    "python": 'if event.get("stop_hook_active"):\n'
    "    sys.exit(0)  # already continued once: let the turn end, or it never would\n",
    "node": "// Already continued once: let the turn end, or it never would.\n"
    "if (event.stop_hook_active) process.exit(0);\n",
}
_BASH_HEAD = """\
#!/usr/bin/env -S bash -p
# @NAME@, on @EVENT@: @WHEN@.
"""
_PYTHON_HEAD = '''\
#!/usr/bin/env -S python3 -I
"""@NAME@, on @EVENT@: @WHEN@."""
'''
_NODE_HEAD = """\
#!/usr/bin/env node
// @NAME@, on @EVENT@: @WHEN@.
const { readFileSync } = require("node:fs");
"""
_TEMPLATES: Mapping[tuple[str, str], str] = {
    ("bash", "guard"): _BASH_HEAD
    + """\
# Exit 0: no objection. Exit 2: block, with the reason on stderr. Any other status is a failure, so no `set -e`.
# Use system programs only: none that the project could provide, and jq without ~/.jq.
project=${WAVE_PROJECT_DIR:-${CLAUDE_PROJECT_DIR:-$PWD}} own=""
IFS=: read -ra places <<<"$PATH"
for place in "${places[@]}"; do [[ $place != /* || $place/ == "$project"/* ]] || own+=:$place; done
export PATH=${own#:} HOME=/dev/null
event=$(cat)
@AGAIN@block() {
  echo "$1" >&2
  exit 2
}
command -v jq >/dev/null || block "@NAME@ needs jq and blocks everything until it is installed."
text=$(jq -nr 'input.@FIELD@ // error("no @FIELD@") | tostring' <<<"$event") ||
  block "@NAME@ cannot read the event."

if [[ $text == *@WORD@* ]]; then
  block "@WORD@ is not allowed here."
fi
exit 0
""",
    ("bash", "context"): _BASH_HEAD
    + """\
# What this prints becomes context for the model.
cat >/dev/null # the event as JSON, for a hook that wants it
echo "The project is $(basename "${WAVE_PROJECT_DIR:-$PWD}")."
""",
    ("bash", "log"): _BASH_HEAD
    + """\
# Nothing can be decided here, so it only takes a note.
event=$(cat)
printf '%s\\n' "${event//$'\\n'/ }" >>"${WAVE_PROJECT_DIR:-.}/.wave/hooks/@NAME@.log"
""",
    ("python", "guard"): _PYTHON_HEAD
    + '''
import json
import sys


def block(reason):
    """Exit 2 blocks, with the reason on stderr. Exit 1, the status of an exception, would block nothing."""
    print(reason, file=sys.stderr)
    sys.exit(2)


try:
    event = json.load(sys.stdin)
    text = json.dumps(event["@FIELD@"])
except (ValueError, KeyError, TypeError) as error:
    block(f"@NAME@ cannot read the event: {error}")
@AGAIN@
if "@WORD@" in text:
    block("@WORD@ is not allowed here.")
''',
    ("python", "context"): _PYTHON_HEAD
    + """
import os
import sys

sys.stdin.read()  # the event as JSON, for a hook that wants it
# What this prints becomes context for the model.
print(f"The project is {os.path.basename(os.environ.get('WAVE_PROJECT_DIR') or os.getcwd())}.")
""",
    ("python", "log"): _PYTHON_HEAD
    + """
import os
import sys

# Nothing can be decided here, so it only takes a note.
event = sys.stdin.read()
with open(os.path.join(os.environ.get("WAVE_PROJECT_DIR") or ".", ".wave/hooks/@NAME@.log"), "a") as log:
    log.write(" ".join(event.split()) + "\\n")
""",
    ("node", "guard"): _NODE_HEAD
    + """
// Exit 2 blocks, with the reason on stderr. Exit 1, the status of an exception, would block nothing.
function block(reason) {
  console.error(reason);
  process.exit(2);
}

let event, text;
try {
  event = JSON.parse(readFileSync(0, "utf8"));
  text = JSON.stringify(event["@FIELD@"]).toString();
} catch (error) {
  block(`@NAME@ cannot read the event: ${error.message}`);
}
@AGAIN@
if (text.includes("@WORD@")) block("@WORD@ is not allowed here.");
""",
    ("node", "context"): _NODE_HEAD
    + """\
const { basename } = require("node:path");

readFileSync(0); // the event as JSON, for a hook that wants it
// What this prints becomes context for the model.
console.log(`The project is ${basename(process.env.WAVE_PROJECT_DIR || process.cwd())}.`);
""",
    ("node", "log"): _NODE_HEAD
    + """\
const { appendFileSync } = require("node:fs");

// Nothing can be decided here, so it only takes a note.
const event = readFileSync(0, "utf8").replace(/\\s+/g, " ");
appendFileSync(`${process.env.WAVE_PROJECT_DIR || "."}/.wave/hooks/@NAME@.log`, `${event}\\n`);
""",
}
