"""What a user's `/name arguments` stands for: a command, a skill, or a prompt of an MCP server.

Hooks are asked before anything is done (UserPromptExpansion), and again about the text that comes out of it. What a
command runs or attaches goes through the same hooks and permissions as a call of the model. Loaded when a prompt
needs it.
"""

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent import first_instructions
from wave_agent.agent.call_results import RequestedCall
from wave_agent.agent.command_text import AttachFile, CommandPiece, RunLine, command_pieces, empty_placeholders
from wave_agent.agent.consequences import Operation, TellModel
from wave_agent.agent.line_arguments import UnsafeArgumentError
from wave_agent.agent.skills import allowed_by, permits_words, skill_text
from wave_agent.agent.tool_calls import CallRunner
from wave_agent.hooks.events import Flow, HookEvent
from wave_agent.hooks.manager import HookManager
from wave_agent.hooks.verdicts import Outcome
from wave_agent.lazy_regex import lazy_regex
from wave_agent.mcp.values import McpError
from wave_agent.messages import BLOCKED, HARNESS, NOT_RUN, STOPPED, MessageManager, TextBlock, ToolBlock
from wave_agent.permissions.decision import INSTEAD
from wave_agent.settings.extensions import ExtensionFile, Extensions
from wave_agent.settings.places import ExtensionKind
from wave_agent.settings.trust import CHANGED
from wave_agent.text import clip, did_you_mean, one_line, reveal

if TYPE_CHECKING:
    from wave_agent.mcp.session import McpSession

_COMMAND = lazy_regex(r"/([A-Za-z0-9][\w:-]*)(?:\s+(.*))?", 0)
_BUILT_IN: Mapping[str, str] = {"init": first_instructions.PROMPT}
_CLOSING = lazy_regex(r"<(?=\s*/\s*(?:output|file)\b)", re.IGNORECASE)
_PLAIN_ONLY = "The command runs a line in which it has to be a plain word: letters, digits and @%+=:,./-_ only."
_OUTPUT = 30_000
"""Characters of one output or file in a prompt."""


class ExpandedPrompt(Struct, frozen=True):
    """What a prompt became."""

    text: str
    judged: Outcome | None = None
    """What hooks had to say about it, for when it is accepted."""
    later: tuple[Operation, ...] = ()
    """What the hooks of its calls leave to do."""


class RefusedPrompt(Struct, frozen=True):
    """Why a prompt is not sent."""

    reason: str
    judged: Outcome | None = None
    """What hooks decided, if they refused it before anything was done."""
    by_hook: bool = False
    ends_turn: bool = False


class _NotSentError(Exception):
    def __init__(self, refused: RefusedPrompt) -> None:
        super().__init__(refused.reason)
        self.refused = refused


class _Typed(Struct, frozen=True):
    """A command as typed."""

    text: str
    name: str
    arguments: str


def user_commands(extensions: Extensions) -> dict[str, ExtensionFile]:
    """What users can call by `/name`. The user's own come before the project's, skills before commands."""
    found: dict[str, ExtensionFile] = {}
    skills = [one for one in extensions.files if one.kind is ExtensionKind.SKILLS]
    commands = [one for one in extensions.files if one.kind is ExtensionKind.COMMANDS]
    ordered = sorted([*skills, *commands], key=lambda one: bool(one.digest))  # the project's last; stable
    for one in ordered:
        if one.flag("user-invocable", default=True):
            found.setdefault(one.name, one)
    return found


def _quoted(tag: str, attribute: str, value: str, block: ToolBlock) -> str:
    """What a call returned, between tags that nothing in it can close: it is not the user speaking."""
    inside = _CLOSING.sub(r"<\\", clip(block.result or "", _OUTPUT))
    name = one_line(value, 200).replace('"', "'").replace("<", "&lt;")
    return f'<{tag} {attribute}="{name}">\n{inside}\n</{tag}>'


def _pieces(body: str, arguments: str) -> tuple[CommandPiece, ...]:
    try:
        return command_pieces(body, arguments)
    except UnsafeArgumentError as error:
        reason = f"Not sent: {reveal(str(error))}. {_PLAIN_ONLY}"
        raise _NotSentError(RefusedPrompt(reason)) from None


class PromptExpander:
    """Expands the prompts of a session."""

    def __init__(
        self,
        *,
        extensions: Extensions | None,
        mcp: "McpSession | None",
        hooks: HookManager,
        calls: CallRunner,
        messages: MessageManager,
        start: str,
    ) -> None:
        """`start` is where relative paths start."""
        self._commands: Mapping[str, ExtensionFile] = user_commands(extensions) if extensions else {}
        self._mcp, self._hooks, self._calls, self._messages = mcp, hooks, calls, messages
        self._start = start
        self._unused = {
            os.path.basename(one.path).removesuffix(".md"): (
                f"{one.path} {_state(one.why)}. Review it with wave hooks trust." if one.untrusted else f"it {one.why}."
            )
            for one in (extensions.unused if extensions else ())
            if one.kind is not ExtensionKind.AGENTS
        }

    async def expand(self, text: str) -> ExpandedPrompt | RefusedPrompt:
        """The prompt for the model. Text that calls nothing stays as it is."""
        try:
            typed = self._typed(text)
            found = ExpandedPrompt(text) if typed is None else await self._expanded(typed)
            mentioned = () if self._mcp is None else await self._mcp.mentioned(text)
        except _NotSentError as error:
            return error.refused
        except McpError as error:
            return RefusedPrompt(str(error))
        return ExpandedPrompt("".join([found.text, *map(str, mentioned)]), found.judged, found.later)

    def _typed(self, text: str) -> _Typed | None:
        """None if it is an ordinary prompt, which may start with a path. Raises `_NotSentError` for a misspelt name."""
        first, _, rest = text.partition("\n")
        shape = _COMMAND.fullmatch(first)
        if shape is None:
            return None
        name, arguments = shape[1], "\n".join(filter(None, ((shape[2] or "").strip(), rest))).strip()
        if name in self._commands or name in _BUILT_IN or name.startswith("mcp__"):
            return _Typed(text, name, arguments)
        if name in self._unused:
            raise _NotSentError(RefusedPrompt(f"/{name} is not used: {self._unused[name]}"))
        if os.path.exists(f"/{name}"):
            return None
        known = [*self._commands, *_BUILT_IN, *(one.command[1:] for one in (self._mcp.prompts() if self._mcp else ()))]
        raise _NotSentError(
            RefusedPrompt(
                f"There is no command /{one_line(name, 80)}{did_you_mean(name, known)}. Commands are files in "
                "WAVE_HOME/commands and .wave/commands; a prompt that only starts like one needs a space before it."
            )
        )

    async def _expanded(self, typed: _Typed) -> ExpandedPrompt:
        if typed.name in _BUILT_IN:  # they win over files of the same name
            judged = await self._ask_hooks(typed, "slash_command", "built-in")
            return await self._filled(_BUILT_IN[typed.name], typed.arguments, judged)
        command = self._commands.get(typed.name)
        if command is None:
            if self._mcp is None:
                raise McpError(f"There is no MCP server for /{one_line(typed.name, 80)} in this session.")
            judged = await self._ask_hooks(typed, "mcp_prompt", "mcp")
            text = await self._mcp.expanded(typed.text)
            return ExpandedPrompt(typed.text if text is None else text, judged)
        self._check_arguments(command, typed.arguments)
        is_skill = command.kind is ExtensionKind.SKILLS
        judged = await self._ask_hooks(typed, "skill" if is_skill else "slash_command", command.layer.value)
        if command.has_changed:
            raise _NotSentError(
                RefusedPrompt(f"The skill {command.name} has changed since this session started; start a new one.")
            )
        rules, problems = allowed_by(command)
        words = permits_words(rules, self._calls.mode)
        told = [TellModel((TextBlock(words, "hook", HARNESS),))] if words else []
        for problem in problems:
            self._messages.add_notice_block(problem)
        self._calls.grant(rules)
        body = skill_text(command) if is_skill else command.body
        found = await self._filled(body, typed.arguments, judged)
        return replace(found, later=(*found.later, *told))

    def _check_arguments(self, command: ExtensionFile, arguments: str) -> None:
        """A command without its argument is not sent: raises `_NotSentError`. Where the argument may be optional, or
        only some are missing, the user is notified."""
        given: object = command.front.get("argument-hint")
        hint = given.strip() if isinstance(given, str) else ""
        empty = ", ".join(empty_placeholders(command.body, arguments))
        # The text of a skill may well have a `$1` in an example; who writes a command means its argument.
        is_needed = not hint.startswith("[") if hint else bool(empty) and command.kind is ExtensionKind.COMMANDS
        if is_needed and not arguments:
            used = f", which its text uses as {empty}" if empty else ""
            what = f"/{command.name} {hint or 'ARGUMENT'}"
            raise _NotSentError(RefusedPrompt(f"Not sent: /{command.name} needs an argument{used}. Write {what}"))
        if empty:
            left = f"/{command.name} {hint}".strip()
            self._messages.add_notice_block(f"{left} was used without a value for {empty}.", "info")

    async def _ask_hooks(self, typed: _Typed, kind: str, source: str) -> Outcome:
        facts = {
            "expansion_type": kind,
            "command_name": typed.name,
            "command_args": typed.arguments,
            "command_source": source,
            "prompt": typed.text,
        }
        mode = self._calls.mode.value
        judged = await self._hooks.run(HookEvent.USER_PROMPT_EXPANSION, facts, permission_mode=mode)
        if judged.prompt_erased or judged.flow is Flow.END_TURN:
            raise _NotSentError(
                RefusedPrompt(judged.reason, judged, by_hook=True, ends_turn=judged.flow is Flow.END_TURN)
            )
        return judged

    async def _filled(self, body: str, arguments: str, judged: Outcome) -> ExpandedPrompt:
        texts: list[str] = []
        attached: list[str] = []
        later: list[Operation] = []
        for piece in _pieces(body, arguments):
            match piece:
                case RunLine(line=line):
                    block = await self._call("Bash", {"command": line}, later)
                    texts.append(_quoted("output", "command", line, block))
                case AttachFile(path=path, written=written):
                    texts.append(written)
                    if file := self._file(path):
                        block = await self._call("Read", {"file_path": file}, later)
                        attached.append(f"\n\n{_quoted('file', 'path', path, block)}")
                case _:
                    texts.append(piece)
        return ExpandedPrompt("".join([*texts, *dict.fromkeys(attached)]).strip(), judged, tuple(later))

    def _file(self, path: str) -> str:
        """The absolute path of a file; empty if there is none. Not every `@word` is one."""
        file = os.path.join(self._start, os.path.expanduser(path))
        return file if "\0" not in path and os.path.isfile(file) else ""

    async def _call(self, name: str, parameters: Mapping[str, str], later: list[Operation]) -> ToolBlock:
        """A call that the command asks for. Raises `_NotSentError` if it does not run."""
        call_id = f"prompt-{uuid4().hex[:12]}"
        self._messages.add_aside(ToolBlock(call_id, name, dict(parameters)))
        asked = RequestedCall(call_id, name, dict(parameters), question=f"May your command run this with {name}?")
        end = await self._calls.run(asked)
        later += end.later
        block = self._messages.aside(call_id)
        assert block is not None, "every call gets a result"
        if end.ends_turn or block.error is not None:
            what = next(iter(parameters.values()))
            why = (block.result or "").removeprefix(NOT_RUN).removesuffix(INSTEAD).strip()
            reason = f"The command was not sent, because {name} ({one_line(what, 100)}) did not run: {why}"
            by_hook = end.ends_turn or block.error in (BLOCKED, STOPPED)
            raise _NotSentError(RefusedPrompt(reason, by_hook=by_hook, ends_turn=end.ends_turn))
        return block


def _state(why: str) -> str:
    """Why it is not trusted, as part of a sentence."""
    return f"{'has' if why.startswith(CHANGED) else 'is'} {why}"
