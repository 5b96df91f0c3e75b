"""The life of a session: what happens before its first turn, around every turn, and when it ends."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from msgspec import to_builtins

from wave_agent.agent.consequences import consequences, perform
from wave_agent.agent.foundation import Foundation
from wave_agent.agent.result import DeferredToolUse
from wave_agent.agent.tool_calls import CallRunner
from wave_agent.agent.turn import Turn
from wave_agent.agent.wiring import Ground
from wave_agent.errors import SessionError
from wave_agent.events import Error, Notice, SessionStarted
from wave_agent.hooks.events import HookEvent, changed_files
from wave_agent.hooks.manager import HookManager
from wave_agent.messages import NO_RESULT, ToolBlock
from wave_agent.settings.mcp_sources import stored_consents
from wave_agent.settings.trust import Vigil
from wave_agent.settings.user_guards import UserVigil
from wave_agent.system.private_files import keep_private

if TYPE_CHECKING:  # loaded with the first call
    from wave_agent.agent.call_results import RequestedCall


class LifeCycle:
    """Begins with the first prompt, so that an agent that is never used leaves nothing behind."""

    def __init__(self, ground: Ground, hooks: HookManager, calls: CallRunner) -> None:
        self._ground = ground
        self._hooks = hooks
        self._calls = calls
        self._vigil, self._user_vigil = _vigils(ground.foundation)
        self._consents: bytes | None = None
        """What the user had agreed to about MCP servers when an unattended session began."""
        self._left_open = frozenset(block.id for block in ground.messages.open_calls())
        """Calls left without a result by an agent that was killed."""
        waiting = ground.before.deferred_call
        self.deferred = next((_as_deferred(one) for one in ground.messages.open_calls() if one.id == waiting), None)
        """The call that waits for a decision."""
        self.has_begun = False
        self.source: str | None = "resume" if ground.resumed else ground.foundation.options.source
        """How the session started, until its hooks have been notified."""

    @asynccontextmanager
    async def turn(self, turn: Turn) -> AsyncGenerator[None]:
        """Around a turn: the session has begun, settings are checked for changes, and every call gets a result."""
        if not self.has_begun:
            self.has_begun = True
            self._begin()
            self._announce_instructions()
        await self._report_changed_settings()
        self._report_telemetry()
        self._ground.log.require_written()
        if self.deferred is not None:  # should the agent be killed now, the call may have run
            self._ground.log.deferred_call(None)
        try:
            yield
        finally:
            self.source = None if turn.session_begun else self.source
            self._keep_deferred(turn.deferred)
            self._close_open_calls()
            await self._report_changed_settings()

    async def close(self, reason: str) -> None:
        """Ends the session and releases everything it is built on. Nothing that fails keeps the rest open."""
        ground = self._ground
        await ground.windows.close()
        await self._end(reason)
        await self._hooks.close()
        for tool in ground.tools.values():
            if notice := await tool.close():
                with suppress(SessionError):  # an unwritable transcript must not keep anything open
                    ground.messages.add_notice_block(notice, "info")
        if ground.mcp is not None:
            await ground.mcp.close()
        if self._calls.watch is not None:
            await self._calls.watch.close()
        if ground.sandbox is not None:
            ground.sandbox.close()
        await ground.model.close()
        emit = ground.listeners.emit
        if ground.trace is not None:
            from wave_agent.agent.telemetry import leave  # lazy: loaded if telemetry is on

            await leave(ground.trace)
            self._report_telemetry()
        try:
            ground.log.close()
        except SessionError as error:
            if str(error) != ground.log.reported:
                emit(Error(content=str(error)))
        self._upload(queued=True)
        if found := self._vigil.end():
            emit(Notice(content=f"The next start asks you to confirm your trust in this project: {found}."))
        if found := self._user_vigil.end():
            emit(Notice(content=f"The next start asks you to confirm it: {found}."))
        if found := self._changed_consents():
            emit(Notice(content=f"{found[:1].upper()}{found[1:]}. That is undone: review with wave mcp trust."))
        ground.leftovers.close()
        ground.shared.close()

    @property
    def may_begin_by_itself(self) -> bool:
        """A SessionStart hook has yet to run, and may give the first prompt."""
        return self.source is not None and self._hooks.hears(HookEvent.SESSION_START)

    def deferred_call(self) -> "RequestedCall | None":
        """The call that waits for a decision, as the model made it."""
        if self.deferred is None:
            return None
        from wave_agent.agent.call_results import RequestedCall  # lazy: few calls are deferred

        return RequestedCall(self.deferred.id, self.deferred.name, self.deferred.input)

    def _keep_deferred(self, call: "RequestedCall | None") -> None:
        """Records that the call waits: whoever resumes the session must not take it for an interrupted one."""
        self.deferred = None if call is None else _as_deferred(self._ground.messages.call(call.id))
        if self.deferred is not None:
            with suppress(SessionError):  # noted: see `SessionLog.failure`
                self._ground.log.deferred_call(self.deferred.id)

    def _announce_instructions(self) -> None:
        loaded = ({**to_builtins(one), "load_reason": "session_start"} for one in self._ground.instructions)
        self._hooks.announce(HookEvent.INSTRUCTIONS_LOADED, loaded, permission_mode=self._calls.mode.value)

    def _begin(self) -> None:
        ground = self._ground
        with suppress(OSError):  # the store reports it, with the file it could not create
            keep_private(ground.foundation.home / "projects")
            keep_private(ground.outputs.parent)
        if ground.resumed is None:
            self.end_leftovers()
        self._upload(queued=False)
        self._vigil.begin()
        if _is_watched(ground.foundation):
            self._consents = stored_consents(ground.foundation.home)
        if ground.before.blank:
            with suppress(SessionError):  # noted: see `SessionLog.failure`
                ground.log.start()
        ground.listeners.emit(
            SessionStarted(
                session_id=ground.session_id,
                transcript_path=str(ground.transcript),
                resumed=ground.resumed is not None,
            )
        )
        for notice in ground.notices:
            ground.messages.add_notice_block(notice)

    async def _end(self, reason: str) -> None:
        if not self.has_begun:
            return
        with suppress(SessionError):  # an unwritable transcript must not keep anything open
            mode = self._calls.mode.value
            await self._calls.settle()
            changed = self._calls.changes.changed_ever() if self._hooks.hears(HookEvent.SESSION_END) else ()
            facts = {"reason": reason, **changed_files(changed)}
            ended = await self._hooks.run(HookEvent.SESSION_END, facts, permission_mode=mode)
            perform(consequences(ended), self._ground.messages)

    def _upload(self, *, queued: bool) -> None:
        """Sends sessions that wait to be uploaded, this one among them if it is `queued`, in the background."""
        foundation = self._ground.foundation
        url = foundation.settings.upload
        if url is None or not self.has_begun:
            return
        from wave_agent.sessions.outbox import is_waiting, queue, start_sending  # lazy: few sessions are collected

        try:
            if queued:
                queue(foundation.home, self._ground.transcript)
        except OSError as error:
            self._ground.listeners.emit(Error(content=f"This session cannot be queued for upload: {error.strerror}."))
        if is_waiting(foundation.home):
            start_sending(foundation.home, url, foundation.environment)

    def _changed_consents(self) -> str:
        """What an unattended session changed of it, and is undone; empty if nothing."""
        foundation = self._ground.foundation
        if self._consents is None or stored_consents(foundation.home) == self._consents:
            return ""
        from wave_agent.mcp.consent import ConsentStore  # lazy: hardly any session changes it

        return ConsentStore(foundation.home).look_back(foundation.project, self._consents)

    async def _report_changed_settings(self) -> None:
        for change in self._ground.foundation.snapshot.changes():
            with suppress(SessionError):  # noted: see `SessionLog.failure`
                self._ground.messages.add_notice_block(change.message)
                facts = {"source": change.source, "file_path": change.file}
                await self._hooks.run(HookEvent.CONFIG_CHANGE, facts, permission_mode=self._calls.mode.value)

    def _report_telemetry(self) -> None:
        if self._ground.trace is not None and (problem := self._ground.trace.take_problem()):
            self._ground.listeners.emit(Notice(content=problem))

    def _close_open_calls(self) -> None:
        """Every call gets a result, even if it was interrupted and even if nothing can be written any more."""
        messages = self._ground.messages
        with suppress(SessionError):  # noted: see `SessionLog.failure`
            messages.drop_unjudged_prompt()
        for block in messages.open_calls():
            if self.deferred is not None and block.id == self.deferred.id:
                continue
            with suppress(SessionError):
                why = NO_RESULT if block.id in self._left_open else self._calls.interrupted(block.id)
                messages.update_tool_block(block.id, result=why, success=False, error=why)

    def end_leftovers(self) -> None:
        """Ends what a killed agent left running. For a resumed session this happens before anything else."""
        if ended := self._ground.leftovers.open():
            what = "1 process" if ended == 1 else f"{ended} processes"
            self._ground.notices.append(f"Ended {what} left behind by a killed agent.")


def _is_watched(foundation: Foundation) -> bool:
    """An attended session need not be, and an agent below another one does not watch: the one above does."""
    return not foundation.options.interactive and foundation.above is None


def _as_deferred(block: ToolBlock) -> DeferredToolUse:
    return DeferredToolUse(id=block.id, name=block.name, input=block.parameters)


def _vigils(foundation: Foundation) -> tuple[Vigil, UserVigil]:
    is_needed = _is_watched(foundation)
    home, project = foundation.home, foundation.project
    return (
        Vigil(home, project, is_needed=is_needed),
        UserVigil(home, project, foundation.gathered.user_guards if is_needed else {}),
    )
