"""Runs the user's prompts, commands and shell lines one at a time. New ones are queued."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Protocol

from textual.worker import Worker, WorkerError

from wave_agent.agent.agent import Agent
from wave_agent.agent.result import Result
from wave_agent.errors import WaveError
from wave_agent.messages import ToolBlock
from wave_agent.permissions.decision import PermissionMode
from wave_agent.screen.activity import Activity
from wave_agent.screen.attachments import Attachment, attach
from wave_agent.screen.command_actions import ScreenCommands
from wave_agent.screen.commands import BY_NAME, PROMPTS, CommandLine, line_to_remember, parse, unknown
from wave_agent.screen.dialogs import GO_ON, mode_in
from wave_agent.screen.entries import Entry, ErrorEntry, Info, Warning_
from wave_agent.screen.plan import PlanQuestion
from wave_agent.screen.prompt import PromptBox
from wave_agent.screen.question import Question
from wave_agent.screen.sent_prompt import MOST_WAKES, send_prompt
from wave_agent.screen.shell import UserShell
from wave_agent.screen.tool_card import ToolCard
from wave_agent.settings.extensions import ExtensionFile

Work = Coroutine[Any, Any, None]


class QueueScreen(Protocol):
    """What the queue needs from the screen."""

    @property
    def agent(self) -> Agent: ...
    @property
    def custom(self) -> Mapping[str, ExtensionFile]: ...
    @property
    def shell(self) -> UserShell: ...

    async def say(self, entry: Entry) -> None: ...
    async def ask(self, question: Question) -> str | None: ...
    async def all_told(self) -> None: ...
    def erase_prompt(self) -> None: ...
    def tell_status(self) -> None: ...


class WorkQueue:
    def __init__(
        self,
        front: QueueScreen,
        commands: ScreenCommands,
        box: PromptBox,
        activity: Activity,
        start: Callable[[Work], Worker[None]],
    ) -> None:
        """`start` runs something in the background."""
        self._front = front
        self._commands = commands
        self._box = box
        self._activity = activity
        self._start = start
        self._work: Worker[None] | None = None
        self.along: list[Attachment] = []
        """Attachments for the next prompt."""
        self._wakes = 0
        """Turns since the last prompt that background hooks have started."""

    @property
    def busy(self) -> bool:
        return self._work is not None and not self._work.is_finished

    def submit(self, shown: str) -> None:
        """The user's submission, with placeholders for pastes."""
        line = parse(shown)
        if line is not None and line.name in BY_NAME and BY_NAME[line.name].while_working:
            self._start(self._guarded(self._command(line)))
        elif self.busy:
            self._box.enqueue(shown)
        elif line is not None:
            self._begin(self._command(line))
        elif shown.startswith("!"):
            self._begin(self._run_shell(shown[1:].strip()))
        elif (remembered := line_to_remember(shown)) is not None:
            self._begin(self._remember(remembered))
        else:
            self._begin(self._typed(shown))

    def interrupt(self) -> None:
        """End the model, hooks and tools, or the shell line."""
        self._front.agent.interrupt()
        if self._work is not None and not self._front.agent.busy:
            self._work.cancel()

    async def end(self) -> None:
        """Stop the current work and wait for it to end."""
        if self._work is not None and self.busy:
            self._work.cancel()
            with suppress(WorkerError):
                await self._work.wait()

    # ------------------------------------------------------------------------------------------------ one piece of work

    def _begin(self, work: Work) -> None:
        self._work = self._start(self._attend(work))

    async def _attend(self, work: Work) -> None:
        try:
            await self._guarded(work)
        except asyncio.CancelledError:
            if self._box.is_attached:
                self._box.take_back()
            raise
        finally:
            self._activity.end()
        self._front.tell_status()
        self._box.call_later(self._next)

    def _next(self) -> None:
        if not self.busy and (queued := self._box.next_queued()) is not None:
            self.submit(queued)
        else:
            self.wake()

    def wake(self) -> None:
        """Start a turn if a background hook has something for the model, and nothing else is going on."""
        if not self.busy and self._wakes < MOST_WAKES and self._front.agent.is_woken:
            self._wakes += 1
            self._begin(self._woken())

    async def _woken(self) -> None:
        self._activity.begin("Working")
        result = await self._front.agent.continue_turn()
        await self._front.all_told()
        self._rest_after(result)

    def _rest_after(self, result: Result) -> None:
        """Whoever interrupts a turn does not want another one before they say so."""
        if result.status == "interrupted":
            self._wakes = MOST_WAKES
            self._box.take_back()

    async def _guarded(self, work: Work) -> None:
        """A failure is reported; the screen stays open."""
        try:
            await work
        except WaveError as error:
            await self._front.say(ErrorEntry(str(error)))
        except Exception as error:  # a bug of ours must not end the conversation
            await self._front.say(ErrorEntry(f"Internal error: {type(error).__name__}: {error}"))

    async def _typed(self, shown: str) -> None:
        """What the user typed may stand for something else; what was pasted may not."""
        await self._prompt(shown, remember=self._box.pastes.unfold(shown), expand=True)

    async def _prompt(self, text: str, *, remember: str, expand: bool = False) -> None:
        """`remember` goes into the history once hooks have accepted the prompt: until then it must not reach the disk.

        Empty if the user did not type it.
        """
        along, self.along = self.along, []
        self._activity.begin("Working")
        self._front.tell_status()
        self._wakes = 0

        def complete(prompt: str) -> str:
            return attach(self._box.pastes.unfold(prompt) if expand else prompt, along)

        sent = await send_prompt(self._front.agent, text, complete, expand=expand)
        await self._front.all_told()
        if sent.was_accepted:
            if remember:
                self._box.history.write(remember)
        else:
            self._front.erase_prompt()
            self.along = along + self.along
        self._rest_after(sent.result)
        if sent.has_plan:
            await self._offer_plan()

    async def _offer_plan(self) -> None:
        """The agent ended a turn with a plan. Prompts queued in the meantime come first."""
        agent = self._front.agent
        if agent.permission_mode != PermissionMode.PLAN or self._box.queued:
            return
        self._activity.end()
        mode = mode_in(await self._front.ask(PlanQuestion()))
        if mode is None:
            return
        agent.permission_mode = mode
        if agent.permission_mode == mode:  # otherwise the change was denied and the user has been notified
            await self._prompt(GO_ON, remember="")

    async def _command(self, line: CommandLine) -> None:
        written = f"/{line.name} {line.arguments}".rstrip()
        if line.name in BY_NAME:
            self._box.history.write(written)
            if not BY_NAME[line.name].while_working:
                self._activity.begin(f"/{line.name}")
            if line.name in PROMPTS:
                await self._prompt(f"/{line.name}", remember="", expand=True)
                return
            await self._commands.run(line.name, line.arguments)
            self._front.tell_status()
        elif line.name in self._front.custom or self._is_of_server(line.name):
            await self._typed(written)
        else:
            await self._front.say(Warning_(unknown(line.name, self._front.custom)))

    def _is_of_server(self, name: str) -> bool:
        servers = self._front.agent.mcp
        return servers is not None and any(one.command == f"/{name}" for one in servers.prompts())

    async def _remember(self, line: str) -> None:
        if not line:
            return
        self._box.history.write(f"#{line}")
        self._activity.begin("AGENTS.md")
        told = await self._front.agent.remember(line)
        await self._front.all_told()
        await self._front.say(Warning_(told) if told.startswith("Not ") else Info(told))

    async def _run_shell(self, command: str) -> None:
        if not command:
            return
        self._box.history.write(f"!{command}")
        self._activity.begin("Your command")
        card = ToolCard(ToolBlock("", "!", {"command": command}), self._front.agent.project)
        await self._front.say(card)
        try:
            result = await self._front.shell.run(command, card.output)
        except asyncio.CancelledError:
            card.finish(ToolBlock("", "!", card.block.parameters, "Interrupted.", False))
            raise
        card.finish(ToolBlock("", "!", card.block.parameters, result.content, result.success))
        self.along.append(Attachment("shell", command, result.content))
