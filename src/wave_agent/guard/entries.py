"""The guard in the text of a host's settings: adding it, removing it, finding it. Pure; everything else in the text
stays as it is."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from wave_agent.formats.json_edits import append, remove
from wave_agent.formats.strict_json import Path, StrictJSONError, parse_document
from wave_agent.guard.hosts import HOSTS, HostRow
from wave_agent.guard.lines import guard_line, is_guard_line, timeout_for
from wave_agent.hooks.events import EVENTS

_BEGIN = "# wave guard: begin (remove with: wave guard uninstall {host})"
_END = "# wave guard: end"
_BLOCK = re.compile(r"\n?# wave guard: begin[^\n]*\n.*?# wave guard: end[^\n]*\n?", re.DOTALL)


class EntriesError(Exception):
    """The settings of a host cannot be changed. The message says why, and what to do."""


class InstalledHook(Struct, frozen=True):
    """A hook in a host's settings."""

    event: str
    command: str
    path: Path = ()

    @property
    def is_guard(self) -> bool:
        return is_guard_line(self.command)


class SettingsForm(Struct, frozen=True):
    """How the settings of a host are written."""

    read: Callable[[str], list[InstalledHook]]
    add: Callable[[HostRow, str, Sequence[str], Sequence[str]], str]
    drop: Callable[[str], str]
    """Raise `EntriesError`."""


def installed(host: str, text: str, program: Sequence[str], flags: Sequence[str] = ()) -> str:
    """The text with the guard in it, as this version installs it. Raises `EntriesError`."""
    kind = KINDS[host]
    return kind.add(HOSTS[host], kind.drop(text), program, flags)


def uninstalled(host: str, text: str) -> str:
    """The text without the guard; empty if nothing is left. Raises `EntriesError`."""
    left = KINDS[host].drop(text)
    return "" if left != text and left.strip("\ufeff \t\r\n") in _NOTHING else left


_NOTHING = ("", "{}", '{\n  "version": 1\n}', '{"version": 1}')


def entries(host: str, text: str) -> list[InstalledHook]:
    """The hooks in the text. Raises `EntriesError`."""
    return KINDS[host].read(text)


# ---------------------------------------------------------------------------------------------------------------- JSON


def _document(text: str) -> Mapping[str, Any]:
    if not text.strip("\ufeff \t\r\n"):
        return {}
    try:
        value = parse_document(text).value
    except StrictJSONError as error:
        raise EntriesError(f"it is not JSON: {error}. Fix it first; comments are not JSON") from None
    if not isinstance(value, dict):
        raise EntriesError("it is not a JSON object")
    return cast(dict[str, Any], value)


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise EntriesError(f"{where} is not a list; fix it first")
    return cast(list[Any], value)


def _events(text: str) -> Iterator[tuple[str, list[Any]]]:
    hooks: Any = _document(text).get("hooks", {})
    if not isinstance(hooks, dict):
        raise EntriesError("hooks is not an object; fix it first")
    for event, value in cast(dict[str, Any], hooks).items():
        if isinstance(value, list):  # some hosts have options beside the events
            yield event, cast(list[Any], value)


def _grouped(text: str) -> list[InstalledHook]:
    """`{"hooks": {EVENT: [{"matcher": …, "hooks": [{"command": …}]}]}}`"""
    found: list[InstalledHook] = []
    for event, groups in _events(text):
        for number, group in enumerate(groups):
            inner: Any = cast(dict[str, Any], group).get("hooks") if isinstance(group, dict) else None
            for place, entry in enumerate(_list(inner or [], f"hooks.{event}[{number}].hooks")):
                command: Any = cast(dict[str, Any], entry).get("command") if isinstance(entry, dict) else None
                found.append(InstalledHook(event, str(command or ""), ("hooks", event, number, "hooks", place)))
    return found


def _flat(key: str) -> Callable[[str], list[InstalledHook]]:
    """`{"hooks": {EVENT: [{key: …}]}}`"""

    def read(text: str) -> list[InstalledHook]:
        found: list[InstalledHook] = []
        for event, given in _events(text):
            for number, entry in enumerate(given):
                command: Any = cast(dict[str, Any], entry).get(key) if isinstance(entry, dict) else None
                found.append(InstalledHook(event, str(command or ""), ("hooks", event, number)))
        return found

    return read


def _drop_json(read: Callable[[str], list[InstalledHook]]) -> Callable[[str], str]:
    def drop(text: str) -> str:
        while (ours := next((entry.path for entry in read(text) if entry.is_guard), None)) is not None:
            text = remove(text, ours)
            for place in range(len(ours) - 1, 0, -1):  # what only held the guard goes with it
                holder = ours[:place]
                if not isinstance(holder[-1], int) and not _at(text, holder):
                    is_group = place > 2
                    text = remove(text, ours[: place - 1] if is_group else holder)
        return text

    return drop


def _at(text: str, path: Path) -> Any:
    value: Any = parse_document(text).value
    for step in path:
        value = value[step]
    return value


def _add_json(entry: Callable[[HostRow, str, str], Any], top: Mapping[str, Any]) -> Callable[..., str]:
    """`top` has what must be beside `hooks`."""

    def add(row: HostRow, text: str, program: Sequence[str], flags: Sequence[str]) -> str:
        if not text.strip("\ufeff \t\r\n") and top:
            text = json.dumps(top, indent=2) + "\n"
        missing = [key for key in top if key not in _document(text)]
        if missing:
            raise EntriesError(f'it has no "{missing[0]}"; add "{missing[0]}": {json.dumps(top[missing[0]])} first')
        for name in row.installed:
            line = guard_line(row.name, name, program, flags)
            try:
                text = append(text, ("hooks", name), entry(row, name, line))
            except TypeError as error:
                raise EntriesError(f"{error}; fix it first") from None
        return text

    return add


def _group(row: HostRow, name: str, line: str) -> Any:
    timeout = int(timeout_for(row.name, name) * row.factor)
    return {"hooks": [{"type": "command", "command": line, "timeout": timeout}]}


def _cursor_entry(_: HostRow, __: str, line: str) -> Any:
    return {"command": line, "failClosed": True}


def _copilot_entry(row: HostRow, name: str, line: str) -> Any:
    return {"type": "command", "bash": line, "timeoutSec": timeout_for(row.name, name)}


_GROUPED = SettingsForm(_grouped, _add_json(_group, {}), _drop_json(_grouped))
_CURSOR = SettingsForm(_flat("command"), _add_json(_cursor_entry, {"version": 1}), _drop_json(_flat("command")))
_COPILOT = SettingsForm(_flat("bash"), _add_json(_copilot_entry, {"version": 1}), _drop_json(_flat("bash")))


# ---------------------------------------------------------------------------------------------------------------- TOML


def _toml(text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise EntriesError(f"it is not TOML: {error}. Fix it first") from None


def _tables(key: str) -> Callable[[str], list[InstalledHook]]:
    """`[[hooks]]`, with the event under `key`."""

    def read(text: str) -> list[InstalledHook]:
        found = _list(_toml(text).get("hooks", []), "hooks")
        given = [cast(dict[str, Any], entry) for entry in found if isinstance(entry, dict)]
        return [InstalledHook(str(entry.get(key, "")), str(entry.get("command", ""))) for entry in given]

    return read


def _add_toml(table: Callable[[str, str], Mapping[str, Any]]) -> Callable[..., str]:
    def add(row: HostRow, text: str, program: Sequence[str], flags: Sequence[str]) -> str:
        newline = "\r\n" if "\r\n" in text else "\n"
        lines = ["" if text else None, _BEGIN.format(host=row.name)]
        for name in row.installed:
            line = guard_line(row.name, name, program, flags)
            fields = {**table(name, line), "timeout": timeout_for(row.name, name)}
            # A string of JSON in ASCII is one of TOML, and so are its numbers and booleans.
            lines += ["[[hooks]]", *(f"{key} = {json.dumps(value)}" for key, value in fields.items())]
        added = newline.join(line for line in (*lines, _END, "") if line is not None)
        text = f"{text}{added}" if not text or text.endswith("\n") else f"{text}{newline}{added}"
        try:
            _toml(text)
        except EntriesError:
            raise EntriesError('its "hooks" are not [[hooks]] tables; write them so first') from None
        return text

    return add


def _drop_toml(text: str) -> str:
    _toml(text)
    return _BLOCK.sub("", text)


def _kimi_table(name: str, line: str) -> Mapping[str, Any]:
    return {"event": name, "command": line}


def _vibe_table(name: str, line: str) -> Mapping[str, Any]:
    """With `strict`, a hook that fails denies."""
    strict = {"strict": True} if EVENTS[HOSTS["vibe"].events[name]].has_tool else {}
    return {"name": f"wave-guard-{name}", "type": name, "command": line, **strict}


# -------------------------------------------------------------------------------------------------------- a plugin


_PLUGIN = """// wave guard: asks `wave` about every tool call. Remove with: wave guard uninstall opencode
import {{ spawnSync }} from "node:child_process"

const lines = {lines}

function ask(event, payload) {{
  const done = spawnSync("sh", ["-c", lines[event]], {{ input: JSON.stringify(payload), encoding: "utf8" }})
  if (done.error || done.status !== 0) return {{ deny: "wave guard is not available: " + (done.stderr || done.error) }}
  try {{
    return done.stdout.trim() ? JSON.parse(done.stdout) : {{}}
  }} catch (error) {{
    return {{ deny: "wave guard gave no answer: " + error }}
  }}
}}

export const WaveGuard = async ({{ directory }}) => ({{
  "tool.execute.before": async (input, output) => {{
    const about = {{ session_id: input.sessionID, tool_use_id: input.callID, cwd: directory }}
    const answer = ask("tool.execute.before", {{ ...about, tool_name: input.tool, tool_input: output.args }})
    if (answer.deny) throw new Error(answer.deny)
    if (answer.input) output.args = answer.input
  }},
  "tool.execute.after": async (input, output) => {{
    const about = {{ session_id: input.sessionID, tool_use_id: input.callID, cwd: directory }}
    const call = {{ tool_name: input.tool, tool_input: input.args ?? {{}}, tool_response: output.output }}
    const answer = ask("tool.execute.after", {{ ...about, ...call }})
    if (typeof answer.output === "string") output.output = answer.output
  }},
}})
"""
_PLUGIN_LINES = re.compile(r"^const lines = (\{.*\})$", re.MULTILINE)


def _plugin_entries(text: str) -> list[InstalledHook]:
    found = _PLUGIN_LINES.search(text)
    lines: dict[str, str] = json.loads(found[1]) if found and text.startswith("// wave guard:") else {}
    return [InstalledHook(event, line) for event, line in lines.items()]


def _add_plugin(row: HostRow, text: str, program: Sequence[str], flags: Sequence[str]) -> str:
    if text.strip():
        raise EntriesError("it is not the guard's own plugin; move it away first")
    lines = {name: guard_line(row.name, name, program, flags) for name in row.installed}
    return _PLUGIN.format(lines=json.dumps(lines))


def _drop_plugin(text: str) -> str:
    return "" if _plugin_entries(text) else text


KINDS: Mapping[str, SettingsForm] = {
    **dict.fromkeys(("claude", "codex", "gemini", "qwen"), _GROUPED),
    "kimi": SettingsForm(_tables("event"), _add_toml(_kimi_table), _drop_toml),
    "vibe": SettingsForm(_tables("type"), _add_toml(_vibe_table), _drop_toml),
    "cursor": _CURSOR,
    "copilot": _COPILOT,
    "opencode": SettingsForm(_plugin_entries, _add_plugin, _drop_plugin),
}
"""How each host writes its hooks."""
