"""What the disk adds to the effects of a call."""

import os
from pathlib import Path

import pytest

from tests.rows import rows
from wave_agent.effects.values import Effects
from wave_agent.permissions.existing_files import leads_outside, on_disk
from wave_agent.rules.rule import Places, parse_rule


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = ("p/.env", "p/src/a.py", "p/src/deep/.env", "p/vendor/lib/x.c", "p/secrets/key", "out/far", "out/in/far2")
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return tmp_path / "p"


def added(project: Path, effects: Effects, *rules: str) -> set[str]:
    """The paths that were added, relative to the project."""
    found = on_disk(effects, map(parse_rule, rules), Places(str(project), "/home/me"))
    assert found.unsure is None
    before = {*effects.reads, *effects.writes, *effects.deletes}
    after = {*found.effects.reads, *found.effects.writes, *found.effects.deletes}
    assert before <= after
    return {os.path.relpath(path, project) for path in after - before}


@rows(
    ("pattern", "rule", "expected"),
    [
        ("**", "Read(.env)", {".env"}),
        ("*", "Read(.env)", set()),
        (".*", "Read(.env)", {".env"}),
        (".e?v", "Read(.env)", {".env"}),
        ("src/**", "Read(.env)", {"src/deep/.env"}),
        ("src/*", "Read(.env)", set()),
        ("*/*/.e*", "Read(.env)", {"src/deep/.env"}),
        ("*/deep/*", "Read(.env)", set()),
        ("**/*.py", "Read(.env)", set()),
        ("**/*.py", "Read(src/**)", {"src/a.py"}),
        ("**", "Read(secrets/key)", {"secrets/key"}),
        ("**", "Read(secrets/none)", set()),
        ("**", "Read(//usr/none/**)", set()),
        ("src/**", "Read(secrets/**)", set()),
        ("none/**", "Read(.env)", set()),
        ("none/*/x", "Read(.env)", set()),
        ("[z-a]", "Read(.env)", set()),
        ("**", "Edit(.env)", set()),
        ("**", "Net(*)", set()),
        ("**", "Read", set()),
    ],
)
def test_of_a_pattern_the_first_existing_file_that_a_rule_covers_is_added(
    project: Path, pattern: str, rule: str, expected: set[str]
) -> None:
    assert added(project, Effects(reads=(f"{project}/{pattern}",)), rule) == expected


def test_a_pattern_that_a_rule_covers_by_its_form_needs_no_search(project: Path) -> None:
    assert added(project, Effects(reads=(f"{project}/src/**",)), "Read(src/**)") == set()


def test_an_unknown_directory_stands_for_every_one(project: Path) -> None:
    assert added(project, Effects(reads=("/**/.env",)), "Read(.env)") & {".env", "src/deep/.env"}


@rows("kind", ["writes", "deletes"])
def test_rules_about_changes_are_compared_with_writes_and_deletes(project: Path, kind: str) -> None:
    everything = (f"{project}/**",)
    effects = Effects(writes=everything) if kind == "writes" else Effects(deletes=everything)
    assert added(project, effects, "Edit(vendor/**)") == {"vendor/lib/x.c"}
    assert added(project, effects, "Write(vendor/**)") == {"vendor/lib/x.c"}
    assert added(project, effects, "Read(vendor/**)") == set()


def test_a_link_stands_for_its_target(project: Path) -> None:
    (project / "notes").symlink_to(".env")
    (project / "way").symlink_to("secrets")
    assert added(project, Effects(reads=(f"{project}/notes",)), "Read(.env)") == {".env"}
    assert added(project, Effects(writes=(f"{project}/way/new",)), "Edit(secrets/**)") == {"secrets/new"}
    assert added(project, Effects(reads=(f"{project}/n*",)), "Read(.env)") == {".env"}
    assert added(project, Effects(reads=(f"{project}/w*/*",)), "Read(secrets/**)") == {"secrets/key"}
    assert added(project, Effects(reads=(f"{project}/way/**",)), "Read(secrets/**)") == {"secrets/key"}


def test_who_deletes_a_link_does_not_delete_its_target(project: Path) -> None:
    (project / "notes").symlink_to(".env")
    (project / "way").symlink_to("secrets")
    assert added(project, Effects(deletes=(f"{project}/notes",)), "Edit(.env)") == set()
    assert added(project, Effects(deletes=(f"{project}/way/key",)), "Edit(secrets/**)") == {"secrets/key"}


def test_links_inside_a_tree_are_followed_once(project: Path) -> None:
    (project / "src/round").symlink_to(project / "src")
    (project / "src/up").symlink_to(project)
    (project / "src/notes").symlink_to(project / "secrets/key")
    assert added(project, Effects(reads=(f"{project}/src/**",)), "Read(secrets/key)") == {"secrets/key"}
    (project / "src/notes").unlink()
    (project / "src/way").symlink_to(project / "secrets")
    assert added(project, Effects(reads=(f"{project}/src/**",)), "Read(secrets/**)") == {"secrets/key"}


def test_a_rule_about_a_link_covers_what_is_behind_it(project: Path) -> None:
    (project / "elsewhere").symlink_to(project.parent / "out")
    assert added(project, Effects(reads=(f"{project}/**",)), "Read(elsewhere/**)") & {"../out/far", "../out/in/far2"}


def test_other_names_of_a_file_are_added(project: Path) -> None:
    os.link(project / ".env", project / "src/copy")
    assert added(project, Effects(reads=(f"{project}/src/copy",)), "Read(/.env)") >= {".env"}


def test_a_search_that_is_too_long_is_not_certain(project: Path) -> None:
    places, effects = Places(str(project), "/home/me"), Effects(reads=(f"{project}/**",))
    assert on_disk(effects, [parse_rule("Read(none)")], places, most=5).unsure == f"{project}/**"
    assert on_disk(effects, [parse_rule("Read(none)")], places, most=500).unsure is None
    flat = Effects(reads=(f"{project}/*",))
    assert on_disk(flat, [parse_rule("Read(none)")], places, most=1).unsure == f"{project}/*"


# ------------------------------------------------------------------------------------------------------ inside or not


def test_patterns_inside_the_project_lead_nowhere_else(project: Path) -> None:
    (project / "notes").symlink_to(".env")
    (project / "src/up").symlink_to(project)
    patterns = (str(project), f"{project}/**", f"{project}/*/a*", f"{project}/notes", f"{project}/none")
    assert leads_outside(patterns, [str(project)]) is None


def test_a_link_that_leads_outside_is_outside(project: Path) -> None:
    (project / "src/far").symlink_to(project.parent / "out/far")
    (project / "src/far.py").symlink_to(project.parent / "out/far")
    (project / "way").symlink_to(project.parent / "out")
    for inner in (
        "../out/far",
        "../out/*",
        "../**",
        "src/far",
        "src/f*",
        "src/**",
        "way/far",
        "w*/far",
        "**",
        "**/*.py",
        "*",
    ):
        assert leads_outside((os.path.normpath(f"{project}/{inner}"),), [str(project)]) is not None, inner
    for inner in ("src/a*", "vendor/**", "v*", ".env"):
        assert leads_outside((f"{project}/{inner}",), [str(project)]) is None, inner


def test_a_link_to_a_directory_inside_is_looked_through(project: Path) -> None:
    (project / "src/way").symlink_to(project / "vendor")
    (project / "vendor/far").symlink_to(project.parent / "out/far")
    assert leads_outside((f"{project}/src/**",), [str(project)]) == str(project.parent / "out/far")


def test_what_cannot_be_looked_through_is_outside(project: Path) -> None:
    assert leads_outside((f"{project}/**",), [str(project)], most=3) == f"{project}/**"
