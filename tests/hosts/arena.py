"""Puts one host into one situation and notes what happened.

Each run has a directory of its own: `project` (the host works here), `home` (its HOME), `tmp`, `hooks` (their scripts)
and `log` (the stdin of each run of a hook). Nothing leaves the machine: the model is on loopback, and every other
address leads to a proxy that is not there.
"""

import json
import os
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from tests.hosts.adapters import Adapter, NativeHook
from tests.hosts.dialects import REWRITTEN
from tests.hosts.install import InstalledHost
from tests.hosts.model import Answer, Script, ScriptedModel, serving
from tests.hosts.situations import Call, Hook, Situation, answers
from tests.hosts.wires import ToolUse, Turn
from wave_agent.guard.entries import entries
from wave_agent.guard.hosts import HOSTS

WAVE = str(Path(sysconfig.get_path("scripts")) / "wave")
NOWHERE = "http://127.0.0.1:9"
"""Nothing listens on the discard port: what would leave the machine fails at once."""
KEPT = ("PATH", "LANG", "LC_ALL", "USER", "LOGNAME")
HOOKS = "HOOKS"

PRELUDE = """#!/bin/bash
STDIN=$(mktemp "{arena}/log/{number}.XXXXXX")
cat > "$STDIN"
say() {{ cat "{arena}/answers/{event}/$1"; }}
"""


class Seen(msgspec.Struct):
    """What happened in one run."""

    requests: list[str]
    """What the model was told, request by request."""
    waits: list[float]
    """Seconds from each answer of the model to the next request."""
    files: list[str]
    """The project's files afterwards."""
    unchanged: list[str]
    """The watched files that are as they were."""
    hook_runs: dict[str, list[str]]
    """The stdin of each run of a hook, by the hook's number."""
    seconds: float
    exit_code: int | None
    """None if it had to be ended."""
    output: str


class Arena:
    """The directory of one run."""

    def __init__(self, root: Path, adapter: Adapter) -> None:
        self.root = root
        self.adapter = adapter
        for name in ("project", "home/.wave", "tmp", "hooks", "log"):
            (root / name).mkdir(parents=True)
        self.project, self.home = root / "project", root / "home"
        self.hooks_file = self.home / adapter.hooks_file
        self.hooks_file.parent.mkdir(parents=True, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), NOWHERE)
        direct = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
        return {**kept, **proxies, **direct, "HOME": str(self.home), "TMPDIR": str(self.root / "tmp"), "TERM": "dumb"}

    def configure(self, url: str) -> dict[str, str]:
        """Writes what the host needs to start; returns its environment."""
        for name, text in self.adapter.files.items():
            file = self.home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self._filled(text, url))
        own = {name: self._filled(value, url) for name, value in self.adapter.environment.items()}
        return {**self.environment, **own}

    def _filled(self, text: str, url: str) -> str:
        return text.replace("URL", url).replace("PROJECT", str(self.project))

    # ---------------------------------------------------------------------------------------------------------- hooks

    def write_answers(self, dialect: str, tool_input: Mapping[str, Any]) -> None:
        for event, found in answers(dialect, tool_input).items():
            (self.root / "answers" / event).mkdir(parents=True)
            for word, answer in found.items():
                (self.root / "answers" / event / word).write_text(json.dumps(answer))

    def command(self, number: int, hook: Hook) -> str:
        if hook.command:
            return hook.command
        file = self.root / "hooks" / f"{number}.sh"
        prelude = PRELUDE.format(arena=self.root, number=number, event=hook.event)
        file.write_text(f"{prelude}{hook.script}\n")
        return f"bash {file}"

    def install_native(self, hooks: Sequence[Hook]) -> None:
        """The hooks in the host's own settings."""
        shell = self.adapter.call("shell", {"command": REWRITTEN}, frozenset({"exec_command"})).arguments
        # Codex shows its shell as `command`, whatever the tool's own field is.
        self.write_answers(self.adapter.name, {("command" if key == "cmd" else key): shell[key] for key in shell})
        native = [
            NativeHook(
                event=self.adapter.events[hook.event],
                command=self.command(number, hook),
                timeout=hook.timeout,
                blocks_failures=hook.blocks_failures and self.adapter.can_block_failures,
            )
            for number, hook in enumerate(hooks)
        ]
        self.adapter.write_hooks(self.hooks_file, native)

    def install_guard(self, hooks: Sequence[Hook], rules: Mapping[str, Any], *, is_gone: bool = False) -> None:
        """The hooks in the user's own settings of `wave`, and the guard in the host."""
        self.write_answers("wave", {"command": REWRITTEN})
        settings = {**rules, "hooks": self._wave_hooks(hooks)}
        (self.home / ".wave" / "settings.json").write_text(json.dumps(settings))
        command = [WAVE, "guard", "install", self.adapter.name, "--yes"]
        done = subprocess.run(
            command, cwd=self.project, env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"wave guard install {self.adapter.name} failed: {done.stderr}")
        if is_gone:
            text = self.hooks_file.read_text()
            self.hooks_file.write_text(text.replace("/guard/client.py", "/guard/no-such-client.py"))

    def _wave_hooks(self, hooks: Sequence[Hook]) -> dict[str, Any]:
        names = {event: HOSTS[self.adapter.name].events[name].value for event, name in self.adapter.events.items()}
        found: dict[str, Any] = {}
        for number, hook in enumerate(hooks):
            entry: dict[str, Any] = {"type": "command", "command": self.command(number, hook)}
            if hook.timeout is not None:
                entry["timeout"] = hook.timeout
            if hook.blocks_failures:
                entry["onFailure"] = "block"
            found.setdefault(names[hook.event], [{"hooks": []}])[0]["hooks"].append(entry)
        return found

    # ------------------------------------------------------------------------------------------------------------ run

    def script(self, calls: Sequence[Call]) -> Script:
        """A turn for each call."""

        def turn(call: Call) -> Answer:
            def answer(offered: frozenset[str], _: str) -> Turn:
                fields = {key: self._named(value) for key, value in call.fields(self.project).items()}
                return [self.adapter.call(call.kind, fields, offered)]

            return answer

        def typing(step: Callable[[str, str], ToolUse], line: str) -> Answer:
            return lambda _, heard: [step(line, heard)]

        turns: list[Answer] = []
        for call in calls:
            turns += [typing(step, call.typed) for step in self.adapter.typing] if call.typed else [turn(call)]
        return turns

    def _named(self, text: str) -> str:
        return text.replace(HOOKS, str(self.hooks_file))

    def watched(self, names: Sequence[str]) -> dict[str, str]:
        """What is in these files. Of a host's settings only the hooks: some hosts add to the rest themselves."""
        files = {name: self.project / name for name in names if name != HOOKS}
        found = {name: file.read_text() if file.exists() else "" for name, file in files.items()}
        if HOOKS in names:
            found[HOOKS] = repr(entries(self.adapter.name, self.hooks_file.read_text()))
        return found

    def run(self, host: InstalledHost, environment: Mapping[str, str], patience: float) -> tuple[int | None, str]:
        words = [word if word != "PROMPT" else "Do the work." for word in self.adapter.arguments]
        with (self.root / "output").open("wb") as out:
            process = subprocess.Popen(
                ["nice", *host.program, *words],
                cwd=self.project,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status: int | None = process.wait(patience)
            except subprocess.TimeoutExpired:
                status = None
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return status, (self.root / "output").read_text(errors="replace")

    def end_processes(self) -> None:
        """Everything that a run has started and left behind: its HOME tells it apart."""
        mark = f"HOME={self.home}".encode()
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    os.kill(int(entry.name), signal.SIGKILL)

    def hook_runs(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for file in sorted((self.root / "log").iterdir(), key=lambda file: file.stat().st_mtime_ns):
            found.setdefault(file.name.partition(".")[0], []).append(file.read_text(errors="replace"))
        return found


@contextmanager
def arena(adapter: Adapter) -> Iterator[Arena]:
    root = Path(tempfile.mkdtemp(prefix="wave-hosts-")).resolve()
    made = Arena(root, adapter)
    try:
        yield made
    finally:
        made.end_processes()
        shutil.rmtree(root, ignore_errors=True)


def observe(host: InstalledHost, adapter: Adapter, situation: Situation, *, guarded: bool) -> Seen:
    """Runs the situation once. With `wave guard`, rules stand in for the hooks, if it has any."""
    with arena(adapter) as place, serving(adapter.wire, place.script(situation.calls)) as model:
        environment = place.configure(model.url)
        for name, text in situation.files.items():
            (place.project / name).parent.mkdir(parents=True, exist_ok=True)
            (place.project / name).write_text(text)
        if guarded:
            hooks = [] if situation.rules else situation.hooks
            place.install_guard(hooks, situation.rules, is_gone=situation.is_gone)
        else:
            place.install_native(situation.hooks)
        return look(place, host, model, environment, situation)


def look(
    place: Arena, host: InstalledHost, model: ScriptedModel, environment: Mapping[str, str], situation: Situation
) -> Seen:
    """Runs the host in an arena that is ready."""
    before = place.watched(situation.expect.unchanged)
    began = time.monotonic()
    status, output = place.run(host, environment, situation.patience)
    after = place.watched(situation.expect.unchanged)
    return Seen(
        requests=list(model.requests),
        waits=list(model.waits),
        files=sorted(str(file.relative_to(place.project)) for file in place.project.rglob("*") if file.is_file()),
        unchanged=[name for name in before if before[name] == after[name]],
        hook_runs=place.hook_runs(),
        seconds=round(time.monotonic() - began, 2),
        exit_code=status,
        output=output[-2000:],
    )
