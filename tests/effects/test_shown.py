"""Effects as hooks and people get them."""

from tests.rows import rows
from wave_agent.effects.calls import effects_of
from wave_agent.effects.shown import MEANINGS, MOST_CHARACTERS, MOST_ENTRIES, call_summary, summary, to_json
from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.values import NO_EFFECTS, UNKNOWN_EFFECTS, Effects


def test_hooks_get_lists_and_whether_they_are_all() -> None:
    found = Effects(reads=("/p/.env",), runs=(("base64",), ("cat", "x")), hosts=("a.b",), complete=False)
    assert to_json(found) == {
        "reads": ["/p/.env"],
        "writes": [],
        "deletes": [],
        "runs": [["base64"], ["cat", "x"]],
        "hosts": ["a.b"],
        "complete": False,
        "truncated": False,
    }
    assert to_json(NO_EFFECTS)["complete"] is True
    assert list(MEANINGS) == list(to_json(NO_EFFECTS))


def test_a_list_that_was_cut_is_not_complete() -> None:
    paths = tuple(f"/p/{number}" for number in range(MOST_ENTRIES + 1))
    found = to_json(Effects(reads=paths[1:], writes=paths))
    assert (found["reads"], found["writes"]) == (list(paths[1:]), list(paths[:-1]))
    assert (found["complete"], found["truncated"]) == (False, True)


def test_long_words_are_left_out_whole() -> None:
    found = to_json(Effects(runs=(("echo", "x" * MOST_CHARACTERS), ("ls",))))
    assert (found["runs"], found["complete"], found["truncated"]) == ([], False, True)


@rows(
    ("effects", "text"),
    [
        (
            Effects(reads=("/p/.env",), writes=("/p/a", "/p/b"), hosts=("api.example.com",)),
            "reads .env, writes 2 files, reaches api.example.com",
        ),
        (NO_EFFECTS, "touches no file and reaches no host"),
        (UNKNOWN_EFFECTS, "may do anything"),
        (Effects(deletes=("/p/build", "/p/build/**"), complete=False), "deletes build/ and may do more"),
        (Effects(deletes=("/p/build/**",)), "deletes everything below build"),
        (Effects(reads=("/p", "/p/**")), "reads everything here"),
        (Effects(reads=("/**",)), "reads everything below /"),
        (Effects(reads=("/etc/passwd",)), "reads /etc/passwd"),
        (Effects(reads=("/p/a[*]b[?][[]",)), "reads a*b?["),
        (Effects(reads=("/p/a\nb\x1b[31m",)), "reads a b"),
        (Effects(reads=("/p/" + "x" * 99,)), f"reads {'x' * 59}…"),
        (Effects(hosts=("a", "b")), "reaches a and b"),
        (Effects(hosts=("a", "b", "c")), "reaches 3 hosts"),
        (Effects(hosts=("a", "b", "c", "*")), "reaches 3 hosts and others"),
        (Effects(hosts=("a", "*")), "reaches a and other hosts"),
        (Effects(hosts=("*",)), "reaches a host that is not named"),
    ],
)
def test_one_line_says_what_a_call_would_do(effects: Effects, text: str) -> None:
    assert summary(effects, "/p") == text


@rows(
    ("effects", "text"),
    [
        (UNKNOWN_EFFECTS, "may do anything"),
        (Effects(reads=("/p/milk",), writes=("/p/milk", "/p/milk/**"), complete=False), "may do anything"),
        (Effects(reads=("/p/a", "/p/b"), writes=("/p/a",)), "may do anything; its arguments name a"),
        (Effects(reads=("/p/a", "/p/[*]")), "may do anything; its arguments name 2 files"),
        (Effects(writes=("/p/a/**",), hosts=("x.org",)), "may do anything; its arguments name a and x.org"),
    ],
)
def test_of_an_mcp_servers_tool_it_names_only_what_exists(effects: Effects, text: str) -> None:
    assert call_summary("mcp__s__t", effects, "/p", {"/p/a", "/p/*"}.__contains__) == text
    assert call_summary("Bash", effects, "/p", lambda _: True) == summary(effects, "/p")


@rows(
    ("command", "text"),
    [
        ('node -e "console.log(1)"', "may do anything"),
        ("""python3 -c "print(open(chr(46)+'env').read())" """, "may do anything"),
        ("""python3 -c "print(open('.env').read())" """, "may do anything"),
        ('ruby -e "puts 1"', "may do anything"),
        ("node -e .env", "reads .env and may do more"),
        ("python3 x.py -c 'a b'", "reads x.py and may do more"),
        ("echo hi > a; rm a", "writes a, deletes a"),
        ("cd sub && rm ./a", "deletes sub/a"),
        ("rm -r a", "deletes a/"),
        ("rm --recursive a", "deletes a/"),
        ("git rm -r a; rm a", "reads a/, deletes a/"),
        ("rm a b", "deletes 2 files"),
    ],
)
def test_code_is_no_file_and_a_file_is_no_directory(command: str, text: str) -> None:
    found = effects_of("Bash", {"command": command}, Surroundings(directory="/p", project="/p"))
    assert summary(found, "/p") == text


def test_the_root_is_a_directory_too() -> None:
    assert summary(Effects(reads=("/etc/x",)), "/") == "reads etc/x"
