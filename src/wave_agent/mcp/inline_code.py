"""Code in the arguments of a program, and the places that they let it load code from: `node -e`, `java -cp`."""

from collections.abc import Iterator, Sequence

from wave_agent.lazy_regex import lazy_regex
from wave_agent.mcp.launchers import LauncherRow, option_values

_MODULE = lazy_regex(r"""["'`](@?[\w][\w./@-]{0,200})["'`]""")
_MOST_MODULES = 100


def inline_code(row: LauncherRow, words: Sequence[str]) -> tuple[str, ...] | None:
    """The code, and the names of modules, that a program with these arguments runs. None if there is none.

    Looks at all words: where the options of a program end, and those of its script begin, depends on options that are
    not known here.
    """
    found = [*words] if row.runs_arguments else []
    for word, following in zip(words, (*words[1:], ""), strict=False):
        name, equals, value = word.partition("=")
        if name in row.code_options:
            found.append(value if equals else following)
        elif word[:1] == "-" != word[1:2] and (letters := set(word[1:]) & set(row.code_letters)):
            attached = min(word.index(letter, 1) for letter in letters) + 1
            found += [word[attached:], following]
    return tuple(filter(None, found)) if found or row.runs_arguments else None


def module_names(code: str) -> tuple[str, ...]:
    """What may be names of modules in it: the code itself, if it is just one, and everything in quotes."""
    quoted = [one[1] for one, _ in zip(_MODULE.finditer(code), range(_MOST_MODULES), strict=False)]
    return tuple(dict.fromkeys([*([code] if _MODULE.fullmatch(f"'{code}'") else []), *quoted]))


def searched_directories(row: LauncherRow, words: Sequence[str]) -> Iterator[str]:
    """Where it loads code from, because an option says so: `-cp .:lib/*`."""
    for _, value in option_values(words, row.search_options):
        yield from ((one.removesuffix("*") or ".") for one in value.split(":"))
