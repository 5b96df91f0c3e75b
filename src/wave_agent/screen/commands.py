"""The table of slash commands. Each is implemented by the `ScreenCommands` method with its name."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wave_agent.screen.completion import CompletionItem
from wave_agent.settings.extensions import ExtensionFile
from wave_agent.text import did_you_mean, one_line


class SlashCommand(NamedTuple):
    name: str
    argument: str
    meaning: str
    while_working: bool = True
    """False if not available while the agent works."""


COMMANDS = (
    SlashCommand("help", "", "show keys and commands"),
    SlashCommand("clear", "", "start a new session with an empty conversation", while_working=False),
    SlashCommand("compact", "[WHAT MATTERS]", "summarise the conversation so far for the model", while_working=False),
    SlashCommand("model", "[NAME]", "show or change the model, from the next prompt on"),
    SlashCommand("permissions", "", "show the rules and mode in effect"),
    SlashCommand("hooks", "[trace]", "browse, edit and test this session's hooks; `trace`: their runs, in order"),
    SlashCommand("mcp", "[trust]", "browse the MCP servers and their tools; `trust`: review new and changed tools"),
    SlashCommand("skills", "", "browse the skills and commands, and what was left out"),
    SlashCommand("agents", "", "browse the agents that can be given work, and what was left out"),
    SlashCommand("init", "", "look at the project and write a first AGENTS.md", while_working=False),
    SlashCommand("sessions", "", "list this project's sessions"),
    SlashCommand("resume", "[ID]", "resume another session of this project; no ID: search them", while_working=False),
    SlashCommand("doctor", "", "check settings, hooks, sandbox, server and model; problems first"),
    SlashCommand("cost", "", "show tokens and costs: cached, by model, subagents, hooks; what is left of the limit"),
    SlashCommand("copy", "[code [N]]", "copy the last answer; `code`: the last code block, N: the Nth before it"),
    SlashCommand("export", "[FILE]", "write the conversation as Markdown"),
    SlashCommand("theme", "[NAME]", "show or change the colours: dark, light, terminal, terminal-light"),
    SlashCommand("undo", "", "revert what the last turn that changed files did to them", while_working=False),
    SlashCommand("exit", "", "leave"),
)  # fmt: skip
PROMPTS = frozenset({"init"})
"""Those that are prompts which ship with the program."""
BY_NAME = {command.name: command for command in COMMANDS}


class CommandLine(NamedTuple):
    """`/name arguments`, parsed."""

    name: str
    arguments: str


def parse(prompt: str) -> CommandLine | None:
    """None if not a command. `/usr/bin is full` is a prompt, since a command is one plain word."""
    if not prompt.startswith("/") or "\n" in prompt.split(" ", 1)[0]:
        return None
    name, _, arguments = prompt[1:].partition(" ")
    return CommandLine(name, arguments.strip()) if name and "/" not in name else None


def line_to_remember(prompt: str) -> str | None:
    """What `#` adds to the instructions; None if it is no such line: `#42 still fails` is about an issue."""
    if not prompt.startswith("#") or "\n" in prompt or prompt[1:2].isdecimal():
        return None
    return prompt[1:].strip()


def unknown(name: str, custom: Iterable[str]) -> str:
    return f"There is no command /{name}{did_you_mean(name, [*BY_NAME, *custom])}; /help lists them."


def candidates(custom: Sequence[ExtensionFile]) -> list[CompletionItem]:
    """For completion. Built-in commands take precedence over others with the same name."""
    built_in = [CompletionItem(f"/{command.name}", command.meaning) for command in COMMANDS]
    return built_in + [CompletionItem(f"/{one.name}", meaning_of(one)) for one in custom if one.name not in BY_NAME]


def meaning_of(custom: ExtensionFile) -> str:
    """A command or skill on one line, with its arguments."""
    hint: object = custom.front.get("argument-hint")
    return one_line(" ".join(filter(None, (hint if isinstance(hint, str) else "", custom.description))), 80)


def hidden_by_ours(custom: Iterable[ExtensionFile]) -> str:
    """The notice about commands that cannot be called here, if there are any."""
    found = [f"/{one.name} ({one.path})" for one in custom if one.name in BY_NAME]
    return f"Not available here, because the screen has a command of that name: {', '.join(found)}." if found else ""
