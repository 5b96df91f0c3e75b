"""What is particular to each host: its settings, its command line, its tools and its hooks."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.hosts.dialects import AFTER, BEFORE, PROMPT, STOP
from tests.hosts.wires import ANTHROPIC, CHAT, GOOGLE, RESPONSES, ToolUse, Wire


class NativeHook(msgspec.Struct, frozen=True, kw_only=True):
    """A hook to write into a host's own settings."""

    event: str
    """The host's name of the event."""
    command: str
    timeout: float | None = None
    """Seconds."""
    blocks_failures: bool = False


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """One host."""

    name: str
    wire: Wire
    arguments: tuple[str, ...]
    """After the program. `PROMPT` is the prompt."""
    environment: Mapping[str, str]
    """`URL` in a value is the model's."""
    files: Mapping[str, str]
    """Its settings below HOME, as it needs them to start."""
    hooks_file: str
    """Where its hooks are, below HOME."""
    write_hooks: Callable[[Path, Sequence[NativeHook]], None]
    events: Mapping[str, str]
    tools: Mapping[str, Callable[[Mapping[str, str], frozenset[str]], ToolUse]]
    """The kind of a call → the host's call, given the tools on offer."""
    typing: tuple[Callable[[str, str], ToolUse], ...] = ()
    """The calls that start a shell and type a line into it, given the line and what the model was told."""
    can_block_failures: bool = False
    """A hook can say that its failure denies."""

    def call(self, kind: str, fields: Mapping[str, str], offered: frozenset[str]) -> ToolUse:
        return self.tools[kind](fields, offered)


def _simple(name: str, more: Mapping[str, Any] | None = None, **names: str) -> Any:
    """A tool that takes these fields of a call under its own names; `more` is passed along."""

    def use(fields: Mapping[str, str], _: frozenset[str]) -> ToolUse:
        return ToolUse(name, {names.get(key, key): value for key, value in fields.items()} | dict(more or {}))

    return use


# ------------------------------------------------------------------------------------------------------------- hooks


def _json_hooks(factor: float) -> Callable[[Path, Sequence[NativeHook]], None]:
    """`{"hooks": {EVENT: [{"hooks": [{…}]}]}}`, beside what the file holds. `factor` turns seconds into its unit."""

    def write(file: Path, hooks: Sequence[NativeHook]) -> None:
        settings = json.loads(file.read_text()) if file.exists() else {}
        found = settings.setdefault("hooks", {})
        for hook in hooks:
            entry: dict[str, Any] = {"type": "command", "command": hook.command}
            if hook.timeout is not None:
                entry["timeout"] = int(hook.timeout * factor)
            if hook.blocks_failures:
                entry["onFailure"] = "block"
            groups = found.setdefault(hook.event, [])
            if not groups:
                groups.append({"hooks": []})
            groups[0]["hooks"].append(entry)
        file.write_text(json.dumps(settings, indent=2))

    return write


def _kimi_hooks(file: Path, hooks: Sequence[NativeHook]) -> None:
    with file.open("a") as out:
        for hook in hooks:
            out.write(f"\n[[hooks]]\nevent = {json.dumps(hook.event)}\ncommand = {json.dumps(hook.command)}\n")
            if hook.timeout is not None:
                out.write(f"timeout = {int(hook.timeout)}\n")


def _vibe_hooks(file: Path, hooks: Sequence[NativeHook]) -> None:
    with file.open("a") as out:
        for number, hook in enumerate(hooks):
            out.write(f'\n[[hooks]]\nname = "hook-{number}"\ntype = {json.dumps(hook.event)}\n')
            out.write(f"command = {json.dumps(hook.command)}\n")
            if hook.timeout is not None:
                out.write(f"timeout = {hook.timeout}\n")
            if hook.blocks_failures and hook.event.endswith("_tool"):  # elsewhere it is refused
                out.write("strict = true\n")


# ------------------------------------------------------------------------------------------------------------- Codex


def _codex_shell(fields: Mapping[str, str], offered: frozenset[str]) -> ToolUse:
    command = fields["command"]
    if "exec_command" in offered:
        return ToolUse("exec_command", {"cmd": command})
    if "shell_command" in offered:
        return ToolUse("shell_command", {"command": command})
    return ToolUse("shell", {"command": ["bash", "-c", command]})


def _codex_write(fields: Mapping[str, str], offered: frozenset[str]) -> ToolUse:
    lines = "".join(f"+{line}\n" for line in fields["content"].splitlines())
    patch = f"*** Begin Patch\n*** Add File: {fields['file_path']}\n{lines}*** End Patch"
    if "apply_patch" in offered:
        return ToolUse("apply_patch", {}, patch)
    return _codex_shell({"command": f"apply_patch <<'EOF'\n{patch}\nEOF\n"}, offered)


def _codex_shell_that_waits(_: str, __: str) -> ToolUse:
    return ToolUse("exec_command", {"cmd": "bash", "tty": True, "yield_time_ms": 500})


def _codex_type(line: str, heard: str) -> ToolUse:
    numbers = re.findall(r"session ID (\d+)", heard)
    number = int(numbers[-1]) if numbers else 0
    return ToolUse("write_stdin", {"session_id": number, "chars": f"{line}\n", "yield_time_ms": 1500})


def _codex_read(fields: Mapping[str, str], offered: frozenset[str]) -> ToolUse:
    return _codex_shell({"command": f"cat {fields['file_path']}"}, offered)


def _vibe_type(line: str, _: str) -> ToolUse:
    """In two pieces: neither is a command of its own."""
    pieces = [json.dumps(text) for text in (line[:3], f"{line[3:]}\n")]
    write = "; ".join(f"await tools.process.write({{processId: p.processId, text: {text}}})" for text in pieces)
    wait = "await tools.file_system.bash({command: 'sleep 1'})"
    return ToolUse(
        "run_typescript", {"code": f"const p = await tools.process.start({{command: 'bash'}}); {write}; {wait}"}
    )


# ------------------------------------------------------------------------------------------------------------- table

_CLAUDE_EVENTS = {BEFORE: "PreToolUse", AFTER: "PostToolUse", PROMPT: "UserPromptSubmit", STOP: "Stop"}
_OPENAI = {"OPENAI_BASE_URL": "URL/v1", "OPENAI_API_KEY": "key", "OPENAI_MODEL": "scripted"}

_CLAUDE = Adapter(
    name="claude",
    wire=ANTHROPIC,
    arguments=("-p", "PROMPT", "--permission-mode", "bypassPermissions"),
    environment={
        "ANTHROPIC_BASE_URL": "URL",
        "ANTHROPIC_API_KEY": "key",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",  # elsewhere it refuses bypassPermissions to root
    },
    files={".claude.json": '{"projects": {"PROJECT": {"hasTrustDialogAccepted": true}}}'},
    hooks_file=".claude/settings.json",
    write_hooks=_json_hooks(1),
    events=_CLAUDE_EVENTS,
    can_block_failures=True,
    tools={
        "shell": _simple("Bash", {"description": "runs it"}),
        "read": _simple("Read"),
        "write": _simple("Write"),
    },
)

_CODEX = Adapter(
    name="codex",
    wire=RESPONSES,
    arguments=(
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "--dangerously-bypass-hook-trust",
        "PROMPT",
    ),
    environment={"SCRIPTED_KEY": "key"},
    files={
        ".codex/config.toml": """model = "scripted"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "URL/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
[features]
hooks = true
"""
    },
    hooks_file=".codex/hooks.json",
    write_hooks=_json_hooks(1),
    events=_CLAUDE_EVENTS,
    tools={"shell": _codex_shell, "read": _codex_read, "write": _codex_write},
    typing=(_codex_shell_that_waits, _codex_type),
)


def _quiet(auth: str) -> str:
    """Settings of Gemini, and of Qwen, which descends from it: no login, no update, no statistics."""
    settings = {
        "security": {"auth": {"selectedType": auth}, "folderTrust": {"enabled": False}},
        "general": {"disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
    }
    return json.dumps(settings, indent=2)


_GEMINI = Adapter(
    name="gemini",
    wire=GOOGLE,
    arguments=("-p", "PROMPT", "--yolo", "-m", "gemini-2.5-flash"),
    environment={"GOOGLE_GEMINI_BASE_URL": "URL", "GEMINI_API_KEY": "key"},
    files={
        ".gemini/settings.json": _quiet("gemini-api-key"),
    },
    hooks_file=".gemini/settings.json",
    write_hooks=_json_hooks(1000),
    events={BEFORE: "BeforeTool", AFTER: "AfterTool", PROMPT: "BeforeAgent", STOP: "AfterAgent"},
    tools={
        "shell": _simple("run_shell_command", {"description": "runs it"}),
        "read": _simple("read_file"),
        "write": _simple("write_file"),
    },
)

_QWEN = Adapter(
    name="qwen",
    wire=CHAT,
    arguments=("-p", "PROMPT", "--yolo"),
    environment=_OPENAI,
    files={
        ".qwen/settings.json": _quiet("openai"),
    },
    hooks_file=".qwen/settings.json",
    write_hooks=_json_hooks(1000),
    events=_CLAUDE_EVENTS,
    tools={
        "shell": _simple("run_shell_command", {"description": "runs it", "is_background": False}),
        "read": _simple("read_file"),
        "write": _simple("write_file"),
    },
)

_KIMI = Adapter(
    name="kimi",
    wire=CHAT,
    arguments=("--print", "--yolo", "-p", "PROMPT"),
    environment={},
    files={
        ".kimi/config.toml": """default_model = "scripted"
[providers.scripted]
type = "openai_legacy"
base_url = "URL/v1"
api_key = "key"
[models.scripted]
provider = "scripted"
model = "scripted"
max_context_size = 100000
"""
    },
    hooks_file=".kimi/config.toml",
    write_hooks=_kimi_hooks,
    events=_CLAUDE_EVENTS,
    tools={
        "shell": _simple("Shell"),
        "read": _simple("ReadFile", file_path="path"),
        "write": _simple("WriteFile", file_path="path"),
    },
)

_VIBE = Adapter(
    name="vibe",
    wire=CHAT,
    arguments=("-p", "PROMPT", "--trust", "--agent", "auto-approve"),
    environment={"SCRIPTED_KEY": "key", "MISTRAL_API_KEY": "key"},  # without the second it searches for keyrings
    files={
        ".vibe/config.toml": """active_model = "scripted"
enable_telemetry = false
enable_update_checks = false
[[providers]]
name = "scripted"
api_base = "URL/v1"
api_key_env_var = "SCRIPTED_KEY"
api_style = "openai"
backend = "generic"
[[models]]
name = "scripted"
provider = "scripted"
alias = "scripted"
"""
    },
    hooks_file=".vibe/hooks.toml",
    write_hooks=_vibe_hooks,
    events={BEFORE: "pre_tool", AFTER: "post_tool", STOP: "post_agent"},
    typing=(_vibe_type,),
    can_block_failures=True,
    tools={
        "shell": _simple("bash"),
        "read": _simple("read_file", file_path="path"),
        "write": _simple("write_file", file_path="path"),
    },
)

ADAPTERS: Mapping[str, Adapter] = {one.name: one for one in (_CLAUDE, _CODEX, _GEMINI, _QWEN, _KIMI, _VIBE)}
"""The hosts, in the order of the page."""
