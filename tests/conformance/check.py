"""Runs the conformance corpus of the hook protocol against an agent's adapter; README.md describes both."""

import argparse
import base64
import hashlib
import json
import os
import select
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, cast

Case = dict[str, Any]
HERE = Path(__file__).resolve().parent
TOOL: Case = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "call_1"}
QUESTION: Case = {
    "mcp_server_name": "forms",
    "message": "Who are you?",
    "mode": "form",
    "requested_schema": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer"},
            "team": {"type": "string", "enum": ["red", "blue"]},
        },
        "required": ["name"],
    },
}
SUBAGENT = {"agent_id": "a1", "agent_type": "general-purpose"}
TASK: Case = {"task_id": "task-1", "task_subject": "Fix the bug"}
PAYLOADS: dict[str, Case] = {
    "UserPromptSubmit": {"prompt": "hello"},
    "UserPromptExpansion": {
        "expansion_type": "slash_command",
        "command_name": "deploy",
        "command_args": "now",
        "command_source": "user",
        "prompt": "/deploy now",
    },
    "PreToolUse": TOOL,
    "PostToolUse": {**TOOL, "tool_response": {"success": True, "content": "done"}, "changed_files": []},
    "Stop": {
        "stop_hook_active": False,
        "stop_block_count": 0,
        "last_assistant_message": "bye",
        "changed_files": [],
    },
    "SessionStart": {"source": "startup", "model": "scripted"},
    "PermissionRequest": {**TOOL, "permission_suggestions": ["Bash(ls)"]},
    "PostToolUseFailure": {**TOOL, "error": "no such file", "is_interrupt": False},
    "Notification": {"message": "Look.", "title": "Permission needed", "notification_type": "permission_prompt"},
    "StopFailure": {"error": "rate_limit", "error_details": "Too many requests."},
    "SessionEnd": {"reason": "other", "changed_files": []},
    "ConfigChange": {"source": "project_settings", "file_path": "/srv/project/.wave/settings.json"},
    "PreCompact": {"trigger": "auto", "custom_instructions": ""},
    "PostCompact": {"trigger": "auto", "compact_summary": "short"},
    "Elicitation": QUESTION,
    "SubagentStart": {**SUBAGENT, "subagent_type": "general-purpose"},
    "SubagentStop": {
        **SUBAGENT,
        "subagent_type": "general-purpose",
        "agent_transcript_path": "/srv/state/session/subagents/a1.jsonl",
        "stop_hook_active": False,
        "stop_block_count": 0,
        "last_assistant_message": "bye",
        "changed_files": [],
    },
    "ElicitationResult": {**QUESTION, "action": "accept", "content": {"name": "Ada"}},
    "PermissionDenied": {**TOOL, "reason": "Not run: denied by a rule.", "denied_by": "rule"},
    "PostToolBatch": {"tool_calls": [{**TOOL, "success": True, "tool_response": "done"}]},
    "TaskCreated": TASK,
    "TaskCompleted": TASK,
    "InstructionsLoaded": {
        "file_path": "/srv/project/AGENTS.md",
        "memory_type": "Project",
        "load_reason": "session_start",
    },
    "FileChanged": {"file_path": "/srv/project/.env", "event": "add"},
    "CwdChanged": {"old_cwd": "/srv/project", "new_cwd": "/srv/project/src"},
}
REQUIRED = {"name", "shows", "event", "layers", "expect"}
EXACT = ("flow", "prompt_erased", "model", "input", "output", "answer", "permission", "failed_open", "refused")
PRESENT = {"user": "user", "model_has": "model", "issues": "issues"}  # expectation: where its fragments are looked for
ABSENT = {"user_not": "user", "model_not": "model", "output_not": "output"}
KEYS = {  # What each kind of object in the corpus may hold.
    "case": {*REQUIRED, "dialect", "payload", "options", "bug", "file"},
    "layers": {"managed", "user", "project", "local", "flag"},
    "options": {
        "strict_hooks",
        "stop_failure_spent",
        "stop_blocks_in_a_row",
        "permissions",
        "nullable",
        "required",
        "unattended",
        "answers",
    },
    "run": {"exit", "stdout", "json", "stderr", "stdout_base64", "stderr_base64", "pad_stdout", "delay", "signal"}
    | {"hang", "ignore_term", "missing", "if_stdin_contains"},
    "expect": {*EXACT, *PRESENT, *ABSENT, "journal"},
    "journal": {
        "agent_id",
        "agent_type",
        "name",
        "look",
        "outcome",
        "failure",
        "let_through",
        "rewrote",
        "exit_code",
        "mode",
    },
}
WORDS: dict[str, tuple[object, ...]] = {  # The values that a key may have, wherever it stands.
    "event": tuple(PAYLOADS),
    "dialect": ("wave", "claude"),
    "flow": ("proceed", "allow", "ask", "defer", "block", "stop"),
    "permission": ("allow", "ask", "deny"),
    "outcome": ("none", "context", "allow", "ask", "defer", "deny", "block", "stop", "failure"),
    "failure": (None, "timeout", "signal", "spawn", "exit", "json", "mcp", "answer"),
}


def mapping(value: object) -> Case | None:
    return cast(Case, value) if isinstance(value, dict) else None


def sequence(value: object) -> list[Any] | None:
    return cast("list[Any]", value) if isinstance(value, list) else None


def change_hooks(value: object, change: Callable[[Case], object]) -> Any:
    """A copy of `value` in which each object with a `run` is replaced by what `change` makes of it."""
    if (items := sequence(value)) is not None:
        return [change_hooks(item, change) for item in items]
    if (entry := mapping(value)) is None:
        return value
    return change(entry) if "run" in entry else {key: change_hooks(item, change) for key, item in entry.items()}


def validate(case: Case) -> list[str]:
    """What is wrong with the case itself; empty when nothing is."""
    faults = [f"{key!r} is missing" for key in sorted(REQUIRED) if not case.get(key)]
    hooks: list[Case] = []
    change_hooks(case.get("layers"), hooks.append)
    expect = mapping(case.get("expect")) or {}
    parts: list[tuple[str, object]] = [("case", case), *((key, case.get(key)) for key in ("layers", "options"))]
    parts += [("run", run) for hook in hooks for run in sequence(hook["run"]) or [hook["run"]]]
    parts += [("expect", expect), *(("journal", line) for line in expect.get("journal", ()))]
    for kind, part in parts:
        entry = mapping(part) or {}
        faults += [f"unknown key {key!r} in {kind}" for key in entry if key not in KEYS[kind]]
        faults += [f"{key} cannot be {entry[key]!r}" for key in WORDS if key in entry and entry[key] not in WORDS[key]]
    return faults


def load_cases(directory: Path = HERE) -> list[Case]:
    """All cases in file order, each with the name of its `file`. A ValueError tells every fault there is."""
    cases: dict[str, Case] = {}
    faults: list[str] = []
    for path in sorted(directory.glob("[0-9][0-9]-*.json")):
        try:
            content = mapping(json.loads(path.read_text(encoding="utf-8"))) or {}
        except ValueError as error:
            faults.append(f"{path.name}: {error}")
            continue
        for case in [mapping(item) or {} for item in sequence(content.get("cases")) or [None]]:
            name = str(case.get("name"))
            faults += [f"{path.name}: {name}: {fault}" for fault in validate(case)]
            if name in cases:
                faults.append(f"{path.name}: {name}: the name is used in {cases[name]['file']} too")
            cases[name] = {**case, "file": path.name}
    if faults:
        raise ValueError("the corpus is wrong\n" + "\n".join(faults))
    return list(cases.values())


def script_body(run: Case, pids: Path) -> str:
    def printing(data: bytes) -> str:
        return "printf %b '" + "".join(f"\\0{byte:03o}" for byte in data) + "'"

    stdout = run.get("stdout", "").encode() + base64.b64decode(run.get("stdout_base64", ""))
    stdout += json.dumps(run["json"], separators=(",", ":")).encode() if "json" in run else b""
    stderr = run.get("stderr", "").encode() + base64.b64decode(run.get("stderr_base64", ""))
    lines = ["trap '' TERM"] if run.get("ignore_term") else []
    lines += [f"sleep {run['delay']}"] if run.get("delay") else []
    lines += [printing(stdout)] if stdout else []
    lines += [f"printf '%{run['pad_stdout']}s' '' | tr ' ' x"] if "pad_stdout" in run else []
    lines += [printing(stderr) + " >&2"] if stderr else []
    if run.get("hang"):  # The child holds the pipes too: to kill the shell alone is not enough.
        lines += ["sleep 30 &", f'echo "$$ $!" >>{shlex.quote(str(pids))}', "wait $!"]
    lines += [f"kill -{run['signal']} $$"] if "signal" in run else []
    return "\n".join([*lines, f"exit {run.get('exit', 0)}"])


def script(run: object, pids: Path) -> str:
    choices = [cast(Case, choice) for choice in sequence(run) or [run]]
    text = "#!/bin/sh\n" + ("input=$(cat)\n" if any("if_stdin_contains" in choice for choice in choices) else "")
    for choice in choices:
        wanted, body = choice.get("if_stdin_contains"), script_body(choice, pids)
        text += f"{body}\n" if wanted is None else f'case "$input" in *{shlex.quote(wanted)}*)\n{body};;\nesac\n'
    return text


def materialise(case: Case, directory: Path) -> Case:
    """Writes the case's hook scripts below `directory`, the project, and returns the request for the adapter."""
    scripts = directory / "scripts"
    scripts.mkdir(parents=True, exist_ok=True)

    def with_command(entry: Case) -> Case:
        hook = {key: item for key, item in entry.items() if key != "run"}
        if (mapping(entry["run"]) or {}).get("missing"):
            return {**hook, "command": str(scripts / "no-such-program"), "args": []}
        text = script(entry["run"], directory / "pids")
        # Equal runs are the same script, so that equal entries stay equal.
        path = scripts / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.sh"
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return {**hook, "command": str(path)}

    payload = {**PAYLOADS[case["event"]], **case.get("payload", {})}
    request = {"name": case["name"], "event": case["event"], "payload": payload, "options": case.get("options", {})}
    request["dialect"] = case.get("dialect", "wave")
    return {**request, "layers": change_hooks(case["layers"], with_command), "project_dir": str(directory)}


def differences(case: Case, observed: Case) -> list[str]:
    """Where the observation differs from the expectation: key, expected, got."""
    found: list[str] = []

    def check(key: str, expected: object, got: object, fits: bool | None = None) -> None:
        if fits is None:  # JSON's equality: unlike in Python, true is not 1.
            fits = json.dumps(expected, sort_keys=True) == json.dumps(got, sort_keys=True)
        if not fits:
            found.append(f"{key}: expected {json.dumps(expected)}, got {json.dumps(got)}")

    for key, expected in case["expect"].items():
        if key in EXACT:
            check(key, expected, observed.get(key, "(nothing)"))
        elif key == "journal":
            lines = [mapping(line) or {} for line in sequence(observed.get(key)) or []]
            check("journal (all runs)", expected, lines, len(expected) == len(lines))
            for number, (wanted, line) in enumerate(zip(expected, lines, strict=False)):
                for part in wanted:
                    check(f"journal[{number}] {wanted.get('name')}: {part}", wanted[part], line.get(part, "(nothing)"))
        else:
            source, wanted = observed.get(PRESENT.get(key) or ABSENT[key]), key in PRESENT
            texts = [str(text) for text in ([source] if isinstance(source, str) else sequence(source) or [])]
            if key == "output_not":
                check(key, "a text in place of the result", source, bool(texts))
            for part in expected:
                check(f"{key} (fragment)", part, texts, any(part in text for text in texts) == wanted)
    return found


def leftovers(directory: Path, patience: float = 1.0) -> list[str]:
    """Processes that outlived their hanging hook. They must be gone when the verdict is given, or a moment later."""
    log, deadline = directory / "pids", time.monotonic() + patience
    for pid in log.read_text().split() if log.exists() else []:
        with suppress(OSError):  # Where there is no /proc this finds nothing.
            while not Path("/proc", pid, "stat").read_text().rpartition(") ")[2].startswith("Z"):
                if time.monotonic() > deadline:
                    return [f"process {pid} of a hook that timed out is still there"]
                time.sleep(0.02)
    return []


def ask(adapter: Popen[bytes], request: Case, timeout: float) -> Case:
    assert adapter.stdin
    assert adapter.stdout
    line, deadline = b"", time.monotonic() + timeout
    adapter.stdin.write(json.dumps(request).encode() + b"\n")
    while not line.endswith(b"\n"):
        if not select.select([adapter.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise ConnectionError(f"no answer within {timeout:g} s")
        if not (part := os.read(adapter.stdout.fileno(), 65536)):
            raise ConnectionError("it ended without an answer")
        line += part
    if (answer := mapping(json.loads(line))) is None:
        raise ValueError(f"its answer is not an object: {line[:80]!r}")
    return answer


def run_cases(cases: list[Case], adapter: Popen[bytes], timeout: float) -> int:
    counts = {"passed": 0, "failed": 0}
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="conformance-", ignore_cleanup_errors=True) as name:
            directory, broken = Path(name).resolve(), False
            try:
                found = differences(case, ask(adapter, materialise(case, directory), timeout)) + leftovers(directory)
            except (ConnectionError, ValueError) as error:
                found, broken = [f"the adapter failed, the cases after this one are not run: {error}"], True
        counts["failed" if found else "passed"] += 1
        for difference in found:
            print(f"{case['file']}: {case['name']}: {difference}", flush=True)
        if broken:
            adapter.kill()
            break
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the conformance corpus of the hook protocol.")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--agent", metavar="CMD", help="run the cases against the adapter with this command line")
    action.add_argument("--list", action="store_true", help="list the cases and run none")
    parser.add_argument("--only", metavar="SUBSTRING", default="", help="only cases with this in file or name")
    parser.add_argument("--timeout", type=float, default=30, help="seconds to wait for each answer (default 30)")
    options = parser.parse_args()
    try:
        cases = [case for case in load_cases() if options.only in f"{case['file']}: {case['name']}"]
        if options.list:
            print("\n".join(f"{case['file']}: {case['name']}" for case in cases))
            return 0
        with Popen(shlex.split(options.agent), stdin=PIPE, stdout=PIPE, bufsize=0) as adapter:
            return run_cases(cases, adapter, options.timeout)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
