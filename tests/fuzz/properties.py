"""What holds for every input whatsoever. Each is defined once and run twice: briefly with the other tests, long by
`make soak`."""

import asyncio
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz import strategies as make
from wave_agent.agent.call_facts import seen_by, subject_of
from wave_agent.errors import SessionError, SettingsError
from wave_agent.events import HookRun
from wave_agent.formats.strict_json import StrictJSONError, parse_document, parse_object
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.events import Decision, HookEvent, OnFailure
from wave_agent.hooks.execution import HookExecutionResult
from wave_agent.hooks.matcher import MatcherError, parse_matcher
from wave_agent.hooks.semantics import merge, read
from wave_agent.hooks.verdicts import Failure, RankedVerdict, Verdict
from wave_agent.http.sse import EventReader
from wave_agent.messages import Message, MessageManager, TextBlock, ToolBlock
from wave_agent.models.chat_stream import AnswerReader
from wave_agent.models.repair import calls_in_text, repair_arguments
from wave_agent.permissions.decision import PermissionMode, Rules, Ruling, ToolKind, decide
from wave_agent.permissions.protected_paths import protected_paths
from wave_agent.rules.rule import PATH_FIELDS, Places, Purpose, RuleError, parse_rule
from wave_agent.sessions.masking import masked, patterns
from wave_agent.sessions.recorder import FileSessionStore, Recorder, load_session
from wave_agent.settings.hook_entries import parse_settings
from wave_agent.settings.layers import merge_settings
from wave_agent.tools.base import ToolContext, ToolInputError
from wave_agent.tools.files import FileRefusedError
from wave_agent.tools.registry import builtin_tools
from wave_agent.tools.search.client import search_root

PLACES = Places("/project", "/home/me")


class Property(msgspec.Struct, frozen=True):
    """A check of one input, and where the inputs come from."""

    name: str
    inputs: st.SearchStrategy[Any]
    check: Callable[[Any], None]

    def hold(self, examples: int, *, derandomize: bool) -> str:
        """Tries that many inputs; raises at the first that is wrong, made as small as can be. Says what was done."""
        tried, began = 0, monotonic()

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=derandomize,
            print_blob=not derandomize,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        )
        @given(self.inputs)
        def run(value: Any) -> None:
            nonlocal tried
            tried += 1
            self.check(value)

        run()
        return f"{self.name}: {tried:,} inputs, 0 exceptions, {monotonic() - began:.0f} s"


def _explains(error: Exception, *words: str) -> None:
    """A refusal says something, and where."""
    assert str(error)
    assert all(word in str(error) for word in words)


# ------------------------------------------------------------------------------------------------------- hooks' output

_runs = st.builds(
    HookExecutionResult,
    exit_code=st.sampled_from([0, 0, 2, 2, 1, 127, 255, None]),
    stdout=make.hook_stdout,
    stderr=make.texts,
    timed_out=st.integers(0, 9).map(lambda number: number == 0),
    signal=st.none() | st.integers(-1, 70),
    error=st.integers(0, 9).map(lambda number: "no such file" if number == 0 else None),
    stdout_dropped=st.sampled_from([0, 0, 0, 7]),
    duration=st.floats(0, 1e9),
)


def _check_reader(given: tuple[HookEvent, HookExecutionResult, OnFailure]) -> None:
    """Every run has a verdict. No failure approves, exit 2 restricts, and nothing beats a block of another hook."""
    event, result, on_failure = given
    verdict = read(event, result, name="guard", on_failure=on_failure)
    ended = not result.timed_out and result.error is None
    if any(isinstance(effect, Failure) for effect in verdict.effects):
        assert verdict.decision is not Decision.ALLOW
        assert verdict.rewrite is None
    if ended and result.exit_code == 2:
        assert verdict.decision >= Decision.BLOCK
    if result.exit_code != 0 or not ended:
        assert verdict.decision is not Decision.ALLOW
    blocked = read(event, HookExecutionResult(exit_code=2, stderr="no"), name="other")
    for verdicts in ((verdict, blocked), (blocked, verdict)):
        outcome = merge(event, [_reading(number, one) for number, one in enumerate(verdicts)])
        assert outcome.decision >= Decision.BLOCK


def _reading(position: int, verdict: Verdict) -> RankedVerdict:
    return RankedVerdict(position=position, name=f"hook {position}", verdict=verdict)


# ------------------------------------------------------------------------------------------------------------ settings


def _check_settings(given: tuple[str, str, bool]) -> None:
    """A text is refused with its place, or read; whatever else is wrong with it is told."""
    sources = []
    for text, layer in zip(given[:2], (Layer.USER, Layer.PROJECT), strict=True):
        try:
            sources.append(parse_settings(text, layer, "settings.json"))
        except SettingsError as error:
            _explains(error, "settings.json")
    merged = merge_settings(sources, strict=given[2])
    for issue in merged.issues:
        assert str(issue)
    for variable, value in merged.env.items():
        assert isinstance(variable, str)
        assert isinstance(value, str)
    with suppress(SettingsError):
        merged.require_usable()


def _check_rule(given: tuple[str, str, str]) -> None:
    """A rule is refused, or judges any call; what it permits it also speaks of when it restricts."""
    text, command, path = given
    try:
        rule = parse_rule(text)
    except RuleError as error:
        _explains(error)
        return
    calls = {"Bash": {"command": command}, **{tool: {field: path} for tool, field in PATH_FIELDS.items()}}
    for tool, tool_input in calls.items():
        permits = rule.matches(tool, tool_input, PLACES, Purpose.PERMIT)
        assert rule.matches(tool, tool_input, PLACES, Purpose.RESTRICT) or not permits
    for odd in ({}, {"command": None, "file_path": None}, {"command": 7, "file_path": ["x"]}):
        rule.matches("Bash", odd, PLACES)


def _check_matcher(given: tuple[str, str]) -> None:
    """A matcher is refused, or answers for any name and can say how it was read."""
    text, target = given
    try:
        matcher = parse_matcher(text)
    except MatcherError as error:
        _explains(error)
        return
    assert isinstance(matcher.matches(target), bool)
    assert matcher.explain()


# ---------------------------------------------------------------------------------------------------------------- JSON


def _check_json(text: str) -> None:
    """Both readers refuse, or agree; what is read is what JSON means and can be written as UTF-8."""
    text = text.encode(errors="replace").decode()  # as it comes from a process or a file
    try:
        document = parse_document(text).value
    except StrictJSONError as error:
        _explains(error)
        document = None
    try:
        found = parse_object(text)
    except StrictJSONError as error:
        _explains(error)
        return
    assert document is None or _same(document, found)
    assert _same(json.loads(text, parse_int=_integer), found) or "\\u" in text
    json.dumps(found, ensure_ascii=False).encode()


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= 4300 else float(digits)


def _same(one: object, other: object) -> bool:
    """Equal as JSON: true is not 1."""
    return repr(one) == repr(other)


# --------------------------------------------------------------------------------------------------------- the model's


def _check_repair(text: str) -> None:
    """What a model wrote is an object that can be passed on, or nothing; calls are whole or the text is as it was."""
    arguments = repair_arguments(text)
    assert arguments is None or json.loads(json.dumps(arguments)) is not None
    rest, calls = calls_in_text(text, ["Bash", "Read"], {"Bash": ["command"]})
    assert calls or rest == text
    for name, parameters in calls:
        assert name in ("Bash", "Read")
        json.dumps(parameters)


def _check_stream(given: tuple[Sequence[bytes], Sequence[int]]) -> None:
    """Any bytes are read, and in whatever portions they come, they say the same."""
    portions, cuts = given
    whole = b"".join(portions)
    edges = sorted({0, len(whole), *(cut % (len(whole) + 1) for cut in cuts)})
    one = _events([whole])
    assert one == _events([whole[start:end] for start, end in pairwise(edges)])
    reader = AnswerReader()
    for event in one:
        for delta in reader.read(event):
            msgspec.json.encode(delta)
    for delta in reader.end():
        msgspec.json.encode(delta)


def _events(portions: Sequence[bytes]) -> list[str]:
    reader = EventReader()
    return [event for portion in portions for event in reader.feed(portion)] + reader.finish()


# ---------------------------------------------------------------------------------------------------------- transcripts


@cache
def transcript() -> tuple[bytes, ...]:
    """The lines of a real one: every kind of record that a session writes."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "t.jsonl"
        store = FileSessionStore(path)
        recorder = Recorder(store, session_id="s", project_dir="/project")
        manager = MessageManager((), recorder.change)
        recorder.start()
        for number in range(4):
            manager.add_prompt(f"prompt {number} é\u2028")
            recorder.hook_run(_run_of_a_hook(number))
            manager.accept_prompt()
            manager.add_assistant_message(
                TextBlock(f"answer {number}", "model"), ToolBlock(f"call_{number}", "Bash", {"command": "ls"})
            )
            manager.update_tool_block(f"call_{number}", result=f"result {number}", success=True)
            manager.add_notice_block(f"notice {number}")
            manager.add_error_block(f"error {number}")
        store.close()
        return tuple(path.read_bytes().splitlines(keepends=True))


def _run_of_a_hook(number: int) -> HookRun:
    return HookRun(
        event="UserPromptSubmit",
        name="guard",
        command="./guard.sh",
        layer="project",
        tool_use_id=None,
        exit_code=0,
        outcome="context",
        failure=None,
        mode="enforce",
        look=1,
        rewrote=False,
        let_through=False,
        duration_ms=1.5,
        deferred=(f"context {number}",),
        occasion=number,
    )


def _damaged(lines: list[bytes], kind: str, where: int, other: int, noise: bytes) -> None:
    at, to = where % len(lines), other % len(lines)
    line = lines[at]
    match kind:
        case "cut":
            lines[at] = line[: other % len(line)] + b"\n"
        case "flip":
            spot = other % len(line)
            lines[at] = line[:spot] + bytes([line[spot] ^ (1 << other % 8)]) + line[spot + 1 :]
        case "double":
            lines.insert(to, line)
        case "swap":
            lines[at], lines[to] = lines[to], line
        case "binary" | "json":
            lines.insert(at, noise + b"\n")
        case _:
            pass


def _check_transcript(wounds: Sequence[tuple[str, int, int, bytes]]) -> None:
    """Whatever is damaged, the prompts and answers of the lines that are whole are there."""
    lines = list(transcript())
    for wound in wounds:
        _damaged(lines, *wound)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "t.jsonl"
        path.write_bytes(b"".join(lines))
        whole = set(path.read_bytes().split(b"\n"))  # a line that has lost its end has damaged the next one
        try:
            resumed = load_session(path)
        except SessionError as error:
            _explains(error, str(path))
            return
    for message in resumed.messages:
        assert msgspec.convert(msgspec.to_builtins(message), Message) == message
    kept = {block.content for message in resumed.messages for block in message.blocks if isinstance(block, TextBlock)}
    assert {text for line, text in _texts() if line.rstrip() in whole} <= kept


@cache
def _texts() -> tuple[tuple[bytes, str], ...]:
    """The lines of the conversation, each with what it says."""
    said: list[tuple[bytes, str]] = []
    for line in transcript():
        content = json.loads(line).get("message", {}).get("content")
        text = content if isinstance(content, str) else content[0].get("text") if content else None
        if text is not None:
            said.append((line, text))
    assert len(said) == 8
    return tuple(said)


def _check_masking(value: Any) -> None:
    """No secret comes through, nothing else changes its shape, and masking again changes nothing."""
    found = masked(value)
    assert masked(found) == found
    assert json.loads(json.dumps(found)) == found
    assert _shape(found) == _shape(value)
    for text in _strings(found):
        assert not any(pattern.search(text) for pattern in patterns().values())


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return [_shape(inner) for inner in value.values()]
    return [_shape(inner) for inner in value] if isinstance(value, list) else type(value)


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in _strings(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in _strings(inner)]
    return [value] if isinstance(value, str) else []


# --------------------------------------------------------------------------------------------------- inputs of tools


class _Ground:
    """Files of every kind, and the tools that are let loose on them. Nothing outside is written to."""

    def __init__(self) -> None:
        self.kept = tempfile.TemporaryDirectory()
        self.root = Path(self.kept.name).resolve() / "project"
        self.root.mkdir()
        self.known = builtin_tools()
        self.tools = {tool.name: tool for tool in self.known}
        self.runner = asyncio.Runner()
        self.context = ToolContext(project_dir=self.root, environment={}, outputs=self.root.parent)
        self.protected = protected_paths(str(self.root), self.root.parent / "home", (), self.root.parent)
        self.rules = Rules(deny=tuple(map(parse_rule, ("Read(.env)", "Edit(d/**)", "Write(~/x*)", "Grep(//proc/**)"))))
        self.places = Places(str(self.root), str(self.root.parent))
        self.fill()

    def fill(self) -> None:
        (self.root / "d").mkdir(exist_ok=True)
        for name in ("a.txt", ".env", "d/b.txt"):
            (self.root / name).write_text("one\ntwo\n")
        for name, target in make.LINKS.items():
            if not os.path.lexists(self.root / name):
                (self.root / name).symlink_to(target)
        if not os.path.lexists(self.root / "fifo"):
            os.mkfifo(self.root / "fifo")


@cache
def _ground() -> _Ground:
    return _Ground()


def _check_tool(value: tuple[str, Any]) -> None:
    """A call is judged or cannot be, for a reason of the system's; a tool gives a result or says what is wrong."""
    ground = _ground()
    ground.fill()
    name, given_input = value
    tool = ground.tools[name]
    tool_input = tool.normalise(given_input, str(ground.root))
    try:
        arguments = tool.parse(tool_input)
        seen = seen_by(tool, tool_input)
    except ToolInputError as error:
        return _explains(error)
    except OSError as error:
        return _explains(error, error.strerror or "a reason")
    judged = subject_of(tool, tool_input, ground.context, (str(ground.root),), ground.protected, seen=seen)
    no_hooks = merge(HookEvent.PRE_TOOL_USE, [])
    permission = decide(judged, PermissionMode.BYPASS, ground.rules, no_hooks, ground.places)
    assert permission.by
    if permission.answer is not Ruling.ALLOW or (tool.kind is not ToolKind.READS and not judged.inside):
        return None
    if name in ("Glob", "Grep"):  # these start a program
        with suppress(FileRefusedError):
            search_root(str(given_input.get("path", "")), ground.context)
        return None
    try:
        result = ground.runner.run(tool.run(arguments, msgspec.structs.replace(ground.context, judged=seen)))
    except ToolInputError as error:
        return _explains(error)
    assert result.content


PROPERTIES = (
    Property("reader", st.tuples(st.sampled_from(HookEvent), _runs, st.sampled_from(OnFailure)), _check_reader),
    Property("settings", st.tuples(make.settings_texts, make.settings_texts, st.booleans()), _check_settings),
    Property("rules", st.tuples(make.rule_texts, make.commands, make.paths), _check_rule),
    Property(
        "matcher", st.tuples(make.matcher_texts, make.texts | st.sampled_from(["Bash", "mcp__x"])), _check_matcher
    ),
    Property("strict JSON", make.hook_stdout | make.settings_texts, _check_json),
    Property("almost JSON", make.almost_calls | make.hook_stdout, _check_repair),
    Property("model stream", st.tuples(make.streams, st.lists(st.integers(0, 10_000), max_size=4)), _check_stream),
    Property("transcript", make.damage, _check_transcript),
    Property("masking", make.with_secrets, _check_masking),
    Property("tools", make.tool_calls, _check_tool),
)
