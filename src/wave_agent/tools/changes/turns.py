"""What tools, commands and hooks have changed, turn by turn, so that it can be undone."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from wave_agent.system.real_files import resolve_or_keep
from wave_agent.tools.files import KnownFiles

if TYPE_CHECKING:  # the rest of this package is loaded when a file is changed
    from wave_agent.tools.changes.found import FoundChanges
    from wave_agent.tools.changes.undo import NotedFile

FileEvent: TypeAlias = Literal["add", "change", "unlink"]
MEMORY = 64 << 20
"""Bytes of former contents that are stored; the oldest turns are forgotten first."""


class TakenBack(Struct, frozen=True, kw_only=True):
    """The result of undoing a turn. Paths."""

    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Files that the turn created."""
    refused: Mapping[str, str] = {}
    """Files that were left as they are, and why."""


class _Turn:
    def __init__(self) -> None:
        self.files: dict[str, NotedFile] = {}
        self.directories: set[str] = set()
        """Those that commands created."""

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files.values())

    @property
    def changed(self) -> set[str]:
        return {path for path, file in self.files.items() if file.is_changed}


class FileChanges:
    """Shared by the tools of one session."""

    def __init__(self, memory: int = MEMORY) -> None:
        self.known = KnownFiles()
        self._turns: list[_Turn] = [_Turn()]
        self._memory = memory
        self._size = 0
        self._call: set[str] = set()
        self._news: dict[str, NotedFile] = {}
        """What has happened to files since `take_news`."""
        self._forgotten: set[str] = set()
        """Changed in this turn, but too much to be stored."""
        self._earlier: set[str] = set()
        """Changed in earlier turns that are not stored any more."""

    def begin_turn(self) -> None:
        """Changes noted from now on belong together."""
        self._news.clear()
        self._earlier |= self._forgotten
        self._forgotten.clear()
        if self._turns[-1].files:
            self._turns.append(_Turn())

    def begin_call(self) -> None:
        self._call.clear()

    def of_call(self) -> tuple[str, ...]:
        """Real paths of the files whose changes were noted since `begin_call`."""
        return tuple(sorted(self._call))

    def claim(self) -> None:
        """Whatever was noted just now was done by the agent whose changes these are. Only a subagent has to say so:
        commands are watched by the agent above."""

    def hand_over_news(self) -> "dict[str, NotedFile]":
        """What `take_news` would return, for another agent to report."""
        news, self._news = self._news, {}
        return news

    def take_news(self) -> "list[tuple[str, FileEvent]]":
        """The files whose changes were noted since the last call, by path, and what happened to each."""
        return [
            (path, "add" if file.before is None else "unlink" if file.after is None else "change")
            for path, file in sorted(self.hand_over_news().items())
            if file.is_changed
        ]

    @property
    def has_files(self) -> bool:
        """Some file was read or written in this session."""
        return bool(self.written() or self.known.latest())

    def written(self) -> tuple[str, ...]:
        """Real paths of the files that tools, and hooks after them, have changed in this turn so far."""
        return tuple(path for path, file in self._turns[-1].files.items() if file.by_tool)

    def changed(self) -> tuple[str, ...]:
        """Real paths of the files that are different from the start of this turn, by commands too."""
        return tuple(sorted({*self._forgotten, *self._turns[-1].changed}))

    def changed_ever(self) -> tuple[str, ...]:
        """The same for all turns of this session that were not undone."""
        stored = (path for turn in self._turns for path in turn.changed)
        return tuple(sorted({*self._earlier, *self._forgotten, *stored}))

    def note(self, path: str, before: bytes | None, after: bytes | None) -> None:
        """A tool, or a hook after it, has changed the file."""
        from wave_agent.tools.changes.undo import noted_by_tool  # lazy: many sessions change nothing

        self._note(resolve_or_keep(path), noted_by_tool(before, after))
        self._bound()

    def note_command(self, found: "FoundChanges", restored: Collection[str] = ()) -> None:
        """A command has changed these files. `restored`: these are as before again."""
        from wave_agent.tools.changes.undo import NotedFile  # lazy: many sessions run no command

        for change in found.changes:
            if change.path not in restored:
                self._note(change.path, NotedFile(change.before, change.after, by_tool=False))
        if self._turns[-1].files:
            self._turns[-1].directories.update(found.directories)
        self._bound()

    def _note(self, path: str, file: "NotedFile") -> None:
        self._call.add(path)
        files = self._turns[-1].files
        known = files.get(path)
        if known is not None:
            self._size -= known.size
            later, file = file, known.followed_by(file)
            if file is not known:
                self._add_news(path, later)
        else:
            self._add_news(path, file)
        files[path] = file
        self._size += file.size

    def _add_news(self, path: str, file: "NotedFile") -> None:
        known = self._news.get(path)
        self._news[path] = file if known is None else known.followed_by(file)

    def _bound(self) -> None:
        """A turn is stored completely or not at all, including the current one."""
        while self._size > self._memory:
            self._size -= self._turns[0].size
            (self._forgotten if len(self._turns) == 1 else self._earlier).update(self._turns[0].changed)
            self._turns = self._turns[1:] or [_Turn()]

    def take_back(self) -> TakenBack:
        """Undoes the latest turn that changed a file. Files changed since are left alone."""
        turn = next((turn for turn in reversed(self._turns) if turn.changed), None)
        self._turns = [one for one in self._turns if one.files and one is not turn] or [_Turn()]
        self.begin_turn()
        if turn is None:
            return TakenBack()
        from wave_agent.tools.changes.undo import Undo  # lazy: most sessions undo nothing

        self._size -= turn.size
        undo = Undo()
        undo.run(turn.files, turn.directories)
        self._earlier.update(undo.refused)
        return TakenBack(restored=tuple(undo.restored), removed=tuple(undo.removed), refused=undo.refused)
