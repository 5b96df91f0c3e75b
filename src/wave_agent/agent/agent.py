"""The agent that a program embeds. `turn` defines what happens in a turn, `wiring` how the parts are connected."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec import to_builtins
from msgspec.structs import replace

from wave_agent.agent.current_work import CurrentWork
from wave_agent.agent.foundation import lay_foundation, mode_for
from wave_agent.agent.life_cycle import LifeCycle
from wave_agent.agent.model_choice import model_name_for
from wave_agent.agent.model_windows import known_prices
from wave_agent.agent.new_ground import lay_ground
from wave_agent.agent.options import Options
from wave_agent.agent.outgoing import tokens_of
from wave_agent.agent.result import Callbacks, Context, Result
from wave_agent.agent.spending import Costs, Spending
from wave_agent.agent.turn import Parts, Turn, TurnStatus
from wave_agent.agent.wiring import Ground, make_parts, with_model
from wave_agent.errors import AgentClosedError, SettingsError
from wave_agent.events import Event, HookRun, TurnEnded, TurnStarted
from wave_agent.formats.readable import readable_text
from wave_agent.hooks.events import HookEvent, HookEventName
from wave_agent.hooks.execution import HookRunner
from wave_agent.messages import Message, ToolBlock
from wave_agent.models.base import ApiName, Effort, Model, Usage
from wave_agent.permissions.decision import Approver, ModeName, PermissionMode, Rules
from wave_agent.rules.rule import RuleError, parse_rule
from wave_agent.sessions.store import FileSessionStore
from wave_agent.sessions.transcript import Used
from wave_agent.settings.layers import Settings
from wave_agent.settings.places import SourceName
from wave_agent.settings.sources import Trust
from wave_agent.settings.trust import ProjectTrust
from wave_agent.system.fairness import fairness
from wave_agent.tools.base import Tool
from wave_agent.tools.changes import TakenBack
from wave_agent.tools.files import uninterrupted

if TYPE_CHECKING:
    from wave_agent.mcp.session import McpSession
    from wave_agent.settings.extensions import Extensions


class Agent:
    """A guarded agent in a project. Make one with `await Agent.create(…)`; close it, or use `async with`."""

    def __init__(self, ground: Ground, parts: Parts) -> None:
        """For `create`; nothing here touches the network or the disk."""
        self._ground = ground
        self._parts = parts
        self._hooks = parts.hooks
        self._messages = ground.messages
        self._log = ground.log
        self._emit = ground.listeners.emit
        self.session_id = ground.session_id
        self.transcript_path = str(ground.transcript)
        self.last_result: Result | None = None
        """The result of the last prompt."""
        self._life = LifeCycle(ground, parts.hooks, parts.calls)
        self._work = CurrentWork(ground.inside)
        self._turn_lock = asyncio.Lock()
        self._turn: Turn | None = None
        self._used = 0
        self._closed = False

    @classmethod
    async def create(
        cls,
        *,
        workdir: str | os.PathLike[str] | None = None,
        model: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        api: ApiName | None = None,
        hooks: Mapping[str, Any] | Mapping[HookEventName, Any] | None = None,
        tools: Sequence[Tool] = (),
        agents: Mapping[str, Mapping[str, Any]] | None = None,
        system_prompt: str | None = None,
        permission_mode: ModeName | PermissionMode | None = None,
        can_use_tool: Approver | None = None,
        callbacks: Callbacks | Mapping[str, Callable[..., object]] | None = None,
        settings: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        setting_sources: Sequence[SourceName] | None = None,
        trust: Trust = False,
        max_turns: int | None = None,
        max_cost: float | None = None,
        max_output_tokens: int | None = None,
        effort: Effort | None = None,
        fallback_model: str | None = None,
        resume: str | None = None,
        model_client: Model | None = None,
        hook_runner: HookRunner | None = None,
        mcp_servers: Mapping[str, Any] | None = None,
        mcp_host: Any = None,
    ) -> Self:
        """An agent for the project in `workdir` (default: the current directory). Touches no network.

        `api` says what the server speaks, if its URL does not.

        `hooks` has the same shape as in settings; hooks may also be Python functions. `settings` is a file or an object
        applied on top of the others. `setting_sources` names the layers to read: `managed`, `user`, `project`, `local`.
        `trust` says whether the project's own hooks may run: False raises `UntrustedHooksError` if there are any.
        `max_cost` is in US dollars, for all prompts together. `fallback_model` takes over if the model is overloaded.
        `tools` are added to the built-in ones; a tool with the same name replaces the built-in one. `agents` are types
        of subagents by name: `description`, `prompt`, and the other keys of a definition file. `model_client` is
        anything with the methods of `Model`, `hook_runner` anything with that of `HookRunner`; `wave_agent.testing` has
        some of both. `mcp_servers` are MCP servers by name, in the form of `.mcp.json`; they count as the user's own.
        `mcp_host` is what speaks to them, anything with the methods of `McpHost`. Raises
        `ArgumentError` for invalid arguments, and `SettingsError`.
        """
        # lazy: the command line does without
        from wave_agent.agent.arguments import agents_from, callbacks_from, require_usable

        require_usable(locals())
        with fairness().at_work():
            await asyncio.sleep(0)  # so that each of several knows of the others
            await fairness().breathe()
        return cls.from_options(
            Options(
                workdir=workdir,
                model=model,
                base_url=base_url,
                api_key=api_key,
                api=api,
                hooks=hooks,
                tools=tools,
                agents=agents_from(agents),
                system_prompt=system_prompt,
                permission_mode=permission_mode,
                can_use_tool=can_use_tool,
                callbacks=callbacks_from(callbacks),
                overlays=() if settings is None else (settings,),
                setting_sources=setting_sources,
                trust=trust,
                max_turns=max_turns,
                max_cost=max_cost,
                max_output_tokens=max_output_tokens,
                effort=effort,
                fallback_model=fallback_model,
                resume=resume,
                model_client=model_client,
                hook_runner=hook_runner,
                mcp_servers=mcp_servers,
                mcp_host=mcp_host,
            )
        )

    @classmethod
    def from_options(cls, options: Options, *, store: Callable[..., FileSessionStore] = FileSessionStore) -> Self:
        """Like `create`, with options that `create` does not take."""
        ground = lay_ground(lay_foundation(options, dict(os.environ)), store)
        agent = cls(ground, make_parts(ground))
        if ground.resumed is not None:
            agent._life.end_leftovers()
        return agent

    # ------------------------------------------------------------------------------------------------------------- use

    @property
    def settings(self) -> Settings:
        """All settings layers merged, as of the session's start."""
        return self._ground.foundation.settings

    @property
    def home(self) -> Path:
        """The directory for the agent's own state."""
        return self._ground.foundation.home

    @property
    def project(self) -> str:
        """The project's directory, as a real path."""
        return self._ground.foundation.project

    @property
    def cwd(self) -> str:
        """The directory it was started in, the project directory or below: commands and relative paths start there."""
        return self._ground.foundation.place.start

    @property
    def messages(self) -> list[Message]:
        """The whole conversation, including blocks for the user only."""
        return self._messages.messages

    @property
    def project_trust(self) -> ProjectTrust:
        """The files that the project's hooks depend on in this session, and how they have changed."""
        return self._ground.foundation.gathered.trust

    @property
    def unused_hooks(self) -> tuple[str, ...]:
        """The project's hooks for other agents, if it is not yet decided whether they run."""
        return self._ground.foundation.gathered.unused

    @property
    def no_hooks(self) -> bool:
        """The user has disabled all hooks except managed ones: `--no-hooks`, or `disableAllHooks` in settings."""
        foundation = self._ground.foundation
        return foundation.options.no_hooks or foundation.gathered.hooks_disabled

    @property
    def hooks_left_out(self) -> int:
        """How many of the project's hooks do not run because it was opened without them."""
        return self._ground.foundation.gathered.left_out

    @property
    def mcp(self) -> "McpSession | None":
        """The MCP servers of this session; None if there are none."""
        return self._ground.mcp

    @property
    def extensions(self) -> "Extensions | None":
        """The agents, skills and commands of this session, and what was left out; None if there are none."""
        return self._ground.foundation.gathered.extensions

    async def remember(self, line: str) -> str:
        """Adds a line to the project's AGENTS.md, which later sessions read, by calls that hooks and permissions judge
        as if the model made them. Returns what happened; it starts with "Not " if nothing was written."""
        from wave_agent.agent.memory import remember  # lazy: rarely used

        self._ground.inside.require_outside("remember")
        async with self._turn_lock:
            self._require_open()
            turn = Turn(self._parts)
            async with self._log.turn():
                async with self._life.turn(turn):
                    work = asyncio.create_task(remember(line, self.project, self._parts.calls, self._messages))
                    await self._work.attend(work)
                return "Not added: interrupted." if work.cancelled() else work.result()
            return f"Not added: {self._log.failure}"

    def aside(self, call_id: str) -> ToolBlock | None:
        """A call that the latest prompt asked for before it was sent; it is not part of the conversation."""
        return self._messages.aside(call_id)

    def find_call(self, call_id: str) -> ToolBlock | None:
        """A call of the conversation, or one that the latest prompt asked for before it was sent."""
        return self._messages.call(call_id) if self._messages.has_call(call_id) else self.aside(call_id)

    @property
    def why_not_ready(self) -> str:
        """Why no prompt can be answered yet, if that is known without asking the server; otherwise empty."""
        ask: Callable[[str], str] | None = getattr(self._ground.model, "why_not_ready", None)
        return "" if ask is None else ask(self.model_name)

    @property
    def hook_runs(self) -> list[HookRun]:
        """The journal: every hook run in this session."""
        return list(self._hooks.journal)

    @property
    def busy(self) -> bool:
        """Something is running that `interrupt` would end."""
        return self._work.is_running

    @property
    def permission_mode(self) -> ModeName:
        """What runs without asking. A change applies from the next call; the next request informs the model."""
        return self._parts.calls.mode.value

    @permission_mode.setter
    def permission_mode(self, mode: ModeName | PermissionMode) -> None:
        foundation = self._ground.foundation
        found, notices = mode_for(mode, self.settings, foundation.above)
        self._parts.calls.mode = found
        if foundation.handed_down is not None:
            self._ground.variables.fix(replace(foundation.handed_down, mode=found).variable())
        for notice in notices:
            self._messages.add_notice_block(notice)

    @property
    def model_name(self) -> str:
        """The model in use. A change applies from the next prompt."""
        return self._parts.model_name

    @model_name.setter
    def model_name(self, name: str) -> None:
        used = model_name_for(name, self.settings, {})
        if used != name:
            self._messages.add_notice_block(f"The model stays {used}, not {name}: set by managed settings.")
            return
        try:
            Spending(partial(known_prices, self.settings), self._ground.spending.limit).require_prices(name, self.home)
        except SettingsError as error:
            self._messages.add_notice_block(f"The model stays {self.model_name}, not {name}. {error}")
            return
        self._parts = with_model(self._ground, self._parts, name)

    @property
    def rules(self) -> Rules:
        """The permission rules currently in effect."""
        return self._parts.calls.rules

    def allow(self, rule: str) -> None:
        """Adds an allow rule for this session. Raises `SettingsError` if it is invalid."""
        try:
            self._parts.calls.allow(parse_rule(rule))
        except RuleError as error:
            raise SettingsError(str(error)) from None

    @property
    def usage(self) -> Usage:
        """The tokens used by all prompts of this agent."""
        return self._ground.spending.total.usage

    @property
    def cost_usd(self) -> float | None:
        """What all prompts of this agent cost. None if prices are unknown, or if the server does not report usage."""
        total = self._ground.spending.total
        return total.dollars if total.dollars or self._ground.windows.current.prices is not None else None

    @property
    def saved_usd(self) -> float:
        """How much of the cost the server's prompt cache saved, as far as prices are known."""
        return self._ground.spending.total.saved

    @property
    def costs(self) -> Costs:
        """What was used, by model, by subagents and by hooks, and what is left of the limit."""
        return self._ground.spending.costs

    @property
    def used_before(self) -> Used:
        """What a session that was resumed had used before."""
        return self._ground.before.used

    @property
    def context(self) -> Context:
        """How full the model's window is."""
        used = self._used if self._turn is None else self._turn.used or self._used
        return Context(used=used or None, window=self._ground.windows.current.known)

    def compact(self, instructions: str = "") -> Coroutine[Any, Any, bool]:
        """Summarises the older part of the conversation now; `instructions` say what matters in it.

        False if there is nothing to summarise, a hook vetoed it, or it was interrupted. Raises `ModelError`, and
        `InsideTurnError` from the agent's own tools and hooks.
        """
        self._ground.inside.require_outside("compact")
        return self._compact(instructions)

    async def _compact(self, instructions: str) -> bool:
        async with self._turn_lock:
            self._require_open()
            if self._ground.spending.is_used_up:
                self._messages.add_notice_block(self._ground.spending.why_used_up)
                return False
            await self._parts.briefing.settle(self._parts.calls.mode)
            size = tokens_of(self._messages.for_model)
            window = min(self._ground.windows.current.known or size, size)
            work = asyncio.create_task(self._parts.compactor.compact(window, "manual", instructions))
            await self._work.attend(work)
            shorter = not work.cancelled() and work.result().done
            self._used = 0 if shorter else self._used
            return shorter

    def undo(self) -> Coroutine[Any, Any, TakenBack]:
        """Reverts what tools, commands and the hooks after them changed in the latest turn that changed files.

        Raises `InsideTurnError` from the agent's own tools and hooks.
        """
        self._ground.inside.require_outside("undo")
        return self._undo()

    async def _undo(self) -> TakenBack:
        async with self._turn_lock:
            await self._parts.calls.settle()
            try:
                return await uninterrupted(self._ground.changes.take_back)
            finally:
                if (watch := self._parts.calls.watch) is not None:
                    await watch.skip()

    def send_message(
        self, text: str, *, expand: bool = False, complete: Callable[[str], str] | None = None
    ) -> Coroutine[Any, Any, Result]:
        """Runs one prompt to its end. If another one is running, waits for it to finish.

        `expand` is for text that the user has typed, never for what other programs have written: a `/name arguments` at
        its start becomes that command, skill or prompt of an MCP server, and each `@server:uri` is attached. `complete`
        then adds to it what is not expanded, such as piped input.

        The agent's own tools and hooks cannot wait for that: for them it raises `InsideTurnError`, as soon as it is
        called and not only when it is awaited.
        """
        self._require_prompt(text, "send_message")
        return self._send(readable_text(text), None, _completing(complete) if expand else None)

    def continue_turn(self) -> Coroutine[Any, Any, Result]:
        """Continues without a new prompt: with a call that a hook deferred, which is judged anew, with what a
        background hook reported, or with the prompt of a SessionStart hook. If there is nothing to do, the result is an
        error. Raises `InsideTurnError` like `send_message`.
        """
        self._ground.inside.require_outside("continue_turn")
        return self._send(None, None, None)

    @property
    def is_woken(self) -> bool:
        """A background hook has reported something that the model has not seen yet."""
        return self._hooks.wakes

    @property
    def can_continue(self) -> bool:
        """`continue_turn` has something to do, or a SessionStart hook may have."""
        return self._life.deferred is not None or self._hooks.wakes or self._life.may_begin_by_itself

    async def _send(
        self, text: str | None, listener: asyncio.Queue[Event | None] | None, complete: Callable[[str], str] | None
    ) -> Result:
        async with self._turn_lock:
            self._require_open()
            await fairness().breathe()
            self._ground.listeners.stream = listener
            started, hooks_before = monotonic(), len(self._hooks.journal)
            violations_before = len(self._parts.calls.violations)
            await self._parts.calls.settle()
            self._ground.spending.begin_turn()
            self._ground.count.begin_turn()
            parts = self._parts
            turn = self._turn = Turn(parts, self._life.deferred_call())
            self._ground.changes.begin_turn()
            self._ground.listeners.loading(True)
            try:
                with fairness().at_work():
                    status = await self._run(turn, text, complete)
            finally:
                parts.calls.end_turn()
                self._ground.listeners.loading(False)
                self._turn, self._used = None, turn.used or self._used
                if self._parts is parts:  # the user has not chosen another model in the meantime
                    self._parts = turn.parts
            self._ground.refresh_spending()
            spent = self._ground.spending.turn
            self._emit(TurnEnded(status=status.value))
            self._ground.listeners.stream = None
            self.last_result = Result(
                status=status.value,
                text=turn.text,
                error=turn.error,
                usage=spent.usage,
                cost_usd=spent.dollars,
                hooks=tuple(self._hooks.journal[hooks_before:]),
                turns=turn.requests,
                messages=tuple(self.messages),
                session_id=self.session_id,
                transcript_path=self.transcript_path,
                duration_ms=round((monotonic() - started) * 1000),
                violations=self._parts.calls.violations[violations_before:],
                deferred_tool_use=self._life.deferred,
            )
            return self.last_result

    def stream(
        self, text: str, *, expand: bool = False, complete: Callable[[str], str] | None = None
    ) -> AsyncIterator[Event]:
        """Like `send_message`, as events. Leaving the loop early interrupts the turn. See also `last_result`."""
        self._require_prompt(text, "stream")
        return self._stream(readable_text(text), _completing(complete) if expand else None)

    async def _stream(self, text: str, complete: Callable[[str], str] | None) -> AsyncIterator[Event]:
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        work = asyncio.create_task(self._send(text, queue, complete))
        work.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
            await work
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait({work})

    def interrupt(self) -> None:
        """Ends the running turn: the model's answer, hooks and tools. Its result has the status `interrupted`.

        May be called from anywhere: a task, the agent's own tools and callbacks, another thread, a signal handler.
        """
        self._work.interrupt()

    async def notify(self, notification_type: str, message: str, title: str = "") -> None:
        """Runs the Notification hooks because the user is needed, e.g. for `idle_prompt`. Does not wait for them."""
        if self._life.has_begun and not self._closed:
            facts = {"message": message, "title": title, "notification_type": notification_type}
            await self._hooks.run(HookEvent.NOTIFICATION, facts, permission_mode=self.permission_mode)

    async def close(self, reason: str = "other") -> None:
        """Interrupts the running turn, gives async hooks a last moment, and releases everything.

        `reason` is for the hooks of SessionEnd: `clear`, `resume`, `logout`, `prompt_input_exit` or `other`. Raises
        `InsideTurnError` from the agent's own tools and hooks.
        """
        self._ground.inside.require_outside("close")
        if self._closed:
            return
        self._closed = True
        self.interrupt()
        async with self._turn_lock:
            await self._life.close(reason)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---------------------------------------------------------------------------------------------------------- inside

    async def _run(self, turn: Turn, text: str | None, complete: Callable[[str], str] | None) -> TurnStatus:
        """Runs the turn within the session. If its records cannot be written, the result is an error that says why."""
        status = TurnStatus.ERROR
        async with self._log.turn():
            async with self._life.turn(turn):
                self._emit(TurnStarted(prompt=(text or "") if complete is None else complete(text or "")))
                self._parts.briefing.begin()
                work = asyncio.create_task(turn.run(text, session_source=self._life.source, complete=complete))
                prepare: Callable[[], Coroutine[Any, Any, None]] | None = getattr(self._ground.model, "prepare", None)
                # After the turn has started: connecting continues while its first hooks run.
                await self._work.attend(work, beside=None if prepare is None else prepare())
                await self._parts.calls.settle()
            self._record_usage(turn)
            status = TurnStatus.INTERRUPTED if work.cancelled() else work.result()
            if work.cancelled():
                self._messages.add_notice_block("Interrupted.", "info")
        if self._log.failure is None:
            return status
        turn.error = self._log.reported = str(self._log.failure)
        self._messages.add_error_block(turn.error)
        return TurnStatus.ERROR

    def _record_usage(self, turn: Turn) -> None:
        self._ground.refresh_spending()
        if turn.requests:
            spent = self._ground.spending.turn
            used = {"model": turn.parts.model_name, "requests": turn.requests, **to_builtins(spent.usage)}
            self._log.usage({**used, "cost_usd": spent.dollars, "saved_usd": spent.saved})

    def _require_prompt(self, text: object, what: str) -> None:
        self._ground.inside.require_outside(what)
        if not isinstance(text, str):
            raise TypeError(f"a prompt is a string, not {type(text).__name__}")

    def _require_open(self) -> None:
        if self._closed:
            raise AgentClosedError("This agent is closed.")


def _completing(complete: Callable[[str], str] | None) -> Callable[[str], str]:
    """The text of a prompt in the end. What was added to it must be readable too."""
    return lambda text: readable_text(text if complete is None else complete(text))
