"""The paths that deny rules name, asked of every file of a project."""

import os
from pathlib import Path

from tests.tools.trees import write
from wave_agent.rules.rule import Places, parse_rule
from wave_agent.tools.changes.named_paths import WRITING_TOOLS, NamedPaths
from wave_agent.tools.changes.watcher import ProjectWatcher


def test_rules_name_what_they_deny(tmp_path: Path) -> None:
    rules = [parse_rule(text) for text in ("Read(.env)", "Edit(vendor/**)", "Bash(rm:*)", "Write", "Edit(~/notes)")]
    places = Places(str(tmp_path), "/home/x")
    named = NamedPaths(rules, places)
    paths = [".env", "deep/.env", "vendor/a/b", "vendored", "src/a"]
    assert [path for path in paths if named.contain(str(tmp_path / path))] == [".env", "deep/.env", "vendor/a/b"]
    assert named.contain("/home/x/notes")
    rule = named.rule_for(str(tmp_path / "vendor/a"))
    assert rule is not None
    assert rule.text == "Edit(vendor/**)"
    assert named.rule_for(str(tmp_path / "src")) is None
    assert {*named.places} == {str(tmp_path), str(tmp_path / "vendor"), "/home/x/notes"}
    writes = NamedPaths(rules, places, WRITING_TOOLS)
    assert not writes.contain(str(tmp_path / ".env"))
    assert not NamedPaths([], places)


def test_a_project_reached_through_a_link(tmp_path: Path) -> None:
    top = tmp_path.resolve()
    write(top / "real", {".env": "1", "a": "2"})
    (top / "link").symlink_to("real")
    named = NamedPaths([parse_rule("Edit(./.env)")], Places(str(top / "link"), "/home/x"))
    watcher = ProjectWatcher(str(top / "link"), top / "private", is_denied=named.contain, places=named.places)
    watcher.arm()
    write(top / "link", {".env": "x", "a": "y"})
    found = watcher.settle()
    assert [(os.path.basename(change.path), change.denied) for change in found.changes] == [
        (".env", True),
        ("a", False),
    ]
    watcher.close()
