"""The screen's slash commands. Each is the method with its name; `commands.COMMANDS` describes them."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from textual.screen import ModalScreen

from wave_agent.agent.agent import Agent
from wave_agent.errors import WaveError
from wave_agent.events import HookRun
from wave_agent.rules.rule import Rule
from wave_agent.screen.agents import Agents
from wave_agent.screen.attachments import Attachment, attachment_of
from wave_agent.screen.clipboard import code_blocks, last_answer
from wave_agent.screen.commands import COMMANDS, meaning_of
from wave_agent.screen.cost import cost_lines
from wave_agent.screen.entries import Columns, Entry, Info, Warning_
from wave_agent.screen.extensions_view import extension_rows
from wave_agent.screen.hooks_view import HooksView, defined, happened
from wave_agent.screen.keys import KEYS
from wave_agent.screen.mcp_view import OFFER, ToolsQuestion, server_row
from wave_agent.screen.question import Question
from wave_agent.screen.saved_sessions import LISTED, export, first_prompt, latest_sessions, when
from wave_agent.screen.theme import THEMES, Preference
from wave_agent.sessions.index import find_session, transcript_ids
from wave_agent.sessions.transcript import transcripts
from wave_agent.settings.extensions import ExtensionFile
from wave_agent.settings.places import ExtensionKind
from wave_agent.tools.task import BUILT_IN

_NO_SKILLS = "None. Put a skill into .wave/skills/NAME/SKILL.md, a command into .wave/commands/NAME.md."
_AGENTS = "Agents of this session. Your own go into .wave/agents/NAME.md. Esc closes"


class CommandScreen(Protocol):
    """What commands need from the screen."""

    @property
    def agent(self) -> Agent: ...
    @property
    def agents(self) -> Agents: ...
    @property
    def trace(self) -> list[tuple[float, HookRun]]: ...
    @property
    def custom(self) -> Mapping[str, ExtensionFile]: ...
    @property
    def environment(self) -> Mapping[str, str]: ...

    async def edit(self, words: Sequence[str]) -> int: ...
    async def say(self, entry: Entry) -> None: ...
    async def ask(self, question: Question) -> str | None: ...
    async def view(self, screen: ModalScreen[Any]) -> None: ...
    async def choose(self, screen: ModalScreen[str | None]) -> str | None: ...
    async def change_session(self, resume: str | None, source: str) -> None: ...
    async def copy(self, text: str) -> None: ...
    def go_along(self, attachment: Attachment) -> None: ...
    def use_theme(self, name: str) -> None: ...
    def leave(self) -> None: ...


class ScreenCommands:
    def __init__(self, front: CommandScreen, preference: Preference) -> None:
        self._front = front
        self._preference = preference

    async def run(self, name: str, arguments: str) -> None:
        await getattr(self, f"do_{name}")(arguments)

    async def _tell(self, *lines: str) -> None:
        await self._front.say(Info("\n".join(lines)))

    async def _warn(self, text: str) -> None:
        await self._front.say(Warning_(text))

    # ----------------------------------------------------------------------------------------------------- the commands

    async def do_help(self, _arguments: str) -> None:
        lines = ["Commands"]
        lines += [f"  {f'/{one.name} {one.argument}':<26} {one.meaning}" for one in COMMANDS]
        lines += [f"  {f'/{one.name}':<26} {meaning_of(one)}" for one in self._front.custom.values()]
        lines += ["  !COMMAND                   run a shell line; its output is sent with the next prompt"]
        lines += ["  #LINE                      add a line to AGENTS.md, which every later session reads"]
        for where in dict.fromkeys(key.where for key in KEYS):
            lines += ["", f"Keys {where}"]
            lines += [f"  {key.label:<26} {key.meaning}" for key in KEYS if key.where is where]
        entry = Columns("\n".join(lines))
        entry.opened = True
        await self._front.say(entry)

    async def do_clear(self, _arguments: str) -> None:
        await self._front.change_session(None, "clear")

    async def do_compact(self, arguments: str) -> None:
        try:
            shorter = await self._front.agent.compact(arguments)
        except WaveError as error:
            await self._warn(str(error))
            return
        if not shorter:
            await self._tell("Nothing was summarised.")

    async def do_model(self, arguments: str) -> None:
        agent = self._front.agent
        if arguments:
            agent.model_name = arguments
            await self._tell(f"Using {arguments} from the next prompt on.")
            return
        known = ", ".join(agent.settings.models)
        await self._tell(
            f"The model is {agent.model_name or '(the server’s default)'}. Change it with /model NAME.",
            *([f"Configured: {known}."] if known else []),
        )

    async def do_permissions(self, _arguments: str) -> None:
        agent = self._front.agent
        rules = agent.rules
        lines = [f"Mode {agent.permission_mode}; Shift-Tab changes it."]
        for name, listed in (("deny", rules.deny), ("ask", rules.ask), ("allow", rules.allow)):
            lines.append(f"{name:>6}  {_rules(listed)}")
        await self._tell(*lines)

    async def do_hooks(self, arguments: str) -> None:
        agent = self._front.agent
        if arguments == "trace":
            lived = self._front.trace
            before = agent.hook_runs[: len(agent.hook_runs) - len(lived)]
            rows = [happened(None, run) for run in before] + [happened(when, run) for when, run in lived]
            await self._front.view(HooksView("Hook runs in this session. Esc closes", rows))
        elif arguments:
            await self._warn("Use /hooks to list hooks, /hooks trace to see their runs.")
        else:
            from wave_agent.screen.hook_bench import KEYS as BENCH_KEYS  # lazy: loads the linter
            from wave_agent.screen.hook_bench import HookBench

            hooks = agent.settings.hooks.hooks
            rows = [defined(hook) for hook in hooks]
            count = agent.hooks_left_out
            out = f"{'1 hook' if count == 1 else f'{count} hooks'} of the project skipped" if count else ""
            title = f"Hooks of this session{f' ({out})' if out else ''}. {BENCH_KEYS if rows else 'Esc closes'}"
            empty = f"No hooks: the project's {count} were skipped." if out else ""
            await self._front.view(HookBench(self._front, hooks, title, rows, empty or "No hooks."))

    async def do_mcp(self, arguments: str) -> None:
        servers = self._front.agent.mcp
        if arguments not in ("", "trust"):
            await self._warn("Use /mcp to list servers and their tools, /mcp trust to review new and changed tools.")
        elif servers is None:
            await self._tell("There are no MCP servers in this session. Add one: wave mcp add NAME COMMAND")
        elif not arguments:
            rows = [server_row(one) for one in servers.servers()]
            await self._front.view(HooksView("MCP servers of this session. Esc closes", rows, "No servers may start."))
        elif waiting := servers.waiting():
            if await self._front.ask(ToolsQuestion(waiting)) != OFFER:
                return
            if servers.waiting() != waiting:
                await self._warn("They have changed again in the meantime: review them with /mcp trust.")
                return
            for server in dict.fromkeys(server.name for server, _ in waiting):
                servers.confirm(server, [tool.name for one, tool in waiting if one.name == server])
            await self._tell("The model gets these tools with its next request.")
        else:
            await self._tell("No tool waits for your review.")

    async def do_skills(self, _arguments: str) -> None:
        rows = extension_rows(self._front.agent.extensions, (ExtensionKind.SKILLS, ExtensionKind.COMMANDS))
        await self._front.view(HooksView("Skills and commands of this session. Esc closes", rows, _NO_SKILLS))

    async def do_agents(self, _arguments: str) -> None:
        rows = extension_rows(self._front.agent.extensions, (ExtensionKind.AGENTS,), BUILT_IN.items())
        await self._front.view(HooksView(_AGENTS, rows, ""))

    async def do_sessions(self, _arguments: str) -> None:
        found = await latest_sessions(self._front.agent)
        lines = [f"  {session.session_id}  {when(session)}  {first_prompt(session)}" for session in found[:LISTED]]
        if len(found) > LISTED:
            lines.append("  and more: wave sessions --limit 0 lists all")
        await self._tell("Sessions of this project; continue one with /resume", *lines or ["  none yet"])

    async def do_resume(self, arguments: str) -> None:
        chosen = arguments or await self._choose_session()
        if not chosen:
            return
        agent = self._front.agent
        try:
            path = find_session(agent.home, agent.project, chosen)
            await self._front.change_session(path.stem, "startup")
        except WaveError as error:
            await self._warn(str(error))

    async def _choose_session(self) -> str | None:
        from wave_agent.screen.session_picker import SessionPicker  # lazy: loads SQLite

        agent = self._front.agent
        directory = transcripts(agent.home, agent.project)
        if not await asyncio.to_thread(transcript_ids, directory) - {agent.session_id}:
            await self._tell("There is no other session in this project.")
            return None
        return await self._front.choose(SessionPicker(directory, agent.session_id))

    async def do_doctor(self, _arguments: str) -> None:
        from wave_agent.screen.doctor_view import DoctorView  # lazy, as the next one: loads the linter
        from wave_agent.workshop.doctor import CheckedSession, examine

        agent, options = self._front.agent, self._front.agents.options
        session = CheckedSession(cwd=agent.cwd, model=agent.model_name or None, wishes=options.wishes, choice=options)
        await self._front.view(DoctorView(partial(examine, session)))

    async def do_cost(self, _arguments: str) -> None:
        entry = Info("\n".join(cost_lines(self._front.agent)))
        entry.opened = True  # several models need more lines than are shown otherwise
        await self._front.say(entry)

    async def do_copy(self, arguments: str) -> None:
        what, _, number = arguments.partition(" ")
        messages = self._front.agent.messages
        if what not in ("", "code") or (number and not (what and number.isascii() and number.isdigit())):
            await self._warn(
                "Use /copy for the last answer, /copy code for its last code block, /copy code 1 for the one before."
            )
            return
        blocks = code_blocks(messages) if what else []
        at = int(number or 0)
        text = (blocks[-1 - at] if at < len(blocks) else None) if what else last_answer(messages)
        if text is None:
            await self._warn("There is no such code block." if what else "There is no answer yet.")
        else:
            await self._front.copy(text)

    async def do_export(self, arguments: str) -> None:
        try:
            await self._tell(f"Wrote {await export(self._front.agent, arguments)}.")
        except WaveError as error:
            await self._warn(str(error))

    async def do_theme(self, arguments: str) -> None:
        if arguments in THEMES:
            self._front.use_theme(arguments)
            self._preference.keep(arguments)
        elif arguments:
            await self._warn(f'There is no theme "{arguments}"; available: {", ".join(THEMES)}.')
        else:
            await self._tell(f"Themes: {', '.join(THEMES)}. Change it permanently with /theme NAME.")

    async def do_undo(self, _arguments: str) -> None:
        taken = await self._front.agent.undo()
        for path, why in taken.refused.items():
            await self._warn(f"{path} was not reverted: {why}.")
        if undone := attachment_of(taken):
            await self._tell(undone.text)
            self._front.go_along(undone)
        elif not taken.refused:
            await self._tell(
                "No changes to files to undo. Files outside the project, and those that git ignores, are only covered "
                "if Write or Edit changed them."
            )

    async def do_exit(self, _arguments: str) -> None:
        self._front.leave()


def _rules(rules: tuple[Rule, ...]) -> str:
    return ", ".join(rule.text for rule in rules) or "–"
