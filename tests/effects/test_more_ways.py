"""Ways to read and to write that only a second look shows: patterns that become several words, files of options."""

from tests.effects.arena import effects, surroundings
from tests.rows import rows
from wave_agent.effects.only_reading import only_reads
from wave_agent.effects.shown import summary
from wave_agent.effects.surroundings import Surroundings

AROUND = Surroundings(directory="/p", project="/p", variables={"HOME": "/h"})
REAL = surroundings("/p")


@rows(
    ("line", "path"),
    [
        ("strings @.env", "/p/.env"),
        ("nm @.env", "/p/.env"),
        ("ar @.env", "/p/.env"),
        ("gcc @.env", "/p/.env"),
        ("javac --x=@.env", "/p/.env"),
        ("git config -f .env -l", "/p/.env"),
        ("git config --file .env -l", "/p/.env"),
        ("git config --file=.env -l", "/p/.env"),
        ("git config -l", "/h/.gitconfig"),
        ("git config list", "/h/.config/git/config"),
        ("git config --list", "/etc/gitconfig"),
        ("git config --global --get-regexp .", "/h/.gitconfig"),
        ("git config --system -l", "/etc/gitconfig"),
        ("git config --get http.extraHeader", "/h/.gitconfig"),
        ("git config --get $NAME", "/h/.gitconfig"),
        ("bash --rcfile .env -i", "/p/.env"),
        ("bash --init-file .env -i", "/p/.env"),
        ("bash --rcfile .env -ic true", "/p/.env"),
        ("git notes add -F .env", "/p/.env"),
        ("git tag -F .env x", "/p/.env"),
        ("git commit -t .env", "/p/.env"),
        ("shopt -s dotglob; cat a/*nv", "/p/a/**"),
        ("shopt -s $X; cat a/*nv", "/p/a/**"),
        ("GLOBIGNORE=x; cat *nv", "/p/**"),
        ("shopt -s extglob\ncat .@(env|x)", "/**"),
        ("cat .[\\e]nv", "/p/.[e]nv"),
        ("cat x[ab]", "/p/x[[]ab]"),
        ("cd -P d/.. && cat key", "/**/key"),
        ("env -C d/.. cat key", "/**/key"),
        ("grep .e*", "/p/.e*"),
        ("jq .e*", "/p/.e*"),
        ("rg .e*", "/p/.e*"),
        ("cp .e*", "/p/.e*"),
        ("zip .e*", "/p/.e*"),
    ],
)
def test_reads(line: str, path: str) -> None:
    assert path in effects(line, AROUND).reads


@rows(
    ("line", "path"),
    [
        ("uniq two/*", "/p/two/*"),
        ("xxd two/?", "/p/two/?"),
        ("cp two/*", "/p/two/*"),
        ("cp --parents sub/../a.txt out", "/p/out/**"),
        ("mv two/*", "/p/two/*"),
        ("split two/*", "/p/two/**"),
        ("rsync two/*", "/p/two/*"),
        ("chown two/*", "/p/two/*"),
        ("/usr/bin/time -o out true", "/p/out"),
        ("command time --output=out true", "/p/out"),
        ("strace -o out true", "/p/out"),
        ("strace -ff -oout true", "/p/out.*"),
        ("ltrace -o out true", "/p/out"),
        ("valgrind --log-file=out ./x", "/p/out"),
        ("perf record -o out ls", "/p/out"),
        ("script out", "/p/out"),
        ("flock out ls", "/p/out"),
    ],
)
def test_writes(line: str, path: str) -> None:
    assert path in effects(line, AROUND).writes


def test_links_are_followed_before_two_dots() -> None:
    links = {"/p/d": ("/p/secret/x",), "/p/*": ("/p/secret/x", "/p/sub")}
    around = Surroundings(directory="/p", project="/p", behind=lambda path: links.get(path, (path,)))
    assert effects("cat d/../key", around).reads == ("/p/key", "/p/secret/key")
    assert effects("cd d && cat ../key", around).reads == ("/p/key", "/p/secret/key")
    assert effects("cat */../key", around).reads == ("/p/key", "/p/secret/key")
    assert "/p/secret/key" in effects("tar -C d/.. -cf /x key", around).reads
    assert effects("echo > d/../key", around).writes == ("/p/key", "/p/secret/key")
    unknown = Surroundings(directory="/p", project="/p", behind=lambda _: None)
    assert not effects("cat d/../key", unknown).complete
    many = Surroundings(directory="/p", project="/p", behind=lambda path: [f"{path}/{n}/x" for n in range(99)])
    assert not effects("cat d/../key", many).complete


def test_what_a_command_changes_besides_files_is_not_left_out() -> None:
    assert summary(effects("git branch new", AROUND), "/p") == "names no file and no host"
    assert summary(effects("ls", AROUND), "/p") == "touches no file and reaches no host"


@rows(
    "line",
    [
        "strings @.env",
        "git stash -- list",
        "git stash -p",
        "git stash list -p",
        "git log --patch-with-stat",
        "git log --binary",
        "git log --patch-with-r",
        "git reflog -p",
        "git config --blob HEAD:x -l",
        "git config --edit",
        "git hash-object --stdin-paths < list",
        "git hash-object -w --stdin-paths < list",
        "git update-index --add --stdin < list",
        "git update-index --index-info < list",
        "git notes edit",
        "strace -o '|touch x' true",
        "valgrind ls",
        "bash --rcfile x -ic true",
    ],
)
def test_incomplete(line: str) -> None:
    assert not effects(line, AROUND).complete


@rows(
    "line",
    [
        "uniq two/*",
        "xxd two/?",
        "uniq ./*",
        "git stash -- list",
        "git stash -q list",
        "git worktree -- list",
        "git worktree -v list",
        "git branch -- new",
        "git branch --list -- new",
        "git tag -- new",
        "git tag -l -- new",
        "git remote -- get-url",
        "git reflog -- expire",
        "git reflog delete HEAD@{1}",
        "git notes list",
        "git bisect log",
        "git submodule status",
        "strings @.env",
    ],
)
def test_more_than_reading(line: str) -> None:
    assert not only_reads(line, effects(line, REAL), REAL)


@rows(
    ("line", "complete"),
    [
        ("grep '' *", False),
        ("wc */*/*", False),
        ("wc ?r.txt", True),
        ("wc [!x]r", False),
        ("cat -- *", True),
        ("cat ./*", True),
        ("cat *.py", True),
        ("cat src*.py", True),
    ],
)
def test_a_file_may_be_named_like_an_option(line: str, complete: bool) -> None:
    around = Surroundings(directory="/p", project="/p", option_names=lambda _: ["-r", "--files0-from="])
    assert effects(line, around).complete is complete
    assert effects(line, AROUND).complete


@rows("line", ["git config --local -l", "git config --get user.name", "git config --get remote.origin.url"])
def test_settings_of_the_user_that_git_uses_in_any_command(line: str) -> None:
    found = effects(line, AROUND)
    assert (found.reads, found.complete) == ((), True)


def test_where_the_user_has_settings() -> None:
    elsewhere = Surroundings(directory="/p", project="/p", variables={"HOME": "/h", "XDG_CONFIG_HOME": "/x"})
    assert "/x/git/config" in effects("git config --global -l", elsewhere).reads
    assert not effects("git config -l", Surroundings(directory="/p", project="/p")).complete


@rows(
    "line",
    ["sleep infinity", "seq inf", "sleep 1d", "git branch --sort=signature", "git tag -l --sort=-signature:key"],
)
def test_not_only_reading(line: str) -> None:
    assert not only_reads(line, effects(line, REAL), REAL)


def test_a_short_sleep_only_reads() -> None:
    assert only_reads("sleep 5; seq 1 20", effects("sleep 5; seq 1 20", REAL), REAL)
