"""Regular expressions that are compiled on first use: a start uses few of those that its modules define."""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    lazy_regex = re.compile
else:

    def lazy_regex(pattern, flags=0):
        """Like `re.compile`; a mistake in the pattern raises when it is first used."""
        return _LazyRegex(pattern, flags)


class _LazyRegex:
    """Has the methods and attributes of a compiled pattern."""

    def __init__(self, *given: Any) -> None:
        self._given = given

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._given)
        for method in ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"):
            setattr(self, method, getattr(compiled, method))  # found without `__getattr__` from now on
        return getattr(compiled, name)
