"""What git runs: through an option of a subcommand, an alias or a setting."""

import re
from collections.abc import Iterator, Sequence

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.git_commands import CARRIES, COMMANDS, HARMLESS, HELPER, RUNS, SAME_AS, UNDER, UNLESS, Carries
from wave_agent.shell.options import Option, OptionTable, read, values_of
from wave_agent.shell.runs import ANY_COMMAND, Inner, ShellText, Tail, joined
from wave_agent.shell.values import UNSEEN, Word

GIT = OptionTable(
    "Cc", ("--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source", "--list-cmds")
)
_EXTERNAL = "ext::"
_NO_HOOKS = "/dev/null"
_SPLIT_BY_RULES_OF_ITS_OWN = lazy_regex(r"['\"\\]")


def git_runs(words: Sequence[Word]) -> Iterator[Inner]:
    """The command without the options before its subcommand, and what it runs."""
    options, operands = read(words, GIT)
    for setting in _settings(options):
        yield from _setting(setting, operands)
    if any(option.name == "--exec-path" and option.value is not None for option in options):
        yield ANY_COMMAND
    if not operands or operands[0].anything:
        return
    if options:
        yield Tail((Word("git"), *operands), shortened=True)
        return
    name = operands[0]
    if name.static and name.text not in COMMANDS:
        yield Tail((Word("git"), UNSEEN))
    yield from _same(operands)
    yield from _carried(operands)


def _settings(options: Sequence[Option]) -> Iterator[Word]:
    """`name=value`. With `--config-env`, the value is in a variable."""
    yield from values_of(options, "-c")
    for value in values_of(options, "--config-env"):
        yield Word(value.text, static=False)


def _setting(setting: Word, operands: Sequence[Word]) -> Iterator[Inner]:
    name, _, value = setting.text.partition("=")
    name = name.lower()
    if "." not in name and setting.static:
        return
    if HARMLESS.fullmatch(name) and not UNLESS.fullmatch(name) and _EXTERNAL not in setting.text:
        return
    if not setting.static:
        yield ANY_COMMAND
    elif name.startswith("alias."):
        yield from _alias(name.removeprefix("alias."), value, operands)
    elif RUNS.fullmatch(name):
        yield ShellText(Word(value.removeprefix("!")))
    elif HELPER.fullmatch(name):
        own = value.startswith(("!", "/"))
        yield ShellText(Word(value.removeprefix("!") if own else f"git-credential-{value}"))
    elif value != _NO_HOOKS:
        yield ANY_COMMAND


def _alias(name: str, value: str, operands: Sequence[Word]) -> Iterator[Inner]:
    if value.startswith("!"):
        yield ShellText(Word(value[1:]))
    elif operands and operands[0].text.lower() in (name, name.removesuffix(".command")):
        plain = _SPLIT_BY_RULES_OF_ITS_OWN.search(value) is None
        means = tuple(map(Word, value.split())) if plain else (UNSEEN,)
        yield Tail((Word("git"), *means, *operands[1:]))


_SUBTREE = OptionTable("Pmb", ("--prefix", "--message", "--branch", "--annotate", "--onto"))


def _same(operands: Sequence[Word]) -> Iterator[Inner]:
    if operands[0].text == "subtree":
        _, rest = read(operands, _SUBTREE, mixed=True)
        operands = [operands[0], *rest]
    texts = tuple(word.text for word in operands[:2])
    for end in range(1, len(texts) + 1):
        if texts[:end] in SAME_AS:
            yield Tail((Word("git"), Word(SAME_AS[texts[:end]]), *operands[end:]))


def _carried(operands: Sequence[Word]) -> Iterator[Inner]:
    name = operands[0].text
    yield from (_external(word.text) for word in operands[1:] if word.text.startswith(_EXTERNAL))
    carries = CARRIES.get(name)
    if carries is not None:
        reads = carries.reads
        longs = (*reads.longs, *(name for name in carries.options if len(name) > 2))
        options, rest = read(operands, OptionTable(reads.values, longs, reads.attached), mixed=carries.operands is None)
        yield from (ShellText(value) for value in values_of(options, *carries.options) if value.text)
        if name == "clone":
            yield from (one for value in values_of(options, "-c", "--config") for one in _setting(value, ()))
        if carries.operands is not None:
            yield from _command(rest[carries.operands - 1 :], carries)
    _, plain = read(operands, OptionTable())
    under = UNDER.get((name, plain[0].text)) if plain else None
    if under is not None:
        _, plain = read(plain, OptionTable())
        yield from _command(plain, under)


def _command(words: Sequence[Word], carries: Carries) -> Iterator[Inner]:
    if words and carries.script:
        yield ShellText(joined(words))
    elif words:
        yield Tail((Word("git"), *words) if carries.git else tuple(words))


def _external(address: str) -> Tail:
    """`ext::sh -c git% push`"""
    words = re.split(r"(?<!%) ", address.removeprefix(_EXTERNAL))
    return Tail(tuple(Word(word.replace("% ", " ")) for word in words))
