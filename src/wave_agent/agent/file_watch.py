"""What calls really did to files: for hooks, for undo, and for rules that deny a change which could not be foreseen.

A call that acts is enclosed by two looks at the project (`tools/changes/watcher`). Between calls, changes are those of
background commands if any was running, otherwise someone else's, which are left alone.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from wave_agent.agent.call_results import CallChanges
from wave_agent.agent.result import Violation
from wave_agent.errors import SessionError
from wave_agent.formats.readable import readable_text
from wave_agent.messages import HARNESS, MessageManager, TextBlock
from wave_agent.permissions.decision import RestoreApprover, RestoreRequest, UnforeseenChange
from wave_agent.rules.rule import Places, Rule
from wave_agent.system.threads import Delivery, Mailbox, start_in_thread
from wave_agent.text import strip_controls
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.changes.found import FileChange, FoundChanges
from wave_agent.tools.changes.named_paths import WRITING_TOOLS, NamedPaths
from wave_agent.tools.changes.restoring import RestoredFile, restore
from wave_agent.tools.changes.watcher import ProjectWatcher
from wave_agent.tools.files import uninterrupted

NAMED = 10
"""Maximum number of files named in one message."""
PATIENCE = 15.0
"""Seconds that a call waits for the first look at the project. A home directory may take minutes."""
_OTHERS = "a background command or an async hook ran meanwhile, and may have changed it"
_INTERRUPTED = "the turn was interrupted before you could be asked"
_CHOSEN = "you chose to keep the change"
_ADVICE = "A rule forbids changing it by any means: do without it, or tell the user."


class WatchedPlaces(Struct, frozen=True, kw_only=True):
    """Where it watches, and where it stores what."""

    project: str
    own: tuple[str, ...]
    """Directories in which the agent itself writes."""
    contents: Path
    """For former contents."""
    displaced: Path
    """For changed versions of protected files."""


class _Ended(Struct, frozen=True):
    """What became of a change that a rule denies."""

    change: FileChange
    rule: Rule | None
    done: RestoredFile | None
    """None: it was not tried."""
    why: str = ""
    """Why not."""

    @property
    def restored(self) -> bool:
        return self.done is not None and self.done.outcome != "refused"


class FileWatch:
    """One for a session that acts. Its calls act one at a time."""

    def __init__(
        self,
        places: WatchedPlaces,
        rules: Sequence[Rule],
        patterns: Places,
        environment: Mapping[str, str],
        *,
        changes: FileChanges,
        messages: MessageManager,
        record: Callable[[Mapping[str, Any]], None],
        is_busy: Callable[[], bool],
        others: Callable[[], bool] = lambda: False,
        approver: RestoreApprover | None = None,
        patience: float = PATIENCE,
    ) -> None:
        """`rules` are those that deny, `patterns` the places their paths are relative to. `record` writes a violation
        to the transcript. `is_busy`: a command runs in the background; `others`: something else does that may change
        files. The `approver` is asked before anything is restored. Begins to watch at once, in a thread.
        """
        self._places = places
        self._named = NamedPaths(rules, patterns)
        self._protected = NamedPaths(rules, patterns, WRITING_TOOLS)
        self._unreadable = NamedPaths(rules, patterns, frozenset({"read"}))
        self._changes = changes
        self._messages = messages
        self._record = record
        self._is_busy = is_busy
        self._others = others
        self._approver = approver
        self.violations: list[Violation] = []
        """Of this session, in the order they were noticed."""
        self._background = ""
        """The call since which commands have been running in the background; empty: none runs."""
        self._meanwhile = False
        """Something else was running when the current call began."""
        self._news: list[str] = []
        self._told_limits = self._told_slow = False
        self._unseen: set[str] = set()
        """Directories that the user knows to be unreadable."""
        self._patience = patience
        self._is_blind = True
        """There was no look before the current call."""
        self._has_looked = False
        self._closed = False
        self._watcher = ProjectWatcher(
            places.project,
            places.contents,
            is_denied=self._named.contain,
            places=self._named.places,
            own=places.own,
            environment=environment,
        )
        self._armed = Delivery[None](asyncio.get_running_loop(), Mailbox())
        start_in_thread(self._arm)

    def _arm(self) -> None:
        """In a thread."""
        try:
            self._watcher.arm()
        except Exception as error:  # a bug: nothing is watched then, and the user gets a notice
            self._watcher.off = f"{type(error).__name__}: {error}"
        self._has_looked = True
        if self._closed:
            self._watcher.close()
        self._armed.send(None)

    # ----------------------------------------------------------------------------------------------------------- looks

    async def before(self) -> None:
        """Before the tool of a call runs: what is different by now was not done by this call."""
        self._is_blind = not self._armed.has_arrived and not await self._wait_for_first_look()
        if self._is_blind:
            return
        self._tell_limits()
        self._meanwhile = self._is_busy() or self._others()
        await self.between()

    async def _wait_for_first_look(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                await self._armed.wait()
            return True
        if not self._told_slow:
            self._tell(
                f"{self._places.project} has many files, and reading them takes long: until that is done, changes that "
                "commands make are neither noticed nor undone."
            )
        self._told_slow, self._patience = True, 0.0
        return False

    async def after(self, call_id: str, tool: str, *, interrupted: bool = False) -> CallChanges:
        """After the tool has run, or was cut short."""
        if self._is_blind:
            return CallChanges()
        busy = self._is_busy()
        self._meanwhile = self._meanwhile or busy or self._others()
        if busy and not self._background:
            self._background = call_id
        found = await self._look(self._noted)
        self._tell_unseen(found.unseen)
        ended = await self._settle_violations(found, call_id, tool, interrupted=interrupted)
        if not ended:
            return CallChanges(found.paths)
        self._report(ended, call_id, tool)
        restored = {one.change.path for one in ended if one.restored}
        return CallChanges(tuple(path for path in found.paths if path not in restored), self._for_model(ended, tool))

    async def between(self) -> None:
        """Outside of calls. What background commands did belongs to this turn; violations are only reported."""
        call_id, self._background = self._background, self._background if self._is_busy() else ""
        if not call_id:
            await self._look(self._watcher.settle)
            return
        found = await self._look(self._noted)
        if protected := self._violations(found):
            ended = [_Ended(change, self._protected.rule_for(change.path), None, _OTHERS) for change in protected]
            self._report(ended, call_id, "A background command")
            self._news += [note.content for note in self._for_model(ended, "A background command")]

    async def settle(self) -> None:
        """Notices what background commands have done by now, if there were any."""
        if self._background:
            await self.between()

    def take_news(self) -> list[str]:
        """For the model, once."""
        news, self._news = self._news, []
        return news

    async def skip(self) -> None:
        """Whatever has changed since the last look was done by the user, such as an undo."""
        if not self._is_blind:
            await self._look(self._watcher.settle)

    async def close(self) -> None:
        """Former contents are gone afterwards. An unfinished first look is not waited for."""
        self._closed = True
        if self._has_looked:
            with suppress(Exception):  # nothing that fails keeps the rest of the session open
                await uninterrupted(self._watcher.close)

    async def _look(self, work: Callable[[], FoundChanges]) -> FoundChanges:
        """What is not known must not end the turn, but the user gets a notice."""
        try:
            if self._watcher.is_quiet():  # a thread would take longer to wake than to look
                return work()
            return await uninterrupted(work)
        except Exception as error:
            what = strip_controls(f"{type(error).__name__}: {error}")
            self._tell(f"Which files were changed could not be determined: {what}.")
            return FoundChanges()

    def _noted(self) -> FoundChanges:
        """In one piece, so that a cancellation does not lose what was found."""
        found = self._watcher.settle()
        self._changes.note_command(found)
        return found

    # ------------------------------------------------------------------------------------------------------ violations

    def _violations(self, found: FoundChanges) -> list[FileChange]:
        """A target of a denied link has no rule of its own."""
        if not self._protected:
            return []
        return [
            change
            for change in found.violations
            if self._protected.contain(change.path) or not self._named.contain(change.path)
        ]

    async def _settle_violations(
        self, found: FoundChanges, call_id: str, tool: str, *, interrupted: bool
    ) -> list[_Ended]:
        protected = self._violations(found)
        if not protected:
            return []
        why = await self._why_kept(protected, call_id, tool, interrupted=interrupted)
        done: Mapping[str, RestoredFile] = {}
        if not why:
            work = partial(restore, protected, self._watcher.root, self._places.displaced)
            done = {one.path: one for one in await uninterrupted(work)}
            await self._look(self._noted)
        return [
            _Ended(change, self._protected.rule_for(change.path), done.get(change.path), why) for change in protected
        ]

    async def _why_kept(self, protected: Sequence[FileChange], call_id: str, tool: str, *, interrupted: bool) -> str:
        """Why the changes stay; empty: they are undone."""
        if self._approver is None:
            return _OTHERS if self._meanwhile else ""
        if interrupted:
            return _INTERRUPTED
        request = RestoreRequest(
            tool_name=tool,
            tool_use_id=call_id,
            changes=tuple(
                UnforeseenChange(path=change.path, kind=change.kind, rule=_text(self._protected.rule_for(change.path)))
                for change in protected
            ),
            meanwhile=self._meanwhile,
        )
        return "" if await self._approver(request) else _CHOSEN

    def _report(self, ended: Sequence[_Ended], call_id: str, tool: str) -> None:
        for one in ended:
            kept_at = None if one.done is None else one.done.displaced
            violation = Violation(
                path=readable_text(one.change.path),
                tool_use_id=call_id,
                restored=one.restored,
                kept_at=None if kept_at is None else readable_text(kept_at),
            )
            self.violations.append(violation)
            why = _why(one)
            with suppress(SessionError):  # noted: see `SessionLog.failure`
                self._record({**to_builtins(violation), "rule": _text(one.rule), "kind": one.change.kind, "why": why})
        self._tell(_listed([self._for_user(one, tool) for one in ended]))

    def _for_user(self, one: _Ended, tool: str) -> str:
        what = f"{tool} {one.change.kind} {self._shown(one.change.path)}, which {_named(one.rule)} denies."
        if not one.restored:
            return f"{what} It was not restored: {_why(one)}."
        return f"{what} {_undone(one, one.done and one.done.displaced)}"

    def _for_model(self, ended: Sequence[_Ended], tool: str) -> tuple[TextBlock, ...]:
        lines: list[str] = []
        for one in ended:
            what = f"{tool} {one.change.kind} {self._shown(one.change.path)}, which {_named(one.rule)} denies."
            if one.restored:
                # A changed version may contain what the model must not read.
                at = one.done.displaced if one.done and not self._unreadable.contain(one.change.path) else None
                lines.append(f"{what} {_undone(one, at)}")
            else:
                lines.append(f"{what} It was not restored: {_why(one).replace(_CHOSEN, 'the user chose to keep it')}.")
        return (TextBlock(readable_text(f"[{_listed(lines)} {_ADVICE}]"), "hook", HARNESS),)

    def _shown(self, path: str) -> str:
        return strip_controls(os.path.relpath(path, self._watcher.root))

    # ---------------------------------------------------------------------------------------------------------- limits

    def _tell_limits(self) -> None:
        """Notifies the user, once, of what could not be restored."""
        if self._told_limits:
            return
        self._told_limits = True
        notices: list[str] = []
        if off := self._watcher.off:
            protected = " Changes to files that rules protect are not noticed." if self._protected else ""
            notices.append(f"Changes that commands make to this project are not watched, nor undone: {off}.{protected}")
        lost = [path for path in self._watcher.unkept if self._protected.contain(path)]
        if lost:
            shown = ", ".join(map(self._shown, lost[:NAMED])) + (f" and {len(lost) - NAMED} more" * (len(lost) > NAMED))
            notices.append(f"If a command changes these files, which rules protect, they cannot be restored: {shown}.")
        for notice in notices:
            self._tell(notice)

    def _tell_unseen(self, directories: Sequence[str]) -> None:
        new = [path for path in directories if path not in self._unseen and not self._watcher.off]
        self._unseen.update(new)
        if new:
            shown = ", ".join(map(self._shown, new[:NAMED]))
            self._tell(f"These directories cannot be listed, so changes in them are not noticed: {shown}.")

    def _tell(self, notice: str) -> None:
        with suppress(SessionError):  # noted: see `SessionLog.failure`
            self._messages.add_notice_block(readable_text(notice))


def _text(rule: Rule | None) -> str:
    return "" if rule is None else rule.text


def _named(rule: Rule | None) -> str:
    return "a rule" if rule is None else f"the rule {rule.text}"


def _why(one: _Ended) -> str:
    if one.restored:
        return ""
    return one.done.why if one.done is not None else one.why


def _undone(one: _Ended, displaced: str | None) -> str:
    if one.change.before is None:
        return f"It was moved to {displaced}." if displaced else "It was moved away."
    return f"It was restored.{f' The changed version is {displaced}.' if displaced else ''}"


def _listed(lines: Sequence[str]) -> str:
    more = f"\nThe same happened to {len(lines) - NAMED:,} more files." if len(lines) > NAMED else ""
    return "\n".join(lines[:NAMED]) + more
