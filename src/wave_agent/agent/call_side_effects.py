"""What hooks hear after a call besides its result: files that it changed, and a new directory."""

from wave_agent.agent.authority import Authority
from wave_agent.agent.consequences import consequences, perform
from wave_agent.formats.readable import readable_text
from wave_agent.hooks.events import CHANGED_FILES, HookEvent
from wave_agent.hooks.manager import HookManager
from wave_agent.messages import MessageManager
from wave_agent.tools.changes import FileChanges


class CallSideEffects:
    """Compares with what hooks heard last, so nothing is reported twice."""

    def __init__(
        self, hooks: HookManager, authority: Authority, changes: FileChanges, messages: MessageManager
    ) -> None:
        self._hooks = hooks
        self._messages = messages
        self._authority = authority
        self._changes = changes
        self._directory = hooks.directory

    async def tell(self) -> None:
        """Hooks on a new directory are awaited: they may set variables for the next command."""
        self.tell_changes()
        before, self._directory = self._directory, self._hooks.directory
        if before != self._directory:
            facts = {"old_cwd": readable_text(before), "new_cwd": readable_text(self._directory)}
            heard = await self._hooks.run(HookEvent.CWD_CHANGED, facts, permission_mode=self._authority.mode.value)
            perform(consequences(heard), self._messages)

    def tell_changes(self) -> None:
        """Hooks on changed files are not awaited. Beyond a limit, files are left out."""
        changed = self._changes.take_news()[:CHANGED_FILES]
        facts = [{"file_path": readable_text(path), "event": kind} for path, kind in changed]
        self._hooks.announce(HookEvent.FILE_CHANGED, facts, permission_mode=self._authority.mode.value)
