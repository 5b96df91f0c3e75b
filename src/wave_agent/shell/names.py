"""Command names written as patterns, and words that are not names."""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.effort import spend
from wave_agent.shell.values import Word
from wave_agent.shell.wrappers import RUN_OTHERS
from wave_agent.shell.writes import WRITERS

_COMMON = (
    "cat chmod chown curl docker git kill killall make nc node npm npx pip pip3 pkill python python3 reboot ssh scp"
)
NAMES = sorted({*RUN_OTHERS, *WRITERS, *_COMMON.split(), "shutdown", "systemctl", "wget", "yarn"})
"""Commands that a pattern may match. Which other programs exist, the line does not say."""
_DESCRIPTOR = lazy_regex(r"\{[A-Za-z_]\w*\}")
_MOST = 16


def meant(words: Sequence[Word]) -> Iterator[tuple[Word, ...]]:
    """Other commands that this one may be."""
    pattern = (words[0].glob or "").rsplit("/", 1)[-1]
    if re.search(r"[\w-]", pattern):
        spend(200 + 8 * len(pattern))
        names = [name for name in NAMES if fnmatchcase(name, pattern)]
        yield from ((Word(name), *words[1:]) for name in names[:_MOST])
    if len(words) > 1 and words[1].static and re.fullmatch(r"[\w*?\[\]-]+", words[1].glob or ""):
        yield (words[0], Word(words[1].text, static=False), *words[2:])
    # `git {fd}>log push`: the number of the redirection is stored in a variable.
    rest = tuple(word for word in words[1:] if not _DESCRIPTOR.fullmatch(word.text))
    if len(rest) + 1 < len(words):
        yield (words[0], *rest)
