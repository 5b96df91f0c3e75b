"""What the tools of a subagent change and read."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from wave_agent.tools.changes.turns import FileChanges, TakenBack

if TYPE_CHECKING:
    from wave_agent.tools.changes.found import FoundChanges


class SubagentChanges(FileChanges):
    """Its changes are changes of the turn above. Which of them are its own, and what it has read, only it knows."""

    def __init__(self, above: FileChanges) -> None:
        super().__init__()
        self._above = above

    def begin_turn(self) -> None:
        """Its work is part of the turn above."""

    def begin_call(self) -> None:
        self._above.begin_call()

    def of_call(self) -> tuple[str, ...]:
        return self._above.of_call()

    def written(self) -> tuple[str, ...]:
        return self._above.written()

    def changed_ever(self) -> tuple[str, ...]:
        return self._above.changed_ever()

    def note(self, path: str, before: bytes | None, after: bytes | None) -> None:
        self._above.note(path, before, after)
        self.claim()

    def note_command(self, found: "FoundChanges", restored: Collection[str] = ()) -> None:
        self._above.note_command(found, restored)
        self.claim()

    def claim(self) -> None:
        for path, file in self._above.hand_over_news().items():
            self._note(path, file)
        self._bound()

    def take_back(self) -> TakenBack:
        return self._above.take_back()
