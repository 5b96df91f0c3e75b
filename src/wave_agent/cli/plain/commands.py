"""The slash commands of `wave --plain`. Each is the method with its name; `COMMANDS` describes them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from wave_agent.agent.agent import Agent
from wave_agent.agent.spending import shown
from wave_agent.agent.surroundings import git_branch
from wave_agent.errors import WaveError
from wave_agent.events import HookRun
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.permissions.decision import PermissionMode
from wave_agent.rules.rule import Rule
from wave_agent.screen.attachments import Attachment, attachment_of
from wave_agent.screen.commands import BY_NAME, PROMPTS, SlashCommand, meaning_of, unknown
from wave_agent.screen.cost import cost_lines
from wave_agent.screen.dialogs import Choice, Dialog, Part
from wave_agent.screen.saved_sessions import LISTED, export, first_prompt, latest_sessions, when
from wave_agent.sessions.index import find_session
from wave_agent.settings.extensions import ExtensionFile
from wave_agent.text import one_line

_OWN = (
    SlashCommand("help", "", "list the commands"),
    SlashCommand("hooks", "[trace]", "list this session's hooks; `trace`: their runs, in order"),
    SlashCommand("resume", "[ID]", "resume another session of this project; no ID: choose from a list"),
    SlashCommand("mode", "[NAME]", "show or change the permission mode: default, acceptEdits, plan"),
    SlashCommand("status", "", "show model, mode, how full the window is, directory and session"),
    SlashCommand("output", "[N]", "print the latest call's input and output; N: of the Nth call before it"),
)
"""What is different here, and that for which the screen has keys, or shows all the time."""
_SAME = ("clear", "compact", "model", "permissions", "init", "sessions", "cost", "export", "undo", "exit")
_ELSEWHERE: Mapping[str, str] = {
    "doctor": "wave doctor",
    "mcp": "wave mcp",
}
"""Commands of the shell that say the same."""
COMMANDS: Mapping[str, SlashCommand] = {
    **{name: BY_NAME[name] for name in _SAME},
    **{command.name: command for command in _OWN},
}


class LineFront(Protocol):
    """What commands need from the session."""

    @property
    def agent(self) -> Agent: ...
    @property
    def custom(self) -> Mapping[str, ExtensionFile]: ...
    @property
    def calls(self) -> list[str]: ...

    def say(self, text: str) -> None: ...
    async def ask(self, dialog: Dialog) -> str | None: ...
    async def change_session(self, resume: str | None, source: str) -> None: ...
    def go_along(self, attachment: Attachment) -> None: ...
    def leave(self) -> None: ...


class Commands:
    def __init__(self, front: LineFront) -> None:
        self._front = front
        self._run: Mapping[str, Callable[[str], Awaitable[None]]] = {
            name: getattr(self, f"do_{name}") for name in COMMANDS if name not in PROMPTS
        }

    async def run(self, name: str, arguments: str) -> None:
        if name in self._run:
            await self._run[name](arguments)
        elif name in BY_NAME:
            instead = f", or in a shell: {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
            self._front.say(f"/{name} needs the full screen: wave without --plain{instead}.")
        else:
            self._front.say(unknown(name, [*self._front.custom, *COMMANDS]))

    # ----------------------------------------------------------------------------------------------------- the commands

    async def do_help(self, _arguments: str) -> None:
        listed = [(f"/{one.name} {one.argument}".rstrip(), one.meaning) for one in COMMANDS.values()]
        listed += [(f"/{one.name}", meaning_of(one)) for one in self._front.custom.values()]
        listed += [
            ("!COMMAND", "run a shell line; its output is sent with the next prompt"),
            ("#LINE", "add a line to AGENTS.md, which every later session reads"),
            ("A backslash at the end of a line", "continues the prompt in the next line"),
            ('A line with """', "begins a prompt of many lines, and another one ends it"),
            ("Ctrl-C", "interrupts the turn, discards unsent input, or dismisses a question; twice: quits"),
            ("Ctrl-D", "quits"),
        ]
        self._front.say("\n".join(f"{name}: {meaning}" for name, meaning in listed))

    async def do_clear(self, _arguments: str) -> None:
        await self._front.change_session(None, "clear")

    async def do_compact(self, arguments: str) -> None:
        if not await self._front.agent.compact(arguments):
            self._front.say("Nothing was summarised.")

    async def do_model(self, arguments: str) -> None:
        agent = self._front.agent
        if arguments:
            agent.model_name = arguments
            self._front.say(f"Using {arguments} from the next prompt on.")
            return
        known = ", ".join(agent.settings.models)
        self._front.say(f"The model is {agent.model_name or 'the server’s default'}. Change it with /model NAME.")
        if known:
            self._front.say(f"Configured: {known}.")

    async def do_mode(self, arguments: str) -> None:
        agent = self._front.agent
        if arguments and arguments not in (PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS, PermissionMode.PLAN):
            self._front.say(f'There is no mode "{one_line(arguments, 60)}" to change to: default, acceptEdits or plan.')
            return
        if arguments:
            agent.permission_mode = PermissionMode(arguments)
        self._front.say(f"The mode is {agent.permission_mode}. Change it with /mode NAME.")

    async def do_status(self, _arguments: str) -> None:
        agent = self._front.agent
        branch = git_branch(agent.cwd)
        context = agent.context
        of = f" of {context.window:,}" if context.window else ""
        facts = {
            "Model": agent.model_name or "the server’s default",
            "Mode": agent.permission_mode,
            "Hooks": _hooks(agent),
            "Window": f"{context.used:,}{of} tokens" if context.used is not None else "",
            "Cost": shown(agent.cost_usd) if agent.cost_usd is not None else "",
            "Directory": f"{agent.cwd}, branch {branch}" if branch else agent.cwd,
            "Session": agent.session_id,
        }
        self._front.say("\n".join(f"{name}: {value}" for name, value in facts.items() if value))

    async def do_permissions(self, _arguments: str) -> None:
        agent = self._front.agent
        rules = agent.rules
        lines = [f"Mode: {agent.permission_mode}"]
        for name, listed in (("Deny", rules.deny), ("Ask", rules.ask), ("Allow", rules.allow)):
            lines.append(f"{name}: {_rules(listed)}")
        self._front.say("\n".join(lines))

    async def do_hooks(self, arguments: str) -> None:
        agent = self._front.agent
        if arguments == "trace":
            runs = [f"{run.event} {one_line(run.name, 60)}: {_came_of(run)}" for run in agent.hook_runs]
            self._front.say("\n".join(runs) or "No hook has run yet.")
            return
        if arguments:
            self._front.say("Use /hooks to list hooks, /hooks trace to list their runs.")
            return
        lines = [
            f"{hook.event} {one_line(hook.matcher.explain(), 60)}: {one_line(hook.shown_command, 160)} ({_facts(hook)})"
            for hook in agent.settings.hooks.hooks
        ]
        if agent.hooks_left_out:
            lines.append(f"{agent.hooks_left_out} of the project skipped.")
        self._front.say("\n".join(lines) or "No hooks.")

    async def do_output(self, arguments: str) -> None:
        """Everything of one call: the screen shows it on a card."""
        calls, agent = self._front.calls, self._front.agent
        back = int(arguments) if arguments.isascii() and arguments.isdigit() else 0
        block = agent.find_call(calls[-1 - back]) if back < len(calls) else None
        if block is None or (arguments and not arguments.isdigit()):
            self._front.say("There is no such call. /output prints the latest one, /output 1 the one before.")
            return
        given = [f"  {name}: {value}" for name, value in block.parameters.items()]
        self._front.say("\n".join([f"Call: {block.name}", *given, "Output:", block.result or "none yet"]))

    async def do_sessions(self, _arguments: str) -> None:
        found = await latest_sessions(self._front.agent)
        lines = [f"{one.session_id}: {when(one)}, {first_prompt(one)}" for one in found[:LISTED]]
        if len(found) > LISTED:
            lines.append("And more: wave sessions --limit 0 lists all.")
        self._front.say("\n".join(lines) or "No sessions yet.")

    async def do_resume(self, arguments: str) -> None:
        chosen = arguments or await self._choose_session()
        if not chosen:
            return
        agent = self._front.agent
        path = find_session(agent.home, agent.project, chosen)
        await self._front.change_session(path.stem, "startup")

    async def _choose_session(self) -> str | None:
        agent = self._front.agent
        found = [one for one in await latest_sessions(agent) if one.session_id != agent.session_id]
        if not found:
            self._front.say("There is no other session in this project.")
            return None
        choices = [Choice(one.session_id, f"{when(one)}, {first_prompt(one)}") for one in found[:LISTED]]
        return await self._front.ask(Dialog("Which session?", [Part("Latest first.")], choices))

    async def do_cost(self, _arguments: str) -> None:
        self._front.say("\n".join(cost_lines(self._front.agent)))

    async def do_export(self, arguments: str) -> None:
        self._front.say(f"Wrote {await export(self._front.agent, arguments)}.")

    async def do_undo(self, _arguments: str) -> None:
        taken = await self._front.agent.undo()
        for path, why in taken.refused.items():
            self._front.say(f"Warning: {path} was not reverted: {why}.")
        if undone := attachment_of(taken):
            self._front.say(undone.text)
            self._front.go_along(undone)
        elif not taken.refused:
            self._front.say("No changes to files to undo.")

    async def do_exit(self, _arguments: str) -> None:
        self._front.leave()


async def guarded(work: Awaitable[None], say: Callable[[str], None]) -> None:
    """A failure is reported; the session stays open."""
    try:
        await work
    except WaveError as error:
        say(f"Error: {error}")
    except Exception as error:  # a bug of ours must not end the conversation
        say(f"Internal error: {type(error).__name__}: {error}")


def _came_of(run: HookRun) -> str:
    return ", ".join(filter(None, (run.outcome, one_line(run.reason, 160))))


def _facts(hook: HookDefinition) -> str:
    place = hook.source if hook.line is None else f"{hook.source}:{hook.line}"
    return ", ".join(filter(None, (place, hook.mode.value, "" if hook.enabled else "off")))


def _hooks(agent: Agent) -> str:
    if agent.no_hooks:
        return "off (--no-hooks)"
    return f"{agent.hooks_left_out} of the project skipped" if agent.hooks_left_out else ""


def _rules(rules: tuple[Rule, ...]) -> str:
    return ", ".join(rule.text for rule in rules) or "none"
