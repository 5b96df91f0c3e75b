"""Scripts, Makefiles, package.json, justfiles and aliases: the text in them is part of the call."""

from collections.abc import Mapping

from tests.rows import rows
from wave_agent.effects.calls import effects_of
from wave_agent.effects.makefiles import read_makefile
from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.values import Effects


def effects(line: str, files: Mapping[str, str], directory: str = "/p", **variables: str) -> Effects:
    found = {f"/p/{name}": text for name, text in files.items()}
    around = Surroundings(
        directory=directory,
        project="/p",
        variables={"HOME": "/h", **variables},
        read_text=found.get,
        git_alias=lambda name, _: {"out": "push origin", "loop": "loop", "all": "!git out && cat x"}.get(name),
        git_remote=lambda name, _: {"origin": "https://far.example/x", "here": "/srv/other"}.get(name),
    )
    return effects_of("Bash", {"command": line}, around)


def test_arguments_reach_the_script() -> None:
    found = effects("bash x.sh .env out.txt", {"x.sh": 'cp "$1" "$2"'})
    assert "/p/.env" in found.reads
    assert "/p/out.txt" in found.writes
    assert found.complete


def test_a_script_is_read_itself() -> None:
    assert effects("bash x.sh", {"x.sh": "true"}).reads == ("/p/x.sh",)


def test_a_script_that_is_not_there_makes_the_effects_incomplete() -> None:
    assert not effects("bash x.sh", {}).complete
    assert not effects("./x.sh", {}).complete
    assert not effects(". x.sh", {}).complete


@rows(
    ("first", "complete"),
    [
        ("#!/bin/sh\n", True),
        ("#!/usr/bin/env bash\n", True),
        ("#! /usr/bin/env -S bash -e\n", True),
        ("#!/usr/bin/python3\n", False),
        ("#!/usr/bin/fish\n", False),
        ("", False),
    ],
)
def test_a_file_is_looked_into_if_its_first_line_names_a_shell(first: str, complete: bool) -> None:
    found = effects("./x .env", {"x": f"{first}cat secret\n"})
    assert ("/p/secret" in found.reads) is complete
    assert found.complete is complete


def test_three_levels_are_looked_into() -> None:
    files = {"a.sh": "bash b.sh", "b.sh": "bash c.sh", "c.sh": "cat third; bash d.sh", "d.sh": "cat fourth"}
    found = effects("bash a.sh", files)
    assert "/p/third" in found.reads
    assert "/p/fourth" not in found.reads
    assert not found.complete
    assert effects("bash b.sh", {**files, "d.sh": "true"}).complete


def test_a_cycle_is_cut() -> None:
    found = effects("bash a.sh", {"a.sh": "cat x; bash a.sh"})
    assert "/p/x" in found.reads
    assert not found.complete


def test_the_same_script_twice_is_no_cycle() -> None:
    assert effects("bash a.sh; bash a.sh && ./b.sh", {"a.sh": "cat x", "b.sh": "#!/bin/sh\nsh a.sh"}).complete


def test_scripts_are_limited_in_length() -> None:
    found = effects("bash a.sh", {"a.sh": "# long\n" * 40_000 + "cat x"})
    assert "/p/x" not in found.reads
    assert not found.complete


def test_a_directory_that_nobody_knows() -> None:
    assert not effects('cd "$UNKNOWN"; bash a.sh', {"a.sh": "cat x"}).complete
    assert not effects('cd "$UNKNOWN" && make', {"Makefile": "a:\n\ttrue"}).complete
    assert not effects('cd "$UNKNOWN" && just', {"justfile": "a:\n  true"}).complete


@rows(
    ("line", "complete"),
    [
        ("bash --version", True),
        ("bash -c 'true'", True),
        ("bash -ec true", True),
        ("echo true | bash", True),
        ("bash -s < x.sh", False),
        ("bash", False),
        ("bash -", False),
        ("bash -l x.sh", False),
        ("bash --rcfile y x.sh", False),
        ("fish x.sh", False),
        ('bash "$X"', False),
        ("bash *.sh", False),
        ("bash x.sh $ARGUMENT", False),
        ("source /dev/stdin <<< true", True),
        ("source /dev/stdin", False),
        ("source", True),
        ("bash <(echo true)", True),
        ("echo true > y.sh; bash y.sh", False),
    ],
)
def test_shells(line: str, complete: bool) -> None:
    assert effects(line, {"x.sh": "true"}).complete is complete


def test_an_alias_of_git_is_resolved() -> None:
    assert effects("git out main", {}).hosts == ("far.example",)
    found = effects("git all", {})
    assert found.hosts == ("far.example",)
    assert "/p/x" in found.reads
    assert not effects("git unheard-of", {}).complete
    assert not effects("git loop", {}).complete


def test_a_remote_may_be_a_directory() -> None:
    found = effects("git fetch here", {})
    assert found.hosts == ()
    assert "/srv/other/**" in found.reads
    assert effects("git fetch file:///srv/x", {}).reads == ("/srv/x", "/srv/x/**")


# ----------------------------------------------------------------------------------------------------------------- make

MAKEFILE = """\
# comment
SRC := a.txt b.txt
SRC += c.txt
OUT ?= out.txt
OUT ?= other.txt
export NAME = x
.PHONY: all clean
all: build | dirs # first
build: $(SRC)
\t@cat $^ > $(OUT) && \\
\t  cat $<
\t-rm -f ${OUT}.bak
dirs: ; mkdir -p build
clean:
\t$(RM) $(OUT)
again: again2
again2: again
\t$(MAKE) clean
shell:
\tfor f in $(SRC); do cat "$$f"; done
name:
\techo > $@
"""


def test_make_runs_the_recipes_of_a_target_and_what_it_needs() -> None:
    files = {"Makefile": MAKEFILE, "a.txt": "", "b.txt": "", "c.txt": ""}
    found = effects("make", files)
    assert {"/p/Makefile", "/p/a.txt", "/p/b.txt", "/p/c.txt"} <= set(found.reads)
    assert {"/p/out.txt", "/p/build"} <= set(found.writes)
    assert "/p/out.txt.bak" in found.deletes
    assert found.complete
    assert effects("make clean OUT=x.txt", files).deletes == ("/p/x.txt", "/p/x.txt/**")
    assert "/p/out.txt" in effects("make again", files).deletes
    assert "/p/name" in effects("make name", files).writes
    assert "/p/b.txt" in effects("make shell", files).reads


def test_make_elsewhere() -> None:
    files = {"sub/other.mk": "a:\n\tcat x", "sub/Makefile": "a:\n\tcat y"}
    assert "/p/sub/x" in effects("make -C sub -f other.mk", files).reads
    assert "/p/sub/y" in effects("cd sub && make -j4 a", files).reads


@rows(
    "text",
    [
        "include other.mk\na:\n\ttrue",
        "ifdef X\nendif\na:\n\ttrue",
        "X != date\na:\n\ttrue",
        "SHELL = python\na:\n\ttrue",
        "a: b.o\n\ttrue",
        "%.o: %.c\n\tcc $<\na: x.o\n\ttrue",
        "a:\n\tcat $(UNKNOWN)",
        "a:\n\tcat $(wildcard *.txt)",
        "a:\n\tcat $*",
        "A = $(B)\nB = $(A)\na:\n\tcat $(A)",
        "what is this",
        "a: $(shell ls)\n\ttrue",
        "",
    ],
)
def test_makefiles_that_are_not_understood(text: str) -> None:
    assert not effects("make", {"Makefile": text}).complete


@rows(
    ("line", "complete"),
    [
        ("make --version", True),
        ("make -n", True),
        ("make a", True),
        ("make --eval='x:;y' a", False),
        ("make $X", False),
        ("make -f a.mk -f b.mk", False),
        ("make -f missing.mk", False),
        ("make unheard-of", False),
    ],
)
def test_options_of_make(line: str, complete: bool) -> None:
    assert effects(line, {"Makefile": "a:\n\ttrue"}).complete is complete


def test_a_makefile_with_very_many_targets() -> None:
    text = "a: " + " ".join(f"t{at}" for at in range(600)) + "\n" + "".join(f"t{at}:\n" for at in range(600))
    assert not read_makefile(text, [], {}, lambda _: False).complete


# --------------------------------------------------------------------------------------------------------- package.json


@rows(
    ("line", "read"),
    [
        ("npm run build", "/p/built"),
        ("npm test", "/p/tested"),
        ("npm t", "/p/tested"),
        ("npm run-script build -- --x", "/p/built"),
        ("yarn build", "/p/built"),
        ("yarn", "/p/installed"),
        ("pnpm run build", "/p/built"),
        ("npm install", "/p/installed"),
        ("npm --prefix . run build", "/p/built"),
        ("npm run build", "/p/before"),
        ("npm run after", "/p/after"),
    ],
)
def test_package_scripts(line: str, read: str) -> None:
    text = (
        '{"scripts": {"build": "cat built", "prebuild": "cat before", "test": "cat tested", "postinstall": "cat '
        'installed", "after": "true", "postafter": "cat after"}}'
    )
    found = effects(line, {"package.json": text}, directory="/p/sub" if "prefix" not in line else "/p")
    assert read in found.reads
    assert not found.complete


@rows("text", ["", "[]", '{"scripts": 3}', '{"scripts": {"test": 3}}', "[" * 100_000, "{}"])
def test_any_package_file(text: str) -> None:
    assert not effects("npm test", {"package.json": text}).complete


@rows("line", ["npm", "npm run", "npm whoami", "pnpm", "npm test"])
def test_without_a_script_nothing_is_read(line: str) -> None:
    assert effects(line, {}).reads == ()


# ----------------------------------------------------------------------------------------------------------------- just

JUSTFILE = """\
# comment
[private]
default: build
  echo done

build:
  @cat a.txt \\
    b.txt
"""


def test_just() -> None:
    found = effects("just", {"justfile": JUSTFILE}, directory="/p/sub")
    assert {"/p/justfile", "/p/a.txt", "/p/b.txt"} <= set(found.reads)
    assert found.complete


@rows(
    ("line", "text", "complete"),
    [
        ("just build", "build:\n  true", True),
        ("just -f other build", "build:\n  true", False),
        ("just unheard-of", "build:\n  true", False),
        ("just build", "x := 'y'\nbuild:\n  true", False),
        ("just build", "build arg:\n  true", False),
        ("just build", "build: (other 'x')\n  true", False),
        ("just build", "build:\n  cat {{x}}", False),
        ("just build", "build:\n  #!/usr/bin/env python\n  x", False),
        ("just --set x y build", "build:\n  true", False),
        ("just --list", "", True),
        ("just", "", False),
        ("just a", "a: b\nb: a\n  true", True),
    ],
)
def test_justfiles(line: str, text: str, complete: bool) -> None:
    assert effects(line, {"justfile": text}).complete is complete


def test_without_a_justfile() -> None:
    assert not effects("just", {}).complete
