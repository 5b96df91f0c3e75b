"""Arguments that are lines of Bash, for a tool that may run them."""

from collections.abc import Iterable

from wave_agent.effects.argument_texts import ArgumentText
from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.values import ANY_HOST, Effects
from wave_agent.lazy_regex import lazy_regex

_MOST = 8
"""Lines of one call that are read."""
_LONGEST = 2000
_LIKE_A_LINE = lazy_regex(r"\S\s+\S")


def line_effects_in(texts: Iterable[ArgumentText], directories: Iterable[str], variables: dict[str, str]) -> Effects:
    """What those texts would do in each of these directories that start a known program. Nothing is looked up."""
    lines = [one.text for one in texts if len(one.text) <= _LONGEST and _LIKE_A_LINE.search(one.text)]
    found: list[Effects] = []
    places = tuple(directories)
    for line in dict.fromkeys(lines[:_MOST]):
        # lazy: the tables of programs are large, and most arguments are no lines
        from wave_agent.effects.lines import line_effects
        from wave_agent.effects.programs import PROGRAMS

        for directory in places:
            surroundings = Surroundings(directory=directory, project=directory, variables=variables)
            effects = line_effects(line, surroundings)
            if any(run[0].rpartition("/")[2] in PROGRAMS for run in effects.runs):
                found.append(effects)
    return Effects(
        reads=tuple(dict.fromkeys(path for one in found for path in one.reads)),
        writes=tuple(dict.fromkeys(path for one in found for path in (*one.writes, *one.deletes))),
        hosts=tuple(dict.fromkeys(host for one in found for host in one.hosts if host != ANY_HOST)),
    )
