"""The files that a hook's command names, as far as one can tell without running it."""

import os
import re
import shlex
from collections.abc import Iterator, Sequence

_PROJECT = re.compile(
    r"\$(?:\{(?:(?:WAVE|CLAUDE)_PROJECT_DIR|PWD)(?::?-[^}]*)?\}|(?:(?:WAVE|CLAUDE)_PROJECT_DIR|PWD)\b)"
)
_COMPUTED_PROJECT = re.compile(r"\$\(\s*(?:git\s+rev-parse\s+--show-toplevel|pwd)(?:\s+2>\s*/dev/null)?\s*\)")
"""Common ways to write the project's directory."""
_PLUGIN = re.compile(r"\$(?:CLAUDE_PLUGIN_ROOT\b|\{CLAUDE_PLUGIN_ROOT\})")
_BLANKS = " \t\n"
_PUNCTUATION = "();<>|&\n"


def named_files(command: str, args: Sequence[str] | None, project: str, *, plugin_root: str = "") -> tuple[str, ...]:
    """Absolute paths: what exists as a file, and what looks like a path and may come to exist.

    What the command only writes to is left out: a log that grows is not what runs.
    """
    if plugin_root:
        command = _PLUGIN.sub(lambda _: shlex.quote(plugin_root), command)
    words = [command, *args] if args is not None else list(_read_words(command))
    found: dict[str, None] = {}
    for position, word in enumerate(words):
        if position and words[position - 1] == "-m":
            found.update(dict.fromkeys(_module_files(word, project)))
        path = os.path.join(project, os.path.expanduser(_PROJECT.sub(lambda _: project, word)))
        one_word = not any(blank in word for blank in _BLANKS)
        looks_like_one = "/" in word and (one_word or word.startswith(("/", "./", "~/", "$")))
        if "\0" not in path and not os.path.isdir(path) and (looks_like_one or os.path.isfile(path)):
            found[os.path.normpath(path)] = None
    return tuple(found)


def _read_words(command: str) -> Iterator[str]:
    """The words of a command line, less the targets of output redirections and what `tee` writes."""
    lexer = shlex.shlex(_COMPUTED_PROJECT.sub("${PWD}", command), posix=True, punctuation_chars=_PUNCTUATION)
    lexer.commenters, lexer.whitespace, lexer.whitespace_split = "", " \t\r", True
    try:
        tokens = list(lexer)
    except ValueError:  # a quote that is not closed
        tokens = command.split()
    written, program = False, ""
    for token in tokens:
        if token and set(token) <= set(_PUNCTUATION):
            written = ">" in token and "(" not in token
            program = program if set(token) <= set("<>&") and token != "&" else ""
            continue
        if not written and program != "tee":
            program = program or token.rsplit("/", 1)[-1]
            yield token
            yield from _parts(token)
        written = False


def _parts(token: str) -> Iterator[str]:
    """`--config=x/y` names x/y; a quoted program such as that of `bash -c` names what stands in it."""
    if "=" in token:
        yield token.partition("=")[2]
    if any(blank in token for blank in _BLANKS):
        yield from _read_words(token)


def _module_files(module: str, project: str) -> Iterator[str]:
    """What `python -m a.b` would run, if it is the project's."""
    base = os.path.join(project, *module.split("."))
    for path in (f"{base}.py", os.path.join(base, "__main__.py"), os.path.join(base, "__init__.py")):
        if "\0" not in path and os.path.isfile(path):
            yield path
