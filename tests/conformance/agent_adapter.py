"""The same cases through a whole agent: the model's requests, the conversation and the tool tell what happened.

Only what an agent lets one see from outside is compared; a case that sets up a state in the middle of a prompt is left
out (`drivable`), since a real agent gets there by itself.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from tests.conformance.wave_adapter import KINDS, load, runner_for, why_invalid
from wave_agent.agent.agent import Agent
from wave_agent.agent.foundation import Foundation
from wave_agent.agent.new_ground import lay_ground
from wave_agent.agent.options import Options
from wave_agent.agent.result import Callbacks, Result
from wave_agent.agent.wiring import make_parts
from wave_agent.errors import ModelError, SettingsError
from wave_agent.events import Error, Event, Notice
from wave_agent.formats.strict_json import Document
from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.hooks.dialects import Dialect
from wave_agent.hooks.events import EVENTS, ContextPlace, Decision, Flow, HookEvent
from wave_agent.hooks.matcher import Alternative, Matcher, MatcherForm
from wave_agent.mcp.values import Elicit, Elicitation, ElicitationAnswer, McpResult, ToolDefinition
from wave_agent.messages import ErrorBlock, NoticeBlock
from wave_agent.models.base import ModelRequest, ToolCall
from wave_agent.models.scripted import Reply, ScriptedModel, call
from wave_agent.permissions.decision import Allow, Deny, PermissionMode, PermissionRequest, Rules, ToolKind
from wave_agent.rules.rule import parse_rule
from wave_agent.settings.extensions import ExtensionFile, Extensions
from wave_agent.settings.layers import Settings
from wave_agent.settings.places import ExtensionKind
from wave_agent.settings.snapshot import Snapshot
from wave_agent.settings.sources import Gathered
from wave_agent.system.project import Project
from wave_agent.testing import FakeMcpHost
from wave_agent.tools.base import Tool, ToolContext, ToolInputError, ToolResult

HOOK_TEXT = re.compile(r'<hook event="[^"]*" name="[^"]*">\n(.*?)\n</hook>', re.DOTALL)
BY_MODE = "needs your consent"


class Anything(Struct):
    """The recording tool takes every input."""


class RecordingTool(Tool):
    """Stands for the tool of a case: remembers what it was run with, answers what the case says."""

    description: ClassVar[str] = "records"
    Input: ClassVar[type[Struct]] = Anything

    def __init__(self, response: Mapping[str, Any], nullable: list[str], required: list[str]) -> None:
        self.response = response
        self.required = required
        self.nulls = frozenset(nullable)
        self.error: str | None = None
        self.inputs: list[Mapping[str, Any]] = []

    def parse(self, tool_input: Mapping[str, Any]) -> Any:
        if problem := why_invalid(tool_input, self.required):
            raise ToolInputError(problem)
        return tool_input

    def nullable(self) -> frozenset[str]:
        return self.nulls

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        if self.error is not None:
            raise ToolInputError(self.error)
        self.inputs.append(arguments)
        own = {key: value for key, value in self.response.items() if key not in ("success", "content")}
        return ToolResult(
            content=self.response.get("content", ""), success=self.response.get("success", True), response=own
        )


class AskingServer(FakeMcpHost):
    """Stands for the server of a case: its tool asks the user what the case says, and remembers the answer."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        super().__init__()
        self.add(payload["mcp_server_name"], ToolDefinition(name="ask"), lambda _: "")
        self.given = ElicitationAnswer(action=payload.get("action", "decline"), content=payload.get("content", {}))
        self.question = Elicitation(
            server=payload["mcp_server_name"],
            message=payload["message"],
            mode=payload["mode"],
            url=payload.get("url", ""),
            schema=payload["requested_schema"] or {},
        )
        self.asked = False
        self.answer: dict[str, Any] | None = None

    async def user(self, _: Elicitation) -> ElicitationAnswer:
        self.asked = True
        return self.given

    async def call(self, *_: Any, elicit: Elicit | None = None, **__: Any) -> McpResult:
        assert elicit is not None
        self.answer = to_builtins(await elicit(self.question))
        return McpResult()


def _todo(status: str) -> Callable[[Mapping[str, Any], str], list[ToolCall]]:
    def write(payload: Mapping[str, Any], _: str) -> list[ToolCall]:
        return [call("TodoWrite", todos=[{"content": payload["task_subject"], "status": status}])]

    return write


def _write(payload: Mapping[str, Any], project: str) -> list[ToolCall]:
    name = Path(payload["file_path"]).name
    return [call("Write", file_path=str(Path(project) / name), content="new")]


ACTS: dict[str, Callable[[Mapping[str, Any], str], list[ToolCall]]] = {
    "PostToolBatch": lambda _, __: [call("Glob", pattern="*")],
    "TaskCreated": _todo("pending"),
    "TaskCompleted": _todo("completed"),
    "FileChanged": _write,
    "CwdChanged": lambda _, project: [call("Bash", command=f"mkdir -p {project}/src; cd {project}/src")],
}
"""What the model does so that an event happens."""


TASK = "the task of the subagent"
OF_SUBAGENTS = ("SubagentStart", "SubagentStop")


def drivable(case: Mapping[str, Any], *, inside: bool = False) -> bool:
    """An agent, or a subagent `inside` one, can be brought into the state that this case describes."""
    payload = case.get("payload", {})
    row = EVENTS[HookEvent(case["event"])]
    if inside != (row.event in OF_SUBAGENTS) and not (inside and row.in_subagent == "same"):
        return False
    if (inside and payload.get("tool_name") in ("Task", "Agent")) or "agent_id" in payload:
        return False
    if inside and case["expect"].get("flow") == "defer":  # which is an ask there: tests/agent/test_subagents.py
        return False
    stops = row.block_counter is not None
    set_up = (stops and payload) or payload.get("source", "startup") != "startup"
    whole = [layer["raw"] for layer in case["layers"].values() if isinstance(layer, dict) and "raw" in layer]
    others = any(set(raw.get("hooks") or {}) & set(EVENTS) - {case["event"]} for raw in whole)
    unreachable = case["event"] in ("PreCompact", "PostCompact") or case.get("options", {}).get("stop_failure_spent")
    return not (set_up or others or unreachable)


def sparing_task(settings: Settings) -> Settings:
    """The hooks of a case are about what happens in the subagent, not about the call that starts it."""

    def sparing(hook: HookDefinition) -> HookDefinition:
        before = hook.matcher

        def test(target: str) -> bool:
            return target not in ("Task", "Agent") and before.matches(target)

        return replace(hook, matcher=Matcher(before.text, (Alternative(before.text, MatcherForm.NAME, test),)))

    hooks = tuple(map(sparing, settings.hooks.hooks))
    return replace(settings, hooks=replace(settings.hooks, hooks=hooks))


async def observe(request: dict[str, Any], *, inside: bool = False) -> dict[str, Any]:
    """What happens in an agent; `inside`: in a subagent that it starts."""
    options = request.get("options", {})
    try:
        settings = load(request, strict=options.get("strict_hooks", False))
        settings.require_usable()
    except SettingsError as error:
        return {"refused": True, "issues": [str(error)]}
    settings = sparing_task(settings) if inside else settings
    payload, event = request["payload"], request["event"]
    name = "Recorder" if event in ACTS else payload.get("tool_name", "Bash")
    kind = type(name, (RecordingTool,), {"name": name, "kind": KINDS.get(name, ToolKind.ACTS)})
    tool = kind(payload.get("tool_response", {}), options.get("nullable", []), options.get("required", []))
    tool.error = payload.get("error") if event == "PostToolUseFailure" else None
    questions: list[PermissionRequest] = []

    async def approve(question: PermissionRequest) -> Allow | Deny:
        questions.append(question)
        return Allow()

    server = AskingServer(payload) if "mcp_server_name" in payload else None
    asks = event == "Notification"  # a question to the user is what they are notified of
    calls = [call(name, **payload.get("tool_input", {}))] if "tool_name" in payload or asks else []
    calls += ACTS[event](payload, request["project_dir"]) if event in ACTS else []
    calls += [call(f"mcp__{server.question.server}__ask")] if server else []
    fails = [ModelError(payload["error_details"], status=429)] if event == "StopFailure" else []
    task = call("Task", description="a case", prompt=TASK, subagent_type="general-purpose")
    script = [*([Reply(tool_calls=[task])] if inside else []), *([Reply(tool_calls=calls)] if calls else []), *fails]
    model = ScriptedModel([*script, *["done"] * 30])
    heard: list[str] = []
    somebody = None if options.get("unattended") else approve
    async with _agent(request, settings, model, tool, somebody, heard, server) as agent:
        if event == "ConfigChange":
            changing(request).write_text("{}")
        result = await agent.send_message(payload.get("prompt", "hello"), expand="command_name" in payload)
        # A Stop hook that always blocks is run again and again: the first continuation shows what it said.
        asked = [one for one in model.requests if not inside or _is_of_subagent(one)]
        asked = asked[: 2 if EVENTS[HookEvent(event)].block_counter else None]
    texts = _hook_texts(asked[-1], results=not EVENTS[HookEvent(event)].withholds) if asked else []
    runs = sorted(agent.hook_runs, key=lambda run: (run.occasion, run.position))
    waits = [text for run in runs if run.mode == "enforce" for text in run.deferred]
    blocks = [block for message in agent.messages for block in message.blocks]
    reasons = [line for question in questions for line in question.reason.splitlines() if BY_MODE not in line]
    return {
        "refused": False,
        "issues": [str(issue) for issue in settings.issues],
        "flow": _flow(event, result, questions, tool),
        "prompt_erased": not any(message.role == "user" for message in result.messages),
        "model": [*texts, *dict.fromkeys(waits)],
        "user": [block.content for block in blocks if isinstance(block, ErrorBlock | NoticeBlock)] + reasons + heard,
        "input": tool.inputs[0] if tool.inputs else None,
        "answer": server and (None if server.asked and event == "Elicitation" else server.answer),
        "permission": "ask" if questions else "allow" if tool.inputs else "deny",
        "failed_open": sum(run.let_through for run in runs if run.agent_id) if inside else result.hooks_failed_open,
    }


def comparable(case: Mapping[str, Any], observed: Mapping[str, Any]) -> dict[str, Any]:
    """The case with only those expectations that can be seen from outside."""
    expect = dict(case["expect"])
    hidden = {"journal", "output", "output_not"}
    if "permissions" in case.get("options", {}):
        hidden |= {"flow", "user", "user_not", "model"}
    if observed.get("input") is None:
        hidden |= {"input"}
    if case["event"] in ("StopFailure", "ConfigChange"):  # what happened is told as well
        hidden |= {"user_not"}
    if case["event"] in ("Elicitation", "ElicitationResult"):  # the answer shows it
        hidden |= {"flow"}
    if case["event"] == "ElicitationResult" and expect.get("answer", 0) is None:  # the user's
        expect["answer"] = {"action": "accept", "content": {"name": "Ada"}}
    if expect.get("flow") == "stop":  # no request follows that could show it
        hidden |= {"model_has"}
    if EVENTS[HookEvent(case["event"])].block_counter:
        hidden |= {"failed_open", "user_not", "model_not"}
    return {**case, "expect": {key: value for key, value in expect.items() if key not in hidden}}


def _agent(
    request: dict[str, Any],
    settings: Settings,
    model: ScriptedModel,
    tool: Tool,
    approver: Any,
    heard: list[str],
    server: AskingServer | None,
) -> Agent:
    def hear(event: Event) -> None:
        if isinstance(event, Notice) or (isinstance(event, Error) and event.agent_id):
            heard.append(event.content)

    rules = request.get("options", {}).get("permissions", {})
    if request["event"] == "PermissionDenied":
        rules = {"deny": [request["payload"]["tool_name"]]}
    parsed = {key: tuple(map(parse_rule, rules.get(key, []))) for key in ("deny", "ask", "allow")}
    home = Path(request["project_dir"]) / "home"
    project, mode = request["project_dir"], PermissionMode(rules.get("mode", "default"))
    foundation = Foundation(
        options=Options(
            model="scripted",
            model_client=model,
            tools=[tool],
            system_prompt="",
            can_use_tool=approver,
            callbacks=Callbacks(on_event=hear),
            hook_runner=runner_for(request, settings),
            mcp_host=server,
            mcp_servers={server.question.server: {"command": "not-started"}} if server else None,
            elicit=server.user if server else None,
        ),
        place=Project.at(project),
        directories=(os.path.realpath(project),),
        home=home,
        environment=dict(os.environ),
        gathered=Gathered(settings=replace(settings, rules=Rules(**parsed)), extensions=_commands(request["payload"])),
        mode=mode,
        max_turns=12,
        snapshot=Snapshot([changing(request)], {str(changing(request)): request["payload"].get("source", "")}),
    )
    if request["event"] == "InstructionsLoaded":
        (Path(project) / "AGENTS.md").write_text("Be brief.")
        foundation = replace(foundation, options=replace(foundation.options, system_prompt=None))
    ground = lay_ground(foundation)
    return Agent(ground, make_parts(ground))


def _is_of_subagent(request: ModelRequest) -> bool:
    return any(message["role"] == "user" and message["content"] == TASK for message in request.messages)


def _commands(payload: Mapping[str, Any]) -> Extensions | None:
    """The command that the user calls, if the event is about one."""
    if "command_name" not in payload:
        return None
    command = ExtensionFile(
        kind=ExtensionKind.COMMANDS,
        name=payload["command_name"],
        path="/commands/deploy.md",
        layer=Layer.USER,
        dialect=Dialect.WAVE,
        front={},
        body="Deploy it.",
        document=Document({}, {}),
    )
    return Extensions(files=(command,))


def changing(request: dict[str, Any]) -> Path:
    """The settings file that changes while the agent works."""
    return Path(request["project_dir"]) / "changing.json"


def _hook_texts(request: ModelRequest, *, results: bool) -> list[str]:
    """What hooks say to the model in this request; with or without results of calls."""
    messages = [message for message in request.messages if results or message["role"] != "tool"]
    return [text for message in messages for text in HOOK_TEXT.findall(message["content"])]


def _flow(event: str, result: Result, questions: list[PermissionRequest], tool: RecordingTool) -> str:
    if result.deferred_tool_use is not None:
        return "defer"
    if result.status == "stopped":
        return "stop"
    if event == "PermissionRequest":
        return "ask" if questions else "allow" if tool.inputs else "block"
    if event == "PreToolUse":
        if any(BY_MODE not in question.reason for question in questions):
            return "ask"
        return "proceed" if questions else "allow" if tool.inputs else "block"
    enforced = [run for run in result.hooks if run.mode == "enforce" and not run.is_async]
    blocked = any(run.outcome == "block" or (run.outcome == "failure" and not run.let_through) for run in enforced)
    row = EVENTS[HookEvent(event)]
    goes_on = row.context is ContextPlace.KEEP_WORKING and any(run.outcome == "context" for run in enforced)
    blocked = blocked or goes_on
    blocks = row.flow[Decision.BLOCK] is not Flow.PROCEED
    return "block" if blocked and blocks else "proceed"
