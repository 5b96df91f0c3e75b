"""One command in many spellings: `rm -rf build` is `rm -fr build`, `rm build -r -f`, `rm --recursive --force build`.

A rule that restricts one of them restricts all of them.
"""

from collections.abc import Mapping, Sequence

_SAME: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "rm": (("r", "R", "recursive"), ("f", "force"), ("d", "dir"), ("v", "verbose")),
    "cp": (("r", "R", "recursive"), ("a", "archive"), ("f", "force")),
    "mv": (("f", "force"), ("n", "no-clobber")),
    "ln": (("s", "symbolic"), ("f", "force")),
    "chmod": (("R", "recursive"),),
    "chown": (("R", "recursive"),),
    "chgrp": (("R", "recursive"),),
    "git add": (("A", "all"), ("f", "force")),
    "git branch": (("d", "delete"), ("f", "force"), ("D",)),
    "git checkout": (("f", "force"),),
    "git clean": (("f", "force"), ("d",), ("x",)),
    "git commit": (("n", "no-verify"), ("a", "all"), ("m", "message"), ("amend",)),
    "git push": (("f", "force"), ("d", "delete"), ("tags",), ("all",), ("mirror",), ("no-verify",)),
    "git rm": (("r",), ("f", "force"), ("cached",)),
    "git switch": (("f", "force", "discard-changes"), ("c", "create"), ("C", "force-create")),
    "git tag": (("d", "delete"), ("f", "force")),
    "docker rm": (("f", "force"), ("v", "volumes")),
    "docker rmi": (("f", "force"),),
    "docker system prune": (("f", "force"), ("a", "all"), ("volumes",)),
    "npm install": (("g", "global"), ("f", "force")),
    "npm publish": (("f", "force"),),
}
"""Commands whose one-letter options can be combined → the options that mean the same."""


def says_the_same(rule: Sequence[str], command: Sequence[str], *, whole: bool) -> bool:
    """Whether a command starts with the words of a rule and has all of the rule's options, in any position and form.
    False for a rule without options. `whole`: the command has no further words except options."""
    asked, words = _parted(rule)
    if not asked or not command or not words:
        return False
    given, begun = _parted(command)
    if not begun or begun[0].rpartition("/")[2] != words[0].rpartition("/")[2]:
        return False
    if (begun[1:] if whole else begun[1 : len(words)]) != words[1:]:
        return False
    same = _groups(words)
    return _names(asked, same) <= _names(given, same)


def _parted(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Options and other words."""
    end = list(words).index("--") if "--" in words else len(words)
    options = [word for word in words[1:end] if len(word) > 1 and word.startswith("-")]
    return options, [word for at, word in enumerate(words) if at != end and (at > end or word not in options)]


def _groups(words: Sequence[str]) -> tuple[tuple[str, ...], ...] | None:
    """None for a command if it is unknown whether its one-letter options can be combined."""
    name = [words[0].rpartition("/")[2], *words[1:]]
    return next((_SAME[" ".join(name[:length])] for length in (3, 2, 1) if " ".join(name[:length]) in _SAME), None)


def _names(options: Sequence[str], same: tuple[tuple[str, ...], ...] | None) -> set[str]:
    found: set[str] = set()
    for option in options:
        name = option.partition("=")[0]
        if same is None:
            found.add(name)
        elif name.startswith("--"):
            found.add(_first_of(name[2:], same))
        else:
            found.update(_first_of(letter, same) for letter in name[1:])
    return found


def _first_of(name: str, same: tuple[tuple[str, ...], ...]) -> str:
    """The name of an option's group. GNU programs and git accept unambiguous prefixes of a long name."""
    exact = next((group[0] for group in same if name in group), None)
    if exact is not None or len(name) == 1:
        return exact or name
    return next((group[0] for group in same for one in group if len(one) > 1 and one.startswith(name)), name)
