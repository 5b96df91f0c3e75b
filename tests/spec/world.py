"""A project with real hook scripts, and what an agent left behind in it."""

import asyncio
import json
import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wave_agent import Agent, Message, NoticeBlock, Result, TextBlock, ToolBlock
from wave_agent.events import Event, HookFinished
from wave_agent.messages import Block, ErrorBlock
from wave_agent.models.base import ModelRequest, ToolCall
from wave_agent.models.scripted import Script
from wave_agent.testing import Reply, ScriptedModel, call

EVENTS = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
PROMPT = "Please make the file."
DONE = "It is made."
MADE = "made.txt"
REASON = "Not like this."
BLOCK = f"echo '{REASON}' >&2; exit 2"
ONCE = "[ -e asked ] && exit 0; touch asked; "
"""Before the rest of a script: it runs the first time only."""
UNDISTURBED = ["user", "assistant", "tool"]
"""The roles in the second request of a turn with one call when no hook has anything to say to the model."""
NO_TRACE = [("user", "text"), ("assistant", "tool"), ("assistant", "text")]
"""The messages of such a turn when no hook has anything to say to anyone."""

# Every hook keeps a log of its own: the object on its stdin, one line a run.
_SCRIPT = """#!/bin/bash
payload=$(cat)
printf '%s\\n' "$payload" >> {log}
{body}
"""


NEWS = "This has changed since you were last told:"


class World:
    """The project, the agent's own directory, and every agent that a test has made."""

    def __init__(self, project: Path, home: Path) -> None:
        self.project = project
        self.home = home
        self.events: list[Event] = []
        self._ended: dict[str, asyncio.Event] = {}
        self.agents: list[Agent] = []
        self.model = ScriptedModel([])

    # ----------------------------------------------------------------------------------------------------------- before

    def hook(self, name: str, body: str, **fields: Any) -> dict[str, Any]:
        """A hook of the settings that runs a script of its own; `payload` is what the script got on stdin."""
        file = self.project / f"{name}.sh"
        file.write_text(_SCRIPT.format(log=f"{name}.log", body=body))
        file.chmod(0o755)
        return {"type": "command", "command": f"./{name}.sh", "name": name, **fields}

    def says(self, name: str, output: Mapping[str, Any], then: str = "exit 0", **fields: Any) -> dict[str, Any]:
        """A hook that prints this object."""
        return self.hook(name, printing(output, then), **fields)

    def at_every_event(self, body: str) -> None:
        """The settings with this script at each event; the hooks have the names of their events."""
        self.settings({event: [self.hook(event, body)] for event in EVENTS})

    def settings(self, hooks: Mapping[str, Sequence[Mapping[str, Any]]], **others: Any) -> None:
        """The project's settings file. `hooks` has the hooks of each event; those for tools match all tools."""
        groups = {event: [{"hooks": [hook]} for hook in listed] for event, listed in hooks.items()}
        file = self.project / ".wave" / "settings.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"hooks": groups, **others}))

    def hear(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, HookFinished):
            self._ended.setdefault(event.run.name, asyncio.Event()).set()

    async def agent(self, replies: Iterable[Script] = (), **options: Any) -> Agent:
        """An agent in the project whose model says this. Asks for no permission unless the test says otherwise."""
        self.model = ScriptedModel(replies)
        chosen: dict[str, Any] = {"permission_mode": "bypassPermissions", "trust": True, **options}
        callbacks = {"on_event": self.hear, **chosen.pop("callbacks", {})}
        agent = await Agent.create(workdir=self.project, model_client=self.model, callbacks=callbacks, **chosen)
        self.agents.append(agent)
        return agent

    async def run(self, replies: Iterable[Script], prompt: str = PROMPT, **options: Any) -> tuple[Agent, Result]:
        """One prompt from its beginning to its end."""
        agent = await self.agent(replies, **options)
        return agent, await agent.send_message(prompt)

    # ------------------------------------------------------------------------------------------------------------ after

    def log(self, name: str) -> list[dict[str, Any]]:
        """What the hook of this name was given, run by run."""
        file = self.project / f"{name}.log"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    async def finished(self, name: str) -> None:
        """Waits until the hook of this name has had a run to its end, also one that nobody waits for."""
        await self._ended.setdefault(name, asyncio.Event()).wait()

    def request(self, number: int) -> list[Mapping[str, Any]]:
        """The conversation that the model got with this request; the system message is left out, and what a resumed
        session says of changed surroundings."""
        messages = self.model.requests[number].messages
        return [one for one in messages if one["role"] != "system" and NEWS not in str(one["content"])]

    @property
    def requests(self) -> int:
        return len(self.model.requests)

    def model_saw(self, text: str) -> bool:
        """Whether the text was in any request at all, whatever message it stood in."""
        return any(text in everything(request) for request in self.model.requests)

    def exists(self, name: str = MADE) -> bool:
        return (self.project / name).exists()

    def files_with(self, text: str) -> list[str]:
        """The files in the agent's own directory that hold this text; every byte is looked at."""
        wanted = [text.encode(), json.dumps(text)[1:-1].encode()]
        found = [file for file in self.home.rglob("*") if file.is_file()]
        return [file.name for file in found if any(one in file.read_bytes() for one in wanted)]


def printing(output: Mapping[str, Any] | str, then: str = "exit 0") -> str:
    """A script that prints this object, or this text as it is."""
    printed = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    return f"cat <<'END'\n{printed}\nEND\n{then}"


def specific(event: str, **fields: object) -> dict[str, object]:
    """The output of a hook with these fields for this event."""
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def everything(request: ModelRequest) -> str:
    """A request as one text, with what JSON escapes written out as well."""
    plain = [json.dumps(message, ensure_ascii=False) for message in request.messages]
    return "\n".join([*plain, *(str(message.get("content")) for message in request.messages)])


def make(name: str = MADE) -> ToolCall:
    """A call whose side effect is a file."""
    return call("Bash", command=f"touch {name}")


def work(*calls: ToolCall, answer: str = DONE) -> list[Script]:
    """A model that calls tools once, and then answers."""
    return [Reply(tool_calls=list(calls) or [make()]), answer]


def blocks(agent: Agent, *kinds: type) -> list[Any]:
    """The blocks of these kinds, in the order of the conversation."""
    found: list[Block] = [block for message in agent.messages for block in message.blocks]
    return [block for block in found if isinstance(block, kinds)]


def errors(agent: Agent) -> list[str]:
    return [block.content for block in blocks(agent, ErrorBlock)]


def notices(agent: Agent) -> list[str]:
    return [block.content for block in blocks(agent, NoticeBlock)]


def begin_with(texts: Sequence[str], beginnings: Sequence[str]) -> bool:
    """Whether there are exactly as many texts as beginnings, and each begins with its own."""
    pairs = zip(texts, beginnings, strict=False)
    return len(texts) == len(beginnings) and all(text.startswith(beginning) for text, beginning in pairs)


def tools(agent: Agent) -> list[ToolBlock]:
    return blocks(agent, ToolBlock)


def users(agent: Agent) -> list[Message]:
    """The messages in the user's role, without what a resumed session says of changed surroundings."""
    return [message for message in agent.messages if message.role == "user" and NEWS not in message.text]


def shape(agent: Agent) -> list[tuple[str, ...]]:
    """The conversation in short: the role of each message and the types of its blocks."""
    names = {TextBlock: "text", ToolBlock: "tool", ErrorBlock: "error", NoticeBlock: "notice"}
    return [(message.role, *(names[type(block)] for block in message.blocks)) for message in agent.messages]


def transcript(agent: Agent) -> list[dict[str, Any]]:
    """The saved transcript."""
    return [json.loads(line) for line in Path(agent.transcript_path).read_text().splitlines()]


def records(agent: Agent, subtype: str) -> list[dict[str, Any]]:
    """The lines of the transcript that are the agent's own, of this kind."""
    return [line for line in transcript(agent) if line.get("subtype") == subtype]


def said_in(lines: Iterable[Mapping[str, Any]], kind: str) -> list[Any]:
    """The contents of the conversation's lines of this kind."""
    return [line["message"]["content"] for line in lines if line["type"] == kind]


def results_in(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The results of tool calls in a transcript."""
    contents = [content for content in said_in(lines, "user") if isinstance(content, list)]
    return [part for content in contents for part in content if part["type"] == "tool_result"]


def wrapped(event: str, hook: str, text: str, call: str = "") -> str:
    """A hook's text as the model gets it. `call`: which one it is about, if its answer had several."""
    about = f' call="{call}"' if call else ""
    return f'<hook event="{event}" name="{hook}"{about}>\n{text}\n</hook>'


def refused(hook: str, text: str) -> str:
    """The result of a call that this hook has denied, as the model gets it."""
    return f"Not run: {wrapped('PreToolUse', hook, text)}"


def roles(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    return [message["role"] for message in messages]


def is_gone(process: int) -> bool:
    """A process that has ended counts as gone also while nobody has collected it."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        pass
    try:
        os.kill(process, signal.SIG_DFL)
    except ProcessLookupError:
        return True
    return False
