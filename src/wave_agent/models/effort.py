"""How hard a model is asked to think, and what is asked of it once its server has refused that."""

import re
from collections.abc import Collection

from wave_agent.models.base import EFFORTS

_COMMON = 3
"""How many levels a server knows that knows any."""
_QUOTED = re.compile(r"""['"`](low|medium|high|xhigh|max)['"`]""")


class AcceptedEffort:
    """What one server accepts. Assumed to be everything; what it refuses is not asked again."""

    def __init__(self) -> None:
        self._model = ""
        self._asked: str | None = None
        self._instead: dict[str, str | None] = {}
        """What is asked in place of a level that was refused; None: nothing."""

    def of(self, wanted: str | None, model: str) -> str | None:
        """What to ask this model for."""
        if model != self._model:
            self._model, self._instead = model, {}
        while wanted in self._instead:
            wanted = self._instead[wanted]
        self._asked = wanted
        return wanted

    def adapts_to(self, message: str, *names: str) -> bool:
        """True: the server refused the level that it was asked for last, and the next request asks for another one, or
        none. `names` are those of the field, one of which a refusal contains."""
        asked = self._asked
        if asked is None:
            return False
        named: set[str] = set(_QUOTED.findall(message))
        if not (any(name in message for name in names) or (asked in named and asked in EFFORTS[_COMMON:])):
            return False
        self._instead[asked] = _other(asked, named, {asked, *self._instead})
        return True


def _other(asked: str, named: Collection[str], refused: Collection[str]) -> str | None:
    """The nearest of the levels that a refusal names, rather a lower one. If it names only the one that was asked for,
    the next lower one, in case the server knows others."""
    at = EFFORTS.index(asked) if asked in EFFORTS else _COMMON
    offered = [one for one in EFFORTS if one in named and one not in refused]
    lower = [one for one in offered if EFFORTS.index(one) < at]
    if offered:
        return lower[-1] if lower else offered[0]
    next_lower = EFFORTS[at - 1]
    return next_lower if asked in named and at >= _COMMON and next_lower not in refused else None
