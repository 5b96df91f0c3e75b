"""Puts one agent into one situation and notes what happened: the original on a Messages server, ours on its own.

Both get a directory of their own, `$ARENA`:

    project/   the agent works here; `.claude/settings.json` has the hooks, `.claude/hooks` the scripts
    home/      HOME, and the agent's own state
    tmp/       TMPDIR
    log/       one directory for each run of a hook: stdin, its environment, its directory

Nothing leaves the machine: the model is on loopback, and every other address leads to a proxy that is not there.
"""

import json
import os
import re
import signal
import subprocess
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any

import msgspec

from tests.claude.messages_server import serving_messages
from tests.claude.situations import Call, Hook, Situation
from wave_agent.models.base import ToolCall
from wave_agent.testing.model_server import RecordedRequest, RecordingModelServer, Reply

WAVE = str(Path(sysconfig.get_path("scripts")) / "wave")
PATIENCE = 60.0
"""Seconds that an agent has for one situation."""
NOWHERE = "http://127.0.0.1:9"
"""Nothing listens on the discard port: what would leave the machine fails at once."""
OWN = (".claude", ".git")
"""What is not among a project's files."""
KEPT = ("PATH", "LANG", "LC_ALL", "USER", "LOGNAME")

PRELUDE = """#!/bin/bash
NOTE=$(mktemp -d "$ARENA/log/{name}.XXXXXX")
export STDIN="$NOTE/stdin" RUN=$(ls -d "$ARENA/log/{name}".* | wc -l)
env -0 > "$NOTE/env"
pwd > "$NOTE/cwd"
cat > "$STDIN"
"""


class HookRun(msgspec.Struct):
    """What one run of a hook was given."""

    stdin: dict[str, Any]
    environment: dict[str, str] = {}
    directory: str = ""


class Seen(msgspec.Struct):
    """What happened in one situation, in words that fit both agents."""

    requests: list[str]
    """For each request, all that the model was given in it but its own answers."""
    results: list[str]
    """The results of tools, from the last request."""
    files: dict[str, str]
    """The project's files afterwards, without `.claude` and `.git`."""
    runs: dict[str, list[HookRun]]
    """The runs of each hook, first to last."""
    exit_code: int | None
    """None where the agent did not end in time."""
    stdout: str
    stderr: str


Agent = Callable[[Situation, Path], Seen]


def original(program: Path) -> Agent:
    """The original agent, with the project trusted; `program` is its binary."""

    def run(situation: Situation, arena: Path) -> Seen:
        done = [{"type": "text", "text": "Done."}]
        replies = [[_tool_use(*named) for named in turn] or done for turn in _calls(situation, arena)]
        with ExitStack() as stack:
            server = stack.enter_context(serving_messages([*replies, done], situation.aside))
            _prepare(situation, arena, stack)
            trust = {"projects": {str(arena / "project"): {"hasTrustDialogAccepted": True}}}
            (arena / "home" / ".claude.json").write_text(json.dumps(trust))
            environment = {
                **_environment(arena),
                "ANTHROPIC_BASE_URL": server.base_url,
                "ANTHROPIC_API_KEY": "key",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_TMPDIR": str(arena / "tmp"),
                "DISABLE_AUTOUPDATER": "1",
                "DISABLE_ERROR_REPORTING": "1",
                "DISABLE_TELEMETRY": "1",
                "IS_SANDBOX": "1",  # elsewhere it refuses bypassPermissions to root
            }
            ended = _run([str(program), *_arguments(situation)], arena / "project" / situation.start, environment)
            requests = server.requests
        heard = ["\n".join([_text(request.get("system")), *_heard(request)]) for request in requests]
        contents = [message["content"] for message in _last(requests) if isinstance(message["content"], list)]
        results = [_text(block["content"]) for block in chain(*contents) if block["type"] == "tool_result"]
        return _seen(arena, heard, results, ended)

    return run


def ours(situation: Situation, arena: Path) -> Seen:
    """This agent, with `compat.claude` on and the project trusted."""
    replies = [Reply(tool_calls=[_tool_call(*named) for named in turn]) for turn in _calls(situation, arena)]
    with ExitStack() as stack:
        script = chain((reply if reply.tool_calls else "Done." for reply in replies), repeat("Done."))

        def answer(request: RecordedRequest) -> Reply | str:
            return situation.aside if _is_question(request.body) else next(script)

        server = stack.enter_context(RecordingModelServer.in_thread(repeat(answer)))
        _prepare(situation, arena, stack)
        state = arena / "home" / ".wave"
        state.mkdir()
        (state / "settings.json").write_text('{"compat": {"claude": true}}')
        endpoint = {"WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "scripted", "WAVE_API_KEY": "key"}
        environment = {**_environment(arena), **endpoint, "WAVE_HOME": str(state)}
        ended = _run([WAVE, *_arguments(situation), "--trust"], arena / "project" / situation.start, environment)
        requests = [request.body for request in server.requests if not _is_question(request.body)]
    heard = ["\n".join(_heard(request)) for request in requests]
    results = [_text(message["content"]) for message in _last(requests) if message["role"] == "tool"]
    return _seen(arena, heard, results, ended)


def _is_question(body: Mapping[str, Any]) -> bool:
    """Whether this is a request of a hook, which can be answered by a verdict."""
    return any(tool["function"]["name"] == "verdict" for tool in body.get("tools", ()))


def _arguments(situation: Situation) -> list[str]:
    return ["-p", situation.prompt, "--permission-mode", situation.mode]


def _calls(situation: Situation, arena: Path) -> list[list[tuple[str, Call]]]:
    """The model's calls, each with an id; `$PROJECT` is filled in."""
    ids = (f"toolu_{number}" for number in count(1))
    return [[(next(ids), Call(call.tool, _filled(call.input, arena))) for call in turn] for turn in situation.turns]


def _filled(value: dict[str, Any], arena: Path) -> dict[str, Any]:
    """`$PROJECT` is the project's directory, `@400000` so many letters."""
    project = str(arena / "project")

    def filled(part: Any) -> Any:
        if not isinstance(part, str):
            return part
        return "x" * int(part[1:]) if re.fullmatch(r"@\d+", part) else part.replace("$PROJECT", project)

    return {key: filled(part) for key, part in value.items()}


def _tool_call(name: str, call: Call) -> ToolCall:
    return ToolCall(name, call.tool, json.dumps(call.input))


def _tool_use(name: str, call: Call) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": call.tool, "input": call.input}


# The arena


def _prepare(situation: Situation, arena: Path, stack: ExitStack) -> None:
    for name in ("project/.claude/hooks", "home", "tmp", "log"):
        (arena / name).mkdir(parents=True)
    project = arena / "project"
    for name, text in situation.files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    if situation.start != ".":
        (project / situation.start).mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "--quiet"], cwd=project, env=_environment(arena), check=True)
    numbers = count()
    hooks = _hooks(situation.hooks, numbers, arena, stack) if situation.raw_hooks is None else situation.raw_hooks
    (project / ".claude" / "settings.json").write_text(json.dumps({**situation.settings, "hooks": hooks}, indent=1))
    if situation.user_hooks:
        (arena / "home" / ".claude").mkdir()
        users = {"hooks": _hooks(situation.user_hooks, numbers, arena, stack)}
        (arena / "home" / ".claude" / "settings.json").write_text(json.dumps(users, indent=1))


def _hooks(hooks: Sequence[Hook], numbers: Iterator[int], arena: Path, stack: ExitStack) -> dict[str, Any]:
    """The value of `hooks` in a settings file."""
    events: dict[str, Any] = {}
    for hook in hooks:
        group = {"matcher": hook.matcher} if hook.matcher is not None else {}
        entry = stack.enter_context(_entry(hook, next(numbers), arena))
        events.setdefault(hook.event, []).append({**group, "hooks": [entry]})
    return events


@contextmanager
def _entry(hook: Hook, number: int, arena: Path) -> Iterator[dict[str, Any]]:
    """The hook's entry in the settings. Its server, if it needs one, runs until the end."""
    if hook.http is not None:
        with _hook_server(hook, arena) as url:
            yield {"type": "http", "url": url, **hook.more}
    elif hook.script is None:
        yield dict(hook.more)
    else:
        script = f".claude/hooks/{number}.sh"
        (arena / "project" / script).write_text(PRELUDE.format(name=hook.name) + hook.script + "\n")
        (arena / "project" / script).chmod(0o755)
        yield {"type": "command", "command": f'"$CLAUDE_PROJECT_DIR"/{script}', **hook.more}


@contextmanager
def _hook_server(hook: Hook, arena: Path) -> Iterator[str]:
    """A server for an `http` hook, and its URL. Each request is noted like a run of a script."""
    answer = (hook.http or "").encode()
    numbers = count(1)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            note = arena / "log" / f"{hook.name}.http{next(numbers)}"
            note.mkdir()
            (note / "stdin").write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Requests are noted in the arena."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/hook"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _environment(arena: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), NOWHERE)
    own = {"HOME": str(arena / "home"), "TMPDIR": str(arena / "tmp"), "ARENA": str(arena), "NO_PROXY": "127.0.0.1"}
    return {**kept, **proxies, **own, "no_proxy": "127.0.0.1"}


def _run(command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> tuple[int | None, str, str]:
    """Exit code, stdout and stderr. An agent that does not end in time is ended, with all that is in its group."""
    process = subprocess.Popen(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        return None, out, err
    return process.returncode, out, err


# What happened


def _seen(arena: Path, requests: list[str], results: list[str], ended: tuple[int | None, str, str]) -> Seen:
    project = arena / "project"
    names = [path.relative_to(project) for path in sorted(project.rglob("*")) if path.is_file()]
    files = {str(name): (project / name).read_text(errors="replace") for name in names if name.parts[0] not in OWN}
    runs: dict[str, list[HookRun]] = {}
    notes = sorted((arena / "log").iterdir(), key=lambda note: (note.stat().st_ctime_ns, note.name))
    for note in notes:
        runs.setdefault(note.name.partition(".")[0], []).append(_hook_run(note))
    return Seen(requests, results, files, runs, *ended)


def _hook_run(note: Path) -> HookRun:
    def text(name: str) -> str:
        return (note / name).read_text(errors="replace") if (note / name).exists() else ""

    stdin: Any = None
    with suppress(ValueError):
        stdin = json.loads(text("stdin"))
    pairs = (line.partition("=") for line in text("env").split("\0") if line)
    variables = {name: value for name, _, value in pairs}
    return HookRun(stdin if isinstance(stdin, dict) else {}, variables, text("cwd").strip())


def _last(requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return requests[-1]["messages"] if requests else []


def _heard(request: dict[str, Any]) -> list[str]:
    return [_text(message["content"]) for message in request["messages"] if message["role"] != "assistant"]


def _text(content: Any) -> str:
    """The text of a message's content, in either format."""
    if isinstance(content, list):
        return "\n".join(_text(part) for part in content)
    if isinstance(content, dict):
        return _text(content.get("text") or content.get("content"))
    return content or ""
