"""Rules that restrict a command hold for it however its options are written."""

from hypothesis import given
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.rules.rule import Places, Purpose, parse_rule
from wave_agent.shell.spellings import says_the_same

PLACES = Places("/project", "/home/me")


def restricted(rule: str, line: str) -> bool:
    return parse_rule(f"Bash({rule})").matches("Bash", {"command": line}, PLACES)


@rows(
    "line",
    [
        "rm -rf build",
        "rm -fr build",
        "rm -r -f build",
        "rm -Rf build",
        "rm -rfv build",
        "rm -v -rf build",
        "rm build -rf",
        "rm -r build -f",
        "rm --recursive --force build",
        "rm --recu --forc build",
        "rm -r --force build",
        "/bin/rm -fr build",
        "sudo rm -fr build",
        "find . -name build -exec rm -fr {} +",
        "echo build | xargs rm -fr",
        "true && rm -f -- -r; rm -f -r -- build",
        "sh -c 'rm -fr build'",
    ],
)
@rows("rule", ["rm -rf:*", "rm -rf *"])
def test_the_same_options_in_another_spelling(rule: str, line: str) -> None:
    assert restricted(rule, line)


@rows(
    ("rule", "line"),
    [
        ("rm -rf:*", "rm -r build"),
        ("rm -rf:*", "rm -f build"),
        ("rm -rf:*", "rm -f -- -r"),
        ("rm -rf:*", "rm build"),
        ("rm -rf:*", "cp -rf a b"),
        ("rm -rf:*", "ls -rf"),
        ("git push --force:*", "git push origin main"),
        ("git push --force:*", "git push --force-with-lease"),
        ("git push --force:*", "git pull --force"),
        ("rm -rf /", "rm -fr build"),
        ("find . -delete:*", "find . -type f -maxdepth 1 -ls"),
        ("terraform apply -auto-approve:*", "terraform apply"),
    ],
)
def test_other_options_or_another_command(rule: str, line: str) -> None:
    assert not restricted(rule, line)


@rows(
    ("rule", "line"),
    [
        ("git push --force:*", "git push origin main -f"),
        ("git push -f:*", "git push origin --force"),
        ("git commit -n:*", "git commit -m 'x' --no-verify"),
        ("git commit --no-verify:*", "git commit -anm x"),
        ("git clean -fdx:*", "git clean -x -d --force"),
        ("docker system prune -af:*", "docker system prune --all --force"),
        ("rm -rf /", "rm -fr /"),
        ("find . -delete:*", "find . -type f -delete"),
        ("terraform apply -auto-approve:*", "terraform apply plan.out -auto-approve"),
        ("kubectl delete --all:*", "kubectl delete pods --all=true"),
    ],
)
def test_other_commands(rule: str, line: str) -> None:
    assert restricted(rule, line)


def test_a_permission_stays_as_it_is_written() -> None:
    rule = parse_rule("Bash(rm -rf:*)")
    assert rule.matches("Bash", {"command": "rm -rf x"}, PLACES, Purpose.PERMIT)
    assert not rule.matches("Bash", {"command": "rm -fr x"}, PLACES, Purpose.PERMIT)


OPTIONS = st.sampled_from(["-r", "-f", "-rf", "-fr", "-Rf", "--recursive", "--force", "-v", "-x", "-i"])


@given(st.lists(st.one_of(OPTIONS, st.sampled_from(["build", "a b", "--", "-"])), max_size=6))
def test_a_command_has_the_options_or_not(words: list[str]) -> None:
    options = words[: words.index("--")] if "--" in words else words
    letters = set("".join(word[1:] for word in options if word.startswith("-") and not word.startswith("--")).lower())
    recursive = "r" in letters or "--recursive" in options
    forced = "f" in letters or "--force" in options
    assert says_the_same(["rm", "-rf"], ["rm", *words], whole=False) is (recursive and forced)


def test_nothing_says_nothing() -> None:
    assert not says_the_same(["rm", "-rf"], [], whole=False)
    assert not says_the_same(["rm", "-rf"], ["--"], whole=False)
    assert not says_the_same([], ["rm", "-rf"], whole=False)
    assert not says_the_same(["rm"], ["rm", "-rf"], whole=False)
