"""What Write, Edit and the hooks after them have changed, turn by turn, so that it can be undone."""

import os
from collections.abc import Iterator, Mapping

from msgspec import Struct

from wave_agent.system.real_files import resolve_or_keep
from wave_agent.tools.files import FileRefusedError, KnownFiles, existing, replace

MEMORY = 64 << 20
"""Bytes of former contents that are stored; the oldest turns are forgotten first."""


class TakenBack(Struct, frozen=True, kw_only=True):
    """The result of undoing a turn. Paths."""

    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Files that the turn created."""
    refused: Mapping[str, str] = {}
    """Files that were left as they are, and why."""


class _File(Struct):
    """One file over one turn."""

    before: bytes | None
    """None: it did not exist."""
    after: bytes | None
    """None: a hook deleted it."""
    mixed: bool = False
    """Something else changed it in between."""

    @property
    def is_changed(self) -> bool:
        """False: created and deleted again, or changed and restored."""
        return self.before != self.after


class FileChanges:
    """Shared by the tools of one session."""

    def __init__(self, memory: int = MEMORY) -> None:
        self.known = KnownFiles()
        self._turns: list[dict[str, _File]] = [{}]
        self._memory = memory

    def begin_turn(self) -> None:
        """Changes noted from now on belong together."""
        if self._turns[-1]:
            self._turns.append({})

    @property
    def has_files(self) -> bool:
        """Some file was read or written in this session."""
        return bool(self.written() or self.known.latest())

    def written(self) -> tuple[str, ...]:
        """Real paths of the files this turn has changed so far."""
        return tuple(self._turns[-1])

    def note(self, path: str, before: bytes | None, after: bytes | None) -> None:
        target = resolve_or_keep(path)
        known = self._turns[-1].get(target)
        if known is None:
            self._turns[-1][target] = _File(before, after)
        else:
            self._turns[-1][target] = _File(known.before, after, known.mixed or known.after != before)
        while self._size() > self._memory:
            self._forget_oldest()

    def take_back(self) -> TakenBack:
        """Undoes the latest turn that changed a file. Files changed since are left alone."""
        none: dict[str, _File] = {}
        turn = next((turn for turn in reversed(self._turns) if any(file.is_changed for file in turn.values())), none)
        self._turns = [one for one in self._turns if one and one is not turn] or [{}]
        restored: list[str] = []
        removed: list[str] = []
        refused: dict[str, str] = {}
        for path, file in turn.items():
            if not file.is_changed:
                continue
            try:
                if existing(path) != file.after:
                    refused[path] = "it has changed since"
                elif file.mixed:
                    refused[path] = "it was changed from outside between two changes of this turn"
                elif file.before is None:
                    os.unlink(path)
                    removed.append(path)
                else:
                    replace(path, file.before)
                    restored.append(path)
            except (FileRefusedError, OSError) as error:
                refused[path] = str(error)
        self.begin_turn()
        return TakenBack(restored=tuple(restored), removed=tuple(removed), refused=refused)

    def _files(self) -> Iterator[_File]:
        return (file for turn in self._turns for file in turn.values())

    def _size(self) -> int:
        return sum(len(file.before or b"") + len(file.after or b"") for file in self._files())

    def _forget_oldest(self) -> None:
        """A turn is stored completely or not at all, including the current one."""
        self._turns = self._turns[1:] or [{}]
