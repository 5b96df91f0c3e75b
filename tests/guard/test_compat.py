"""Our own agent reads the settings of other agents without the entries that ask the guard."""

import json
from pathlib import Path
from typing import Any

from wave_agent.formats.strict_json import Document
from wave_agent.guard.entries import installed
from wave_agent.guard.hosts import HOSTS
from wave_agent.guard.lines import PROGRAM, flags_for, guard_line
from wave_agent.hooks.definitions import Layer
from wave_agent.settings.guard_lines import GUARD_LINE
from wave_agent.settings.hook_entries import SettingsSource, load_hooks, parse_settings
from wave_agent.settings.other_agents import as_foreign

GUARD: dict[str, Any] = {"type": "command", "command": guard_line("claude", "PreToolUse")}
OWN = {"type": "command", "command": "./own.sh"}


def foreign(text: str) -> SettingsSource:
    return as_foreign(parse_settings(text, Layer.PROJECT, "/p/.claude/settings.json"))


def test_every_installed_line_is_recognised() -> None:
    for host, row in HOSTS.items():
        for name in row.installed:
            for program in (PROGRAM, ("/a b/wave", "guard", "run"), ("/py", "-I", "-S", "/x y/guard/client.py")):
                for flags in ((), flags_for(pass_allow=True), flags_for(pass_allow=True, commit="a" * 40)):
                    line = guard_line(host, name, program, flags)
                    assert GUARD_LINE.fullmatch(line), line
                    assert GUARD_LINE.fullmatch(line.removeprefix("[ -r '/x y/guard/client.py' ] && ")), "as before"


def test_entries_of_the_guard_are_skipped_and_the_others_keep_their_lines() -> None:
    text = installed("claude", '{\n "hooks": {\n  "Stop": [\n   {"hooks": [\n    {"command": "./own.sh"}]}]}}', PROGRAM)
    both = text.replace(
        '{"command": "./own.sh"}', f'{{"command": "true"}}, {json.dumps(GUARD)},\n{{"command": "./own.sh"}}'
    )
    found = load_hooks([foreign(both)])
    assert [(hook.event.value, hook.command, hook.line) for hook in found.hooks] == [
        ("Stop", "true", 5),
        ("Stop", "./own.sh", 6),
    ]
    assert not found.issues


def test_a_group_after_the_guard_keeps_its_place() -> None:
    groups = ",\n".join(json.dumps({"matcher": "Bash", "hooks": [entry]}) for entry in (GUARD, OWN))
    text = f'{{"hooks": {{"PreToolUse": [{groups}]}}}}'
    (hook,) = load_hooks([foreign(text)]).hooks
    assert (hook.command, hook.line, hook.path[2]) == ("./own.sh", 2, 0)


def test_odd_settings_are_left_for_others_to_report() -> None:
    for value in ({"hooks": "guard"}, {"hooks": {"Stop": "guard", "PreToolUse": ["guard", {"hooks": "x"}]}}):
        source = SettingsSource(Layer.PROJECT, str(Path("/p/s.json")), Document(value, {(): 1}))
        assert as_foreign(source).document.value["hooks"] == value["hooks"]
