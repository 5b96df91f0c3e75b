"""One session of an editor: an agent, the updates about it, and the questions it asks."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from acp.helpers import SessionUpdate, update_available_commands, update_current_mode
from acp.schema import AvailableCommand, PromptResponse, SessionModeState, StopReason, Usage, UsageUpdate
from msgspec.structs import replace

from wave_agent.acp.client import Editor, EditorAnswerError, EditorGoneError
from wave_agent.acp.commands import commands_of
from wave_agent.acp.history import updates_of
from wave_agent.acp.modes import mode_state
from wave_agent.acp.narration import EditorNarration, notice, own_facts, told
from wave_agent.acp.permission import answer_to, keeps, question, restore_question
from wave_agent.acp.prompt import EditorPrompt, PromptPicture, with_attachments
from wave_agent.agent.agent import Agent
from wave_agent.agent.options import Options
from wave_agent.agent.result import Callbacks, Result
from wave_agent.errors import SettingsError, WaveError
from wave_agent.events import Event, ToolOutput
from wave_agent.mcp.values import Elicitation, ElicitationAnswer
from wave_agent.permissions.decision import Allow, Deny, PermissionMode, PermissionRequest, RestoreRequest
from wave_agent.replay.upkeep import after_session
from wave_agent.settings.trust import TrustStore
from wave_agent.settings.unused_hooks import unused_hooks_notice
from wave_agent.system.private_files import make_private, write_private
from wave_agent.system.project_files import NotReadError, read_project_file
from wave_agent.tools.encoding import decode

STOP_REASONS: Mapping[str, StopReason] = {
    "completed": "end_turn",
    "blocked": "refusal",
    "stopped": "end_turn",
    "stop_limit": "end_turn",
    "max_turns": "max_turn_requests",
    "max_cost": "max_turn_requests",
    "interrupted": "cancelled",
}
"""By the status of a turn. An `error` is the answer's own error."""
SHOWN_FILE = 1 << 20
"""Bytes of a file that an editor is shown as it was before Write replaces it."""
OUTPUT_PAUSE = 0.1
"""Seconds between two updates of a running command's output."""


class TurnFailedError(WaveError):
    """A prompt could not be answered."""


class EditorSession:
    """Prompts run one at a time. Updates reach the editor in order, before the answer to the prompt."""

    def __init__(self, editor: Editor, options: Options) -> None:
        """Raises what `Agent.from_options` raises."""
        self._editor = editor
        self._updates: asyncio.Queue[SessionUpdate | UsageUpdate | Callable[[], SessionUpdate | None]] = asyncio.Queue()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._is_known = False
        self._early: list[Event] = []
        """What happened before the editor knew the session."""
        self.agent = Agent.from_options(
            replace(
                options,
                callbacks=Callbacks(on_event=self._hear),
                can_use_tool=self._may_run,
                may_restore=self._may_restore,
                elicit=self._elicit,
                interactive=True,
            )
        )
        self._narration = EditorNarration(
            cwd=self.agent.cwd,
            project=self.agent.project,
            find_call=self.agent.find_call,
            former=_former,
            terminals=editor.shows_terminals,
        )
        self._turn = asyncio.Lock()
        self._cancelled = 0
        """How many times the editor has cancelled: whatever waited then does not begin any more."""
        self._work: asyncio.Task[Result] | None = None
        self._pictures = 0
        self._mode = self.agent.permission_mode
        self._commands: list[AvailableCommand] | None = None
        self._is_new = True
        self._pump = asyncio.create_task(self._send())

    @property
    def id(self) -> str:
        return self.agent.session_id

    @property
    def modes(self) -> SessionModeState:
        return mode_state(self.agent.permission_mode)

    def greet(self) -> None:
        """Once the editor is about to know the session: what happened so far, and what it can call."""
        self._is_known = True
        early, self._early = self._early, []
        for event in early:
            self._hear(event)
        self._tell_offers()

    async def replay(self) -> None:
        """Shows the whole conversation."""
        agent = self.agent
        self._early = []  # is part of it
        for update in updates_of(agent.messages, agent.hook_runs, cwd=agent.cwd, project=agent.project):
            self._updates.put_nowait(update)
        await self._updates.join()

    # ----------------------------------------------------------------------------------------------------------- prompt

    async def prompt(self, prompt: EditorPrompt) -> PromptResponse:
        """Raises `TurnFailedError`."""
        before = self._cancelled
        async with self._turn:
            self._narration.begin()
            result = await self._run(prompt, before)
            if result is None:
                return PromptResponse(stop_reason="cancelled")
            for update in self._narration.last(result.error if result.status == "error" else None):
                self._updates.put_nowait(update)
            self._tell_offers()
            await self._updates.join()
        if result.status == "error":
            raise TurnFailedError(result.error or "The turn failed without giving a reason.")
        return self._response(result)

    async def _run(self, prompt: EditorPrompt, before: int) -> Result | None:
        """None if it was cancelled before it began. A prompt that is not accepted leaves no pictures behind."""
        agent = self.agent
        if self._is_new and (words := unused_hooks_notice(agent.home, agent.project, agent.unused_hooks)):
            self._updates.put_nowait(notice(words, "info"))
        self._is_new = False
        known = len(agent.messages)
        files = await asyncio.to_thread(self._store, prompt.pictures)
        try:
            if before != self._cancelled:
                return None
            complete = partial(with_attachments, prompt, [str(file) for file in files])
            self._work = asyncio.create_task(agent.send_message(prompt.text, expand=True, complete=complete))
            await asyncio.wait({self._work})
            return None if self._work.cancelled() else self._work.result()
        finally:
            self._work = None
            if not any(message.is_prompt for message in agent.messages[known:]):
                for file in files:
                    file.unlink(missing_ok=True)

    def _response(self, result: Result) -> PromptResponse:
        used = result.usage
        facts = own_facts(
            status=result.status,
            hooks=[told(run) for run in self._narration.other_runs],
            hooks_failed_open=result.hooks_failed_open,
            cost_usd=result.cost_usd,
        )
        return PromptResponse(
            stop_reason=STOP_REASONS[result.status],
            usage=Usage(
                total_tokens=used.input_tokens + used.output_tokens,
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                cached_read_tokens=used.cache_read_tokens,
            ),
            field_meta=facts,
        )

    def _store(self, pictures: Sequence[PromptPicture]) -> list[Path]:
        """Puts pictures where the model can read them, with the session's other files."""
        directory = Path(self.agent.transcript_path).with_suffix("")
        files: list[Path] = []
        for picture in pictures:
            make_private(directory)
            self._pictures += 1
            while (file := directory / f"image-{self._pictures}.{picture.suffix}").exists():
                self._pictures += 1
            write_private(file, picture.data)
            files.append(file)
        return files

    def cancel(self) -> None:
        """Ends the running prompt, and those that wait for it."""
        self._cancelled += 1
        self.agent.interrupt()
        if self._work is not None and not self.agent.busy:  # it has not come to what an interrupt ends
            self._work.cancel()

    # ------------------------------------------------------------------------------------------------------------ modes

    def set_mode(self, mode: PermissionMode) -> None:
        """Raises `SettingsError` if the mode stays what it is."""
        self.agent.permission_mode = mode
        if self.agent.permission_mode != mode:
            raise SettingsError(f"The mode stays {self.agent.permission_mode}: {mode.value} is not permitted here.")
        self._tell_mode()

    def _tell_mode(self) -> None:
        if self.agent.permission_mode != self._mode:
            self._mode = self.agent.permission_mode
            self._updates.put_nowait(update_current_mode(self._mode))

    def _tell_offers(self) -> None:
        """What has changed since the editor was last told."""
        self._tell_mode()
        context = self.agent.context
        if context.used and context.window:
            self._updates.put_nowait(UsageUpdate(session_update="usage_update", used=context.used, size=context.window))
        commands = commands_of(self.agent)
        if commands != self._commands and (commands or self._commands):
            self._updates.put_nowait(update_available_commands(commands))
        self._commands = commands

    # ---------------------------------------------------------------------------------------------------------- updates

    def _hear(self, event: Event) -> None:
        if not self._is_known:
            self._early.append(event)
            return
        for update in self._narration.tell(event):
            self._updates.put_nowait(update)
        if isinstance(event, ToolOutput):
            self._schedule(event)

    def _schedule(self, event: ToolOutput) -> None:
        """A command may print a thousand times a second, and no editor needs to know each time."""
        key = f"{event.agent_id}/{event.id}"
        if key not in self._timers:
            self._timers[key] = asyncio.get_running_loop().call_later(OUTPUT_PAUSE, self._show_output, key, event)

    def _show_output(self, key: str, event: ToolOutput) -> None:
        del self._timers[key]
        self._updates.put_nowait(partial(self._narration.progress, event))

    async def _send(self) -> None:
        is_gone = False
        while True:
            update = await self._updates.get()
            try:
                made = update() if callable(update) else update
                if made is not None and not is_gone:
                    await self._editor.update(self.id, made)
            except EditorGoneError:
                is_gone = True  # the session is closed elsewhere; until then, others still wait for the queue to empty
            finally:
                self._updates.task_done()

    # -------------------------------------------------------------------------------------------------------- questions

    async def _may_run(self, request: PermissionRequest) -> Allow | Deny:
        """Approver for the agent: ask the user about a call."""
        key = self._narration.asked_about(request.tool_use_id)
        call = self._narration.shown(request.tool_name, request.tool_input, request.agent_type)
        changes = await asyncio.to_thread(call.changes, _former)
        await self._updates.join()
        asked = question(
            request,
            session_id=self.id,
            key=key,
            call=call,
            changes=changes,
            facts=self._narration.verdicts(key),
        )
        try:
            answer = answer_to(request, await self._editor.ask(asked))
        except EditorAnswerError as error:
            return Deny(f"nobody could be asked: {error}. Do without it, or tell the user.")
        except EditorGoneError:
            answer = None
        if answer is None:
            return await self._turned_away()
        for rule in answer.rules:
            await self._allow_for_good(rule)
        if isinstance(answer.decision, Allow):
            self._updates.put_nowait(self._narration.permitted(key, call, changes))
        return answer.decision

    async def _turned_away(self) -> Deny:
        """The user did not answer. That interrupts the turn: it is neither a yes nor a no."""
        self.cancel()
        await asyncio.get_running_loop().create_future()  # ended by the interrupt
        return Deny("the user interrupted.")

    async def _may_restore(self, request: RestoreRequest) -> bool:
        await self._updates.join()
        key = self._narration.asked_about(request.tool_use_id)
        asked = restore_question(request, session_id=self.id, key=key, project=self.agent.project)
        try:
            return not keeps(await self._editor.ask(asked))
        except (EditorAnswerError, EditorGoneError):
            return True

    async def _elicit(self, request: Elicitation) -> ElicitationAnswer:
        await self._updates.join()
        return await self._editor.elicit(self.id, request)

    async def _allow_for_good(self, rule: str) -> None:
        self.agent.allow(rule)
        try:
            await asyncio.to_thread(TrustStore(self.agent.home).remember_rule, self.agent.project, rule)
        except SettingsError as error:
            words = f"{rule} is allowed for this session only; it could not be stored: {error}"
            self._updates.put_nowait(notice(words, "warning"))

    # ---------------------------------------------------------------------------------------------------------- closing

    async def close(self) -> None:
        """Ends everything that runs, and tells SessionEnd hooks."""
        self.cancel()
        await self.agent.close("prompt_input_exit")
        for timer in self._timers.values():
            timer.cancel()
        self._pump.cancel()
        with suppress(asyncio.CancelledError):
            await self._pump
        await asyncio.to_thread(after_session, self.agent.home, self.agent.settings.cleanup_days)


def _former(path: str) -> str | None:
    try:
        data = read_project_file(path, "/", SHOWN_FILE)
    except (NotReadError, ValueError):
        return None
    text = None if data is None else decode(data)
    return None if text is None else text.content
