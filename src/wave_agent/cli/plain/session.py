"""A session in lines: prompts, commands and questions one after another, over the same agents as the screen's."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from wave_agent.agent.agent import Agent
from wave_agent.agent.expansion import user_commands
from wave_agent.agent.result import Result
from wave_agent.agent.surroundings import git_branch
from wave_agent.cli.plain.commands import COMMANDS, Commands, guarded
from wave_agent.cli.plain.input import PromptLines, Wanted
from wave_agent.cli.plain.narration import LineNarration
from wave_agent.cli.plain.questions import Questions
from wave_agent.cli.plain.terminal import LineTerminal, Teletype
from wave_agent.errors import SettingsError
from wave_agent.events import Event, HookFinished, ModelWoken, TurnEnded, TurnStarted
from wave_agent.messages import Message, TextBlock
from wave_agent.permissions.decision import Allow, Deny, PermissionMode, PermissionRequest, RestoreRequest
from wave_agent.screen.agents import Agents
from wave_agent.screen.attachments import Attachment, attach, split
from wave_agent.screen.changes import change_of
from wave_agent.screen.commands import BY_NAME, PROMPTS, CommandLine, hidden_by_ours, line_to_remember, parse
from wave_agent.screen.dialogs import (
    ACCEPT,
    GO_ON,
    KEEP_CHANGE,
    PLAN_DIALOG,
    Dialog,
    changed_files_dialog,
    meaning_of,
    mode_in,
    permission_dialog,
    restore_dialog,
    rules_in,
)
from wave_agent.screen.history import History
from wave_agent.screen.opening import FirstAgent
from wave_agent.screen.sent_prompt import MOST_WAKES, send_prompt
from wave_agent.screen.shell import UserShell
from wave_agent.sessions.recorder import transcripts
from wave_agent.settings.extensions import ExtensionFile
from wave_agent.settings.unused_hooks import unused_hooks_notice
from wave_agent.text import one_line

if TYPE_CHECKING:
    from wave_agent.mcp.values import Elicitation, ElicitationAnswer

SOON = 2.0
"""Seconds within which a second Ctrl-C leaves."""


class Submission(NamedTuple):
    """What is to be done next."""

    text: str
    is_literal: bool = False
    """It is a prompt, whatever it begins with."""


_WAKE = Submission("", is_literal=True)
"""A background hook wants a turn."""
_LEAVE = Submission("")


class PlainSession:
    """`run` is the whole session; the caller then closes it with `shut_down`."""

    def __init__(
        self,
        agents: Agents,
        teletype: Teletype,
        *,
        remember: Callable[[str], None],
        environment: Mapping[str, str],
        every_hook: bool = False,
        caution: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._agents = agents
        self._remember_rule = remember
        self._environment = environment
        self._every_hook = every_hook
        self._caution = caution
        self._agent: Agent | None = None
        self._first = FirstAgent(agents, lambda: self._open(agents.first))
        self._refused: Mapping[str, str | None] = {}  # hook changes the user was asked about
        self._terminal = LineTerminal(teletype, on_lines=self._entered, on_end=self._ended, on_gone=self.leave)
        self._questions = Questions(self._terminal)
        self._lines = PromptLines()
        self._commands = Commands(self)
        self._history = History(transcripts(agents.home, agents.project) / "history")
        self._narration: LineNarration | None = None
        self._shell: UserShell | None = None
        self._inbox: asyncio.Queue[Submission] = asyncio.Queue()
        self._work: asyncio.Task[None] | None = None
        self._beside: set[asyncio.Task[None]] = set()
        self._along: list[Attachment] = []
        self._last_interrupt = float("-inf")
        self._wakes = 0
        self._is_typed = True
        self._left = asyncio.Event()
        self.custom: Mapping[str, ExtensionFile] = {}
        self.status = 0

    # ---------------------------------------------------------------------------------------------- opening and closing

    def prepare(self) -> None:
        """Create the first agent, so that errors appear before anything is asked."""
        agent = self._first.begin()
        if agent is None or not self._first.asks:
            self._agent = agent
        else:
            self._beside.add(asyncio.ensure_future(agent.close()))

    async def run(self) -> int:
        """Until the user leaves. Returns the exit status."""
        self._terminal.open()
        try:
            if self._agent is None and not await self._until_left(self._ask_for_trust()):
                return self.status
            self._greet()
            while (submission := await self._next()) is not None:
                self._work = asyncio.create_task(guarded(self._submitted(submission), self.say))
                await asyncio.wait({self._work})
        finally:
            self._terminal.close()
        return self.status

    async def _until_left(self, work: Coroutine[Any, Any, bool]) -> bool:
        task, left = asyncio.create_task(work), asyncio.create_task(self._left.wait())
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        left.cancel()
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait({task})
        return False

    async def shut_down(self) -> None:
        """Close the agent and stop all work."""
        pending = {*self._beside, *([self._work] if self._work is not None else [])}
        if self._work is not None:
            self._work.cancel()
        if pending:
            await asyncio.wait(pending)
        if self._shell is not None:
            await self._shell.close()
        if self._agent is not None:
            await self._agent.close("prompt_input_exit")

    def leave(self, status: int = 0) -> None:
        self.status = status
        self._left.set()
        self._inbox.put_nowait(_LEAVE)
        self._questions.turn_away()
        if self._work is not None:
            self._interrupt_work()

    async def _ask_for_trust(self) -> bool:
        self._agent = self._first.finish(await self.ask(self._first.dialog()))
        return self._agent is not None

    def _open(self, resume: str | None, source: str = "startup", before: Agent | None = None) -> Agent:
        return self._agents.open(
            on_event=self._hear,
            can_use_tool=self._may_run,
            may_restore=self._may_restore,
            elicit=self._elicit,
            resume=resume,
            source=source,
            before=before,
        )

    def _greet(self) -> None:
        """Says what the screen shows at its start."""
        agent = self.agent
        self.custom = {} if agent.extensions is None else user_commands(agent.extensions)
        self._shell = UserShell(
            agent.cwd, {**self._environment, **agent.settings.env}, Path(agent.transcript_path).with_suffix("")
        )
        self._narration = LineNarration(
            self.say, project=agent.project, find_call=agent.find_call, every_hook=self._every_hook
        )
        model, branch = agent.model_name or "the server’s default", git_branch(agent.cwd)
        place = f"{agent.cwd}, branch {branch}" if branch else agent.cwd
        self.say(f"Wave, model {model}, mode {agent.permission_mode}, in {place}. /help lists the commands.")
        if agent.no_hooks:
            self.say("Warning: no hooks run in this session (--no-hooks).")
        if agent.messages:
            self.say(_summary(agent.messages))
        for notice in (
            unused_hooks_notice(agent.home, agent.project, agent.unused_hooks),
            hidden_by_ours(self.custom.values()),
        ):
            if notice:
                self.say(f"Notice: {notice}")
        for warning in (self._caution(agent.permission_mode), agent.why_not_ready):
            if warning:
                self.say(f"Warning: {warning}")

    # ------------------------------------------------------------------------------------------- interface for commands

    @property
    def agent(self) -> Agent:
        assert self._agent is not None, "the question of trust is still open"
        return self._agent

    @property
    def open_agent(self) -> Agent | None:
        """None until the trust question is answered."""
        return self._agent

    @property
    def calls(self) -> list[str]:
        return [] if self._narration is None else self._narration.calls

    def say(self, text: str) -> None:
        self._terminal.say(text)

    async def ask(self, dialog: Dialog) -> str | None:
        if self._narration is not None:
            self._narration.end_answer()
        return await self._questions.ask(dialog)

    def go_along(self, attachment: Attachment) -> None:
        self._along.append(attachment)

    async def change_session(self, resume: str | None, source: str) -> None:
        before = self.agent
        if self._beside:
            await asyncio.wait(self._beside)  # one of them may still hold the requested session
        self._agent = self._open(resume, source, before)
        self._along.clear()
        self._run_beside(before.close("resume" if resume else "clear"))
        self.say("Switched session." if resume else "New session. To go back to the old one: /resume.")
        self._greet()

    # ------------------------------------------------------------------------------------------------------------ input

    @property
    def _busy(self) -> bool:
        return self._work is not None and not self._work.done()

    def _entered(self, lines: Sequence[str]) -> None:
        """Lines that the user entered together."""
        if self._questions.is_open:
            self._questions.answer(lines)
            return
        entered = self._lines.add(lines)
        if entered.notice:
            self.say(entered.notice)
        if not entered.prompt:
            self._show_prompt()
            return
        line = None if entered.is_literal else parse(entered.prompt)
        submission = Submission(entered.prompt, entered.is_literal)
        if not self._busy:
            self._inbox.put_nowait(submission)
        elif line is not None and line.name in COMMANDS and COMMANDS[line.name].while_working:
            self._run_beside(guarded(self._commands.run(line.name, line.arguments), self.say))
        else:
            self._inbox.put_nowait(submission)
            self.say("Queued: it will be sent after this turn.")

    def _show_prompt(self) -> None:
        if self._agent is not None and (not self._busy or self._lines.wanted is Wanted.CONTINUED):
            self._terminal.ask_for(self._lines.wanted.value)

    def _ended(self) -> None:
        """Ctrl-D."""
        if self._questions.is_open:
            self._questions.turn_away()
        else:
            self.leave()

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._terminal.end_prompt()
        now = monotonic()
        if now - self._last_interrupt < SOON:
            self.leave()
            return
        self._last_interrupt = now
        again = "Press Ctrl-C again to quit."
        if self._questions.is_open:
            self.say(f"Dismissed. {again}")
            self._questions.turn_away()
        elif self._busy:
            self.say(f"Interrupting. {again}")
            self._interrupt_work()
        else:
            self.say(f"Discarded. {again}" if self._lines.drop() else again)
            self._show_prompt()

    def _interrupt_work(self) -> None:
        if self._agent is not None:
            self._agent.interrupt()
        if self._work is not None and (self._agent is None or not self._agent.busy):
            self._work.cancel()

    async def _next(self) -> Submission | None:
        """The next prompt, command or shell line; None if the user leaves."""
        if self._inbox.empty() and not self._left.is_set():
            self._wake()
        self._is_typed = self._inbox.empty()
        if self._is_typed:
            self._show_prompt()
        submission = await self._inbox.get()
        return None if self._left.is_set() else submission

    # -------------------------------------------------------------------------------------------------------- the turns

    async def _submitted(self, submission: Submission) -> None:
        if submission is _WAKE:
            await self._woken()
            return
        text, is_literal = submission
        if not self._is_typed:
            self.say(f"You: {text}")
        line = parse(text)
        if is_literal:
            await self._prompt(text, remember=text, expand=False)
        elif line is not None:
            await self._command(line, text)
        elif text.startswith("!"):
            await self._run_shell(text[1:].strip())
        elif (remembered := line_to_remember(text)) is not None:
            await self._remember(remembered)
        else:
            await self._prompt(text, remember=text)

    async def _command(self, line: CommandLine, text: str) -> None:
        if line.name in PROMPTS:
            await self._prompt(text, remember=text)
        elif line.name in COMMANDS or line.name in BY_NAME or not self._is_known(line.name):
            await self._commands.run(line.name, line.arguments)
        else:
            await self._prompt(text, remember=text)

    def _is_known(self, name: str) -> bool:
        servers = self.agent.mcp
        return name in self.custom or (
            servers is not None and any(one.command == f"/{name}" for one in servers.prompts())
        )

    async def _prompt(self, text: str, *, remember: str, expand: bool = True) -> None:
        """`remember` goes into the history once hooks have accepted the prompt: until then it must not reach the
        disk."""
        along, self._along = self._along, []
        self._wakes = 0

        def complete(prompt: str) -> str:
            return attach(prompt, along)

        sent = await send_prompt(self.agent, text, complete, expand=expand)
        if sent.was_accepted:
            if remember:
                self._history.write(remember)
        else:
            self.say("The prompt was not sent and is not stored.")
            self._along = along + self._along
        self._rest_after(sent.result)
        if sent.has_plan:
            await self._offer_plan()

    async def _offer_plan(self) -> None:
        agent = self.agent
        if agent.permission_mode != PermissionMode.PLAN or not self._inbox.empty():
            return
        mode = mode_in(await self.ask(PLAN_DIALOG))
        if mode is None:
            return
        agent.permission_mode = mode
        if agent.permission_mode == mode:  # otherwise the change was denied and the user has been notified
            await self._prompt(GO_ON, remember="", expand=False)

    def _rest_after(self, result: Result) -> None:
        """Whoever interrupts a turn does not want another one before they say so."""
        if result.status != "interrupted":
            return
        self._wakes = MOST_WAKES
        dropped = 0
        while not self._inbox.empty() and not self._left.is_set():
            self._inbox.get_nowait()
            dropped += 1
        if dropped:
            self.say(f"Discarded {dropped} queued prompts." if dropped > 1 else "Discarded the queued prompt.")

    def _wake(self) -> None:
        """Start a turn if a background hook has something for the model, and nothing else is going on."""
        if not self._busy and self._inbox.empty() and self._wakes < MOST_WAKES and self.agent.is_woken:
            self._wakes += 1
            self._inbox.put_nowait(_WAKE)

    async def _woken(self) -> None:
        self._terminal.end_prompt()
        self.say("Notice: a background hook has something for the model.")
        self._rest_after(await self.agent.continue_turn())

    async def _remember(self, line: str) -> None:
        if line:
            self._history.write(f"#{line}")
            self.say(await self.agent.remember(line))

    async def _run_shell(self, command: str) -> None:
        if not command or self._shell is None:
            return
        self._history.write(f"!{command}")
        result = await self._shell.run(command, lambda _: None)
        self.say(result.content.rstrip("\n") or "No output.")
        self._along.append(Attachment("shell", command, result.content))

    def _run_beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    # ----------------------------------------------------------------------------------------------------- agent events

    def _hear(self, event: Event) -> None:
        if self._narration is not None and not isinstance(event, TurnStarted):
            self._narration.tell(event)
        if isinstance(event, ModelWoken):
            asyncio.get_running_loop().call_soon(self._wake)
        if isinstance(event, TurnEnded) and event.status == "interrupted":
            self.say("Interrupted.")
        if isinstance(event, HookFinished) and event.run.failure is not None and self._agent is not None:
            changes = self._agent.project_trust.changes()
            if changes and changes != self._refused:
                self._refused = changes
                self._run_beside(self._ask_about_changes(self._agent, changes))

    async def _ask_about_changes(self, agent: Agent, changes: Mapping[str, str | None]) -> None:
        """Trust given elsewhere in the meantime may be the agent's own doing, so the user is asked here."""
        if await self.ask(changed_files_dialog(agent.project, changes)) == ACCEPT:
            agent.project_trust.accept(changes)
        if not self._busy:
            self._show_prompt()

    async def _may_run(self, request: PermissionRequest) -> Allow | Deny:
        """Approver for the agent: ask the user about a call."""
        diff = await asyncio.to_thread(change_of, request.tool_name, request.tool_input)
        answer = await self.ask(permission_dialog(request, diff, self.agent.project))
        if answer is None:
            self.agent.interrupt()
            await asyncio.get_running_loop().create_future()  # ended by the interrupt
        for rule in rules_in(answer):
            await self._allow_for_good(rule)
        return meaning_of(answer, to_user=bool(request.question))

    async def _may_restore(self, request: RestoreRequest) -> bool:
        return await self.ask(restore_dialog(request, self.agent.project)) != KEEP_CHANGE

    async def _elicit(self, request: "Elicitation") -> "ElicitationAnswer":
        """Answers what an MCP server asks the user. Pages are not opened here: a browser may take the terminal."""
        from wave_agent.screen.forms import fill_in  # lazy: few servers ask

        answer = await fill_in(request, self._questions.ask, lambda url: self.say(f"Open this page: {url}"))
        if answer.action == "decline":
            self.say(f"Declined what the MCP server {one_line(request.server, 48)} asked.")
        return answer

    async def _allow_for_good(self, rule: str) -> None:
        self.agent.allow(rule)
        try:
            await asyncio.to_thread(self._remember_rule, rule)
        except SettingsError as error:
            self.say(f"Warning: {rule} is allowed for this session only; it could not be stored: {error}")


def _summary(messages: Sequence[Message]) -> str:
    """Where a resumed conversation stopped."""
    texts = [block for one in reversed(messages) for block in reversed(one.blocks) if isinstance(block, TextBlock)]
    asked = next((split(block.content)[0] for block in texts if block.source == "user"), "")
    answered = next((block.content.strip() for block in texts if block.source == "model"), "")
    lines = [f"Resumed a session of {len(messages):,} messages."]
    lines += [f"You: {asked}"] if asked else []
    lines += [f"Wave: {answered}"] if answered else []
    return "\n".join(lines)
