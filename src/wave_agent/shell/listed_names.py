"""Names of files on their way from the program that prints them to one that reads them as words.

If a program prints names and nothing else, what `xargs` makes of them are the names, unless one is split.
"""

import re
from collections.abc import Mapping, Sequence

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.options import Option, has, values_of
from wave_agent.shell.printing import decode
from wave_agent.shell.values import Word

_NAME_OPTIONS: Mapping[str, re.Pattern[str]] = {
    "find": lazy_regex(r"(?!-(?:exec|ok|printf|f|ls|L|H)|--).*", re.DOTALL),
    **dict.fromkeys(
        ("grep", "egrep", "fgrep"),
        lazy_regex(
            r"(?!--).{0,1}|[^-].*|-[rlLiIyswxvEFGPZazhHn]+|-[em].*|--(?:include|exclude|exclude-dir|regexp|max-count)=.*"
            r"|--(?:recursive|files-with(?:out)?-match(?:es)?|ignore-case|null|word-regexp|line-regexp|fixed-strings"
            r"|extended-regexp|perl-regexp|basic-regexp|invert-match|no-messages|text)",
            re.DOTALL,
        ),
    ),
    "git": lazy_regex(
        r"[^-].*|--|-[lzriIwEFPGvomdcH]+|-e|--(?:name-only|files-with(?:out)?-match(?:es)?|cached|staged|others|modified|deleted"
        r"|exclude-standard|full-name|ignored|untracked|ignore-case|word-regexp|relative|diff-filter=\w+|no-renames)",
        re.DOTALL,
    ),
    **dict.fromkeys(
        ("fd", "fdfind"),
        lazy_regex(
            r"[^-].*|-[HIusigFpL0tedDE]\w*|--(?:type|extension|hidden|glob|exclude|print0|max-depth)(?:=.*)?", re.DOTALL
        ),
    ),
    "rg": lazy_regex(
        r"[^-].*|-[lisSwxFPUuNn0vzgtTe.].*|--(?:files(?:-with(?:out)?-match(?:es)?)?|hidden|null|glob|iglob|type|ignore-case"
        r"|fixed-strings|word-regexp|no-ignore|sort)(?:=.*)?",
        re.DOTALL,
    ),
}
"""Words with which each of these prints names of files, and nothing else."""
_NAMES_OF_GIT = frozenset({"diff", "grep", "ls-files"})
"""Others print commits as well, or the names with something in front."""
_STATES = lazy_regex(r"--name-status|-[a-zA-Z]*[stv][a-zA-Z]*")
_PASSED_ON: Mapping[str, re.Pattern[str]] = {
    "cat": lazy_regex(r"(?!)"),
    "tac": lazy_regex(r"(?!)"),
    "tee": lazy_regex(r"[^-].*", re.DOTALL),
    "sort": lazy_regex(r"-[bdfghinrRuVz]+"),
    "uniq": lazy_regex(r"-[diuz]+"),
    "head": lazy_regex(r"-\d+|-n|-n\d+|\d+"),
    "tail": lazy_regex(r"-\d+|-n|-n\d+|\d+"),
    **dict.fromkeys(("grep", "egrep", "fgrep"), lazy_regex(r"-[vEFPGiwxz]+|-e|[^-].*", re.DOTALL)),
}
"""Words with which each of these passes on whole lines of its input, and nothing else."""


def prints_names_only(words: Sequence[Word]) -> bool:
    name, texts = words[0].text, [word.text for word in words[1:]]
    if name not in _NAME_OPTIONS or not all(word.static for word in words):
        return False
    if name == "git" and (texts[0] not in _NAMES_OF_GIT or any(map(_STATES.fullmatch, texts))):
        return False
    return all(map(_NAME_OPTIONS[name].fullmatch, texts))


def passes_on_lines(words: Sequence[Word]) -> bool:
    name, texts = words[0].text, [word.text for word in words[1:]]
    plain = all(word.static for word in words) and all(map(_PASSED_ON[name].fullmatch, texts))
    # A second operand of grep is a file.
    return plain and ("grep" not in name or sum(not text.startswith("-") for text in texts) < 2)


AT_BLANKS, AT_QUOTES, AT_LINES, NOWHERE = r"[\s'\"\\]", r"[\n'\"\\]|^\s", r"\n", r"(?!)"


def splits_at(options: Sequence[Option]) -> str | None:
    """What `xargs` splits the names of files at, or takes out of them, as an expression. None: something of its own."""
    delimiters = values_of(options, "-d", "--delimiter")
    null = has(options, "-0", "--null")
    if has(options, "-d", "--delimiter"):
        return AT_LINES if not null and [decode(one.text) for one in delimiters] == ["\n"] else None
    if null:
        return NOWHERE
    return AT_QUOTES if has(options, "-I", "-i", "--replace") else AT_BLANKS
