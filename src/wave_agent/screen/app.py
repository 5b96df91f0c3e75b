"""The screen app: assembles the widgets and routes keys, events and prompts. Contains no agent logic."""

import asyncio
import signal
import webbrowser
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.worker import Worker

from wave_agent.agent.agent import Agent
from wave_agent.agent.expansion import user_commands
from wave_agent.agent.surroundings import git_branch
from wave_agent.errors import SettingsError, WaveError
from wave_agent.events import Event, HookFinished, HookRun, ModelWoken
from wave_agent.permissions.decision import Allow, Deny, PermissionMode, PermissionRequest, RestoreRequest
from wave_agent.screen.activity import Activity
from wave_agent.screen.agents import Agents
from wave_agent.screen.attachments import Attachment
from wave_agent.screen.changes import change_of
from wave_agent.screen.clipboard import hand_over
from wave_agent.screen.command_actions import ScreenCommands
from wave_agent.screen.commands import candidates, hidden_by_ours
from wave_agent.screen.completion import CompletionItem
from wave_agent.screen.conversation import Conversation
from wave_agent.screen.dialogs import ACCEPT, KEEP_CHANGE, meaning_of, rules_in
from wave_agent.screen.entries import Entry, Info, Warning_
from wave_agent.screen.file_index import FileIndex
from wave_agent.screen.history import History
from wave_agent.screen.keys import Where, bindings
from wave_agent.screen.lookup import find_context
from wave_agent.screen.mcp_view import mentionable
from wave_agent.screen.narration import Narration
from wave_agent.screen.opening import FirstAgent
from wave_agent.screen.permission import PermissionDialog, RestoreDialog
from wave_agent.screen.prompt import PromptBox
from wave_agent.screen.question import Question
from wave_agent.screen.replay import entries_of
from wave_agent.screen.search import HistorySearch
from wave_agent.screen.shell import UserShell
from wave_agent.screen.sizes import size_of
from wave_agent.screen.status import StatusFacts, StatusLine, short_directory
from wave_agent.screen.theme import DARK, LIGHT, THEMES, VARIABLES, Preference
from wave_agent.screen.trust import ChangedFiles, TrustQuestion
from wave_agent.screen.work_queue import WorkQueue
from wave_agent.sessions.recorder import transcripts
from wave_agent.settings.extensions import ExtensionFile
from wave_agent.settings.unused_hooks import unused_hooks_notice

if TYPE_CHECKING:
    from wave_agent.mcp.values import Elicitation, ElicitationAnswer

MODES = (PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS, PermissionMode.PLAN)
"""The modes Shift-Tab cycles through."""
NARROW, LOW = 70, 18
"""Columns below which lines of lists are cut and tables become lists, and rows below which lists are shorter."""
PAUSE = 1.5
"""Seconds without a key press after which the user is idle."""
SOON = 2.0
"""Seconds within which a second Ctrl-C quits."""


class WaveApp(App[int]):
    """Created by `launch`, which also cleans up when it closes."""

    CSS_PATH = "screen.tcss"
    TITLE = "wave"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (NARROW, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (LOW, "-high")]  # noqa: RUF012 - the library declares it like this
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Where.ANYWHERE)]

    def __init__(
        self,
        agents: Agents,
        *,
        remember: Callable[[str], None],
        environment: Mapping[str, str],
        every_hook: bool = False,
        caution: Callable[[str], str] = lambda _: "",
        idle: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self._idle = idle  # called now and then while the user is not typing
        self._caution = caution  # a warning about this mode, if there is one
        self._agents = agents
        self._remember = remember
        self._environment = environment
        self._every_hook = every_hook
        self._preference = Preference(agents.home)
        self._commands = ScreenCommands(self, self._preference)
        self._agent: Agent | None = None
        self._first = FirstAgent(agents, lambda: self._open(agents.first))
        self._refused: Mapping[str, str | None] = {}  # hook changes the user was asked about
        self._happened: asyncio.Queue[tuple[Event, Narration]] = asyncio.Queue()
        self._narration: Narration | None = None
        self._asking = asyncio.Lock()
        self._shell: UserShell | None = None
        self._left: list[asyncio.Task[None]] = []
        self._last_interrupt = float("-inf")
        self.editing = False
        """The terminal belongs to the user's editor."""
        self.custom: Mapping[str, ExtensionFile] = {}
        project = transcripts(agents.home, agents.project)
        self._box = PromptBox(History(project / "history"), FileIndex(agents.place.start), self._candidates)
        self._conversation = Conversation()
        self._activity = Activity()
        self._status = StatusLine()
        self._queue = WorkQueue(self, self._commands, self._box, self._activity, self._start)

    # ---------------------------------------------------------------------------------------------- opening and closing

    def prepare(self) -> None:
        """Create the first agent before drawing anything, so that errors appear in the plain terminal."""
        agent = self._first.begin()
        if agent is None or not self._first.asks:
            self._agent = agent
        else:
            self._left.append(asyncio.ensure_future(agent.close()))

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return VARIABLES

    def compose(self) -> ComposeResult:
        yield self._conversation
        yield self._activity
        yield self._box
        yield self._status

    async def on_mount(self) -> None:
        self.set_class(self.no_color, "-no-color")
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.use_theme(self._preference.theme(self._environment))
        self.run_worker(self._narrate(), group="narration", exit_on_error=True)
        self._box.input.focus()
        if self._agent is None:
            self.run_worker(self._ask_for_trust(), group="trust")
        else:
            await self._show_session(self._agent)
        self.set_interval(2.0, self.tell_status)
        self.set_interval(1.0, self._use_pause)

    async def _ask_for_trust(self) -> None:
        answer = await self.ask(TrustQuestion(self._first.dialog()))
        try:
            self._agent = self._first.finish(answer)
        except WaveError as error:
            self.exit(1, message=f"wave: {error}")
            return
        if self._agent is None:
            self.leave()
            return
        await self._show_session(self._agent)

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

    async def _show_session(self, agent: Agent) -> None:
        self.custom = {} if agent.extensions is None else user_commands(agent.extensions)
        outputs = Path(agent.transcript_path).with_suffix("")
        self._shell = UserShell(agent.cwd, {**self._environment, **agent.settings.env}, outputs)
        self._narration = Narration(
            self._conversation,
            self._activity,
            project=agent.project,
            find_call=agent.find_call,
            find_context=partial(find_context, agent),
            every_hook=self._every_hook,
        )
        await self._conversation.fill(entries_of(agent.messages, agent.hook_runs, agent.project))
        if notice := unused_hooks_notice(agent.home, agent.project, agent.unused_hooks):
            await self.say(Info(notice))
        if hidden := hidden_by_ours(self.custom.values()):
            await self.say(Info(hidden))
        if caution := self._caution(agent.permission_mode):
            await self.say(Warning_(caution))
        if unready := agent.why_not_ready:
            await self.say(Warning_(unready))
        self.tell_status()

    async def change_session(self, resume: str | None, source: str) -> None:
        before = self.agent
        await asyncio.gather(*self._left)  # one of them may still hold the requested session
        self._agent = self._open(resume, source, before)
        self._queue.along.clear()
        self._left = [asyncio.create_task(before.close("resume" if resume else "clear"))]
        self._activity.forget_hooks()
        await self._show_session(self._agent)
        words = "Switched session." if resume else "New session. To go back to the old one: /resume."
        await self.say(Info(words))

    async def shut_down(self) -> None:
        """Close the agent and stop all work."""
        await self._queue.end()
        if self._shell is not None:
            await self._shell.close()
        await asyncio.gather(*self._left)
        if self._agent is not None:
            await self._agent.close("prompt_input_exit")

    # ------------------------------------------------------------------------------------------- interface for commands

    @property
    def agent(self) -> Agent:
        assert self._agent is not None, "the question of trust is still open"
        return self._agent

    @property
    def agents(self) -> Agents:
        return self._agents

    @property
    def open_agent(self) -> Agent | None:
        """None until the trust question is answered."""
        return self._agent

    @property
    def trace(self) -> list[tuple[float, HookRun]]:
        return [] if self._narration is None else self._narration.trace

    async def say(self, entry: Entry) -> None:
        if self._narration is not None:
            await self._narration.add(entry)
        self._conversation.follow()

    async def ask(self, question: Question) -> str | None:
        """Show the question in place of the prompt until it is answered or the caller is cancelled."""
        async with self._asking:
            following = self._conversation.is_following
            await self._status.screen.mount(question, before=self._status)  # below any open view
            question.take_keyboard()  # before the prompt is hidden, or the focus would move to a card
            self._box.display = False
            self.bell()
            try:
                return await question.answer
            finally:
                if self._box.is_mounted and self.is_running:  # otherwise the screen is being closed
                    self._box.display = True
                    self._box.input.focus()
                    question.remove()
                    if following:
                        self._conversation.follow()

    async def view(self, screen: ModalScreen[Any]) -> None:
        await self.push_screen(screen)

    async def choose(self, screen: ModalScreen[str | None]) -> str | None:
        """What the user chooses there."""
        return await self.push_screen_wait(screen)

    @property
    def environment(self) -> Mapping[str, str]:
        return self._environment

    async def edit(self, words: Sequence[str]) -> int:
        """Give the terminal to the user's editor. The exit status. Raises `WaveError`."""
        from wave_agent.screen.editor import run_editor  # lazy: rarely used

        self.editing = True
        try:
            return await run_editor(self, words, self._environment, self.agent.project)
        finally:
            self.editing = False

    def bell(self) -> None:
        if not self.editing:  # the terminal belongs to the editor
            super().bell()

    def end_by_signal(self, number: int, status: int) -> None:
        if not (self.editing and number == signal.SIGINT):  # Ctrl-C is for the editor
            self.exit(status)

    async def copy(self, text: str) -> None:
        """Both through the terminal and through programs of this machine: nobody can tell which of them works."""
        self.copy_to_clipboard(text)
        await hand_over(text, self._environment)
        self.notify(f"Copied {size_of(text)}.", markup=False)

    def go_along(self, attachment: Attachment) -> None:
        self._queue.along.append(attachment)

    def use_theme(self, name: str) -> None:
        self.theme = THEMES[name]

    def leave(self) -> None:
        self.exit(0)

    # ------------------------------------------------------------------------------------------------------ submissions

    @on(PromptBox.Sent)
    def _sent(self, event: PromptBox.Sent) -> None:
        if self._agent is not None:
            self._box.history.add(event.shown)
            self._conversation.follow()
            self._queue.submit(event.shown)

    @property
    def busy(self) -> bool:
        return self._queue.busy

    @property
    def shell(self) -> UserShell:
        assert self._shell is not None, "the question of trust is still open"
        return self._shell

    async def all_told(self) -> None:
        """Wait until the conversation shows everything so far."""
        await self._happened.join()

    def erase_prompt(self) -> None:
        if self._narration is not None and self._narration.prompt is not None:
            self._conversation.latest(self._narration.prompt).erase()

    def _start(self, work: Coroutine[Any, Any, None]) -> Worker[None]:
        return self.run_worker(work, group="work", exit_on_error=False)

    # ----------------------------------------------------------------------------------------------------- agent events

    def _hear(self, event: Event) -> None:
        if self._narration is not None:
            self._happened.put_nowait((event, self._narration))
        if isinstance(event, ModelWoken):
            self.call_later(self._queue.wake)
        if isinstance(event, HookFinished) and event.run.failure is not None and self._agent is not None:
            changes = self._agent.project_trust.changes()
            if changes and changes != self._refused:
                self._refused = changes
                self.run_worker(self._ask_about_changes(self._agent, changes), group="trust")

    async def _ask_about_changes(self, agent: Agent, changes: Mapping[str, str | None]) -> None:
        """Trust given elsewhere in the meantime may be the agent's own doing, so the user is asked here."""
        if await self.ask(ChangedFiles(agent.project, changes)) == ACCEPT:
            agent.project_trust.accept(changes)

    async def _narrate(self) -> None:
        while True:
            event, narration = await self._happened.get()
            try:
                if narration is self._narration:
                    await narration.tell(event)
            finally:
                self._happened.task_done()

    async def _may_run(self, request: PermissionRequest) -> Allow | Deny:
        """Approver for the agent: ask the user about a call."""
        diff = await asyncio.to_thread(change_of, request.tool_name, request.tool_input)
        await self.all_told()
        asked = monotonic()
        answer = await self.ask(PermissionDialog(request, diff, self.agent.project))
        if self._narration is not None:
            self._narration.waited(request.tool_use_id, monotonic() - asked)
        if answer is None:
            self.agent.interrupt()
            await asyncio.get_running_loop().create_future()  # ended by the interrupt
        for rule in rules_in(answer):
            await self._allow_for_good(rule)
        return meaning_of(answer, to_user=bool(request.question))

    async def _may_restore(self, request: RestoreRequest) -> bool:
        """Asks the user about files that a call changed although a rule denies it."""
        await self.all_told()
        asked = monotonic()
        answer = await self.ask(RestoreDialog(request, self.agent.project))
        if self._narration is not None:
            self._narration.waited(request.tool_use_id, monotonic() - asked)
        return answer != KEEP_CHANGE

    async def _elicit(self, request: "Elicitation") -> "ElicitationAnswer":
        """Answers what an MCP server asks the user."""
        from wave_agent.screen.elicitation import elicit  # lazy: few servers ask

        await self.all_told()
        return await elicit(request, self.ask, webbrowser.open)

    async def _allow_for_good(self, rule: str) -> None:
        self.agent.allow(rule)
        try:
            await asyncio.to_thread(self._remember, rule)
        except SettingsError as error:
            await self.say(Warning_(f"{rule} is allowed for this session only; it could not be stored: {error}"))

    def _use_pause(self) -> None:
        if monotonic() - self._box.last_key > PAUSE:
            self._idle()

    def tell_status(self) -> None:
        agent = self._agent
        if agent is None:
            return
        context = agent.context
        self._status.tell(
            StatusFacts(
                model=agent.model_name,
                mode=agent.permission_mode,
                used=context.used,
                window=context.window,
                dollars=agent.cost_usd,
                cached=agent.usage.cache_read_tokens / max(agent.usage.input_tokens, 1),
                directory=short_directory(agent.cwd),
                branch=git_branch(agent.cwd),
                session=agent.session_id,
                no_hooks=agent.no_hooks,
                hooks_left_out=agent.hooks_left_out > 0,
            )
        )

    def _candidates(self) -> Sequence[CompletionItem]:
        servers = None if self._agent is None else self._agent.mcp
        return [*candidates(list(self.custom.values())), *(mentionable(servers) if servers is not None else ())]

    # ------------------------------------------------------------------------------------------------------------- keys

    def action_escape(self) -> None:
        if self._box.close_list():
            return
        if not self._box.input.has_focus:
            self._box.input.focus()
        elif self.busy:
            self._queue.interrupt()

    def action_quit_soon(self) -> None:
        selected = self.screen.get_selected_text()
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
            return
        now = monotonic()
        if now - self._last_interrupt < SOON:
            self.exit(0)
            return
        self._last_interrupt = now
        if self._box.text:
            self._box.put("")
        elif self.busy:
            self._queue.interrupt()
        self.notify("Press Ctrl-C again to quit.", timeout=SOON, markup=False)

    def action_next_mode(self) -> None:
        if self._agent is not None:
            mode = PermissionMode(self._agent.permission_mode)
            at = MODES.index(mode) + 1 if mode in MODES else 0
            self._agent.permission_mode = MODES[at % len(MODES)]
            self.tell_status()

    def action_open_card(self) -> None:
        card = self._conversation.at_hand()
        if card is not None:
            card.toggle()
            card.scroll_visible(animate=False)

    async def action_copy_card(self) -> None:
        if isinstance(self.focused, Entry):
            await self.copy(self.focused.copied())

    def action_card(self, step: int) -> None:
        self._conversation.walk(step)

    def action_to_prompt(self) -> None:
        self._box.input.focus()

    def on_resize(self, event: events.Resize) -> None:
        for question in self.query(Question):
            question.fit(event.size)

    def on_key(self, event: events.Key) -> None:
        """Typing on a card goes to the prompt."""
        if isinstance(self.focused, Entry) and event.is_printable and event.character:
            self._box.input.focus()
            self._box.input.insert(event.character)

    def action_scroll_up(self) -> None:
        self._conversation.page(-1)

    def action_scroll_down(self) -> None:
        self._conversation.page(1)

    def action_scroll_start(self) -> None:
        self._conversation.to_start()

    def action_scroll_end(self) -> None:
        self._conversation.follow()

    @on(PromptBox.CardsWanted)
    def _to_cards(self) -> None:
        cards = self._conversation.cards
        if cards:
            cards[-1].focus()

    @on(PromptBox.LeaveWanted)
    def _leave(self) -> None:
        self.leave()

    @on(PromptBox.SearchWanted)
    def _search(self) -> None:
        self.push_screen(HistorySearch(self._box.history), self._found)

    def _found(self, prompt: str | None) -> None:
        if prompt is not None:
            self._box.put(prompt)
