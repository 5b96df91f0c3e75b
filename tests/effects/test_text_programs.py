"""Scripts for sed and awk: what one implementation takes for a label or a text is a command to another."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.effects.arena import effects, surroundings
from tests.rows import rows
from wave_agent.effects.only_reading import only_reads
from wave_agent.effects.sed_scripts import read_sed_script

AROUND = surroundings("/srv/project")
WRITING = [
    ":a w out",
    ": a w out",
    ":a\tw out",
    "1{:a w out\n}",
    "b a w out\n:a",
    "ba w out\n:a",
    "bx\tw out\n:x",
    "T a;:a w out",
    "t a;:a\tw out",
    "s/x/y/;:a w out",
    ":a;w out",
    "}w out",
    "p;}w out",
    "# comment\\\nw out",
    "a text\nw out",
    "a\\ \nw out",
    "i\\\ntext\nw out",
    "c\nw out",
    "s/a/b/gw out",
    "s/[]/]/;w out",
    "s/[[:alpha:]]/x/w out",
    "/[/]w out/p\nw out",
    "y/a/b/;w out",
    "$!{w out\n}",
    "2q;w out",
    "\\,a,w out",
    "0,/x/w out",
    "1~2w out",
    "1,~4W out",
    "p w out",
    "s/a/b/ w out",
    ":a}a w out",
]
"""Scripts that write to `out`, to at least one sed."""


@rows("text", WRITING)
def test_a_script_that_writes_says_where(text: str) -> None:
    assert "out" in read_sed_script(text).writes


@rows(
    "text",
    [
        ":a e touch x",
        ":a r /etc/hostname",
        "ba}a w out",
        "b a w out",
        ":x a\\\nw out",
        ":x;a\\\nw out",
        "a\\ \nw out",
        "# comment\\\nw out",
        "s/[/]/x/",
        "/[/]/p",
        "s/a\nb/c/",
        "w \\x41",
        "s/x/y/m",
        "v",
        "}x}y",
    ],
)
def test_what_sed_may_read_otherwise_is_not_understood(text: str) -> None:
    assert not read_sed_script(text).understood


@rows(
    "text",
    [
        ":a;N;$!ba;s/\\n/ /g",
        ":a\nN\n$!ba",
        "/x/{s/a/b/;b}",
        "/x/{p;b};d",
        "ta # again",
        "s/[]a]*x/y/",
        "s/[^[:space:]]*$//",
        "/^[[:blank:]]*#/d",
        "\\|[a]x|p",
        "s/\\[x/y/",
        "#n\np",
        "$!N;P;D",
    ],
)
def test_usual_scripts_are_understood(text: str) -> None:
    assert read_sed_script(text).understood


@rows(
    "line",
    [
        *(f"sed '{text}' a.txt" for text in WRITING),
        "sed -ne':a w out' a.txt",
        "sed '--expression=:a w out' a.txt",
        "sed --exp ':a e touch out' a.txt",
        "sed 'w out' -e p a.txt",
        "sed 'w out' a.txt -f script",
        "sed p a.txt -e 'w out'",
        "sed -I s/a/b/ a.txt",
        "sed -n s/a*/b/p a.txt",
        "awk 'BEGIN { print ENVIRON[\"X\"] }'",
        "awk 'BEGIN { for (x in SYMTAB) print x }'",
        "awk 'BEGIN { extension(\"x\") }'",
        "awk 'BEGIN { sys\\\ntem(\"x\") }'",
        "awk a* b.txt",
    ],
)
def test_such_commands_do_more_than_read(line: str) -> None:
    assert not only_reads(line, effects(line, AROUND), AROUND)


def test_files_that_one_sed_takes_for_a_script_are_read() -> None:
    assert "/srv/project/secret" in effects("sed secret -e p", AROUND).reads
    assert "/srv/project/s*" in effects("sed s* a", AROUND).reads
    assert "/srv/project/s*" in effects("awk s* a", AROUND).reads
    assert effects("gawk 1 /inet/tcp/0/evil.example/80", AROUND).hosts == ("evil.example",)


@pytest.mark.skipif(shutil.which("sed") is None, reason="needs sed")
def test_what_this_machines_sed_writes_is_listed(tmp_path: Path) -> None:
    """Each script is run: whatever it makes is among its writes."""
    for text in WRITING:
        (tmp_path / "a.txt").write_text("a\nb\n")
        subprocess.run(["sed", text, "a.txt"], cwd=tmp_path, capture_output=True, timeout=20, check=False)
        made = {path.name for path in tmp_path.iterdir()} - {"a.txt"}
        assert made <= set(read_sed_script(text).writes), text
        for name in made:
            (tmp_path / name).unlink()
