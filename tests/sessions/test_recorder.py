"""The transcript: the dialect that existing hooks parse, who may read it, what never gets into it, reading it back."""

import asyncio
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.waiting import until
from wave_agent.agent.agent import Agent
from wave_agent.errors import SessionError
from wave_agent.events import HookRun
from wave_agent.messages import (
    Block,
    Image,
    Kept,
    Message,
    MessageManager,
    Origin,
    ReasoningBlock,
    TextBlock,
    ToolBlock,
)
from wave_agent.models.conversion import convert_messages_for_api
from wave_agent.models.scripted import Reply, ScriptedModel
from wave_agent.sessions.hash_chain import check
from wave_agent.sessions.recorder import FileSessionStore, Record, Recorder, Resumed, load_session, transcript_file

NOON = datetime(2031, 2, 3, 12, 0, 0, 123456, UTC)
GUARD = Origin("PreToolUse", "guard")


class Session:
    """A conversation that is recorded into a real file, as the agent does it."""

    def __init__(self, path: Path, resumed: Resumed | None = None) -> None:
        self.path = path
        self.store = FileSessionStore(path)
        self.recorder = Recorder(
            self.store,
            session_id="the-session",
            project_dir="/srv/project",
            last_uuid=resumed.last_uuid if resumed else None,
            link=resumed.link if resumed else None,
            now=lambda: NOON,
        )
        self.messages = MessageManager(
            resumed.messages if resumed else (), self.recorder.change, resumed.compacted if resumed else None
        )
        self.journal: list[HookRun] = []
        if resumed is None:
            self.recorder.start()

    def prompt(self, text: str) -> None:
        self.messages.add_prompt(text)
        self.messages.accept_prompt()

    def ran(self, *runs: HookRun) -> None:
        for run in runs:
            self.journal.append(run)
            self.recorder.hook_run(run)

    def refuse(self, text: str, reason: str, *runs: HookRun) -> None:
        """What a blocked prompt does, in the agent's order."""
        self.messages.add_prompt(text)
        self.ran(*runs)
        self.messages.remove_last_user_message(reason)
        self.messages.add_error_block(reason)

    def lines(self) -> list[Record]:
        return [json.loads(line) for line in self.path.read_bytes().split(b"\n")[:-1]]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    made = Session(tmp_path / "projects" / "here" / "the-session.jsonl")
    yield made
    made.store.close()


def hook_run(**facts: Any) -> HookRun:
    common: dict[str, Any] = {
        "event": "UserPromptSubmit",
        "name": "guard",
        "command": "./guard.sh",
        "layer": "project",
        "tool_use_id": None,
        "exit_code": 2,
        "outcome": "block",
        "failure": None,
        "mode": "enforce",
        "look": 1,
        "rewrote": False,
        "let_through": False,
        "duration_ms": 1.5,
    }
    return HookRun(**{**common, **facts})


def frameless(record: Record) -> Record:
    """The line without what every line has."""
    return {key: value for key, value in record.items() if key not in FRAME}


FRAME = ("uuid", "parentUuid", "timestamp", "sessionId", "cwd")


# ---------------------------------------------------------------------------------------------------------- the dialect


def test_the_first_line_says_what_the_file_is(session: Session) -> None:
    first = session.lines()[0]
    assert first == {
        "type": "session",
        "version": 1,
        "session_id": "the-session",
        "cwd": "/srv/project",
        "timestamp": "2031-02-03T12:00:00.123Z",
    }
    assert session.path.read_bytes().startswith(b'{"type":"session","version":1,')


def test_a_prompt_is_a_line_of_the_user_with_plain_content(session: Session) -> None:
    session.prompt("do it")
    line = frameless(session.lines()[1])
    assert line == {"type": "user", "message": {"role": "user", "content": "do it"}, "source": "user"}


def test_an_answer_is_a_line_of_the_assistant_with_text_thinking_and_tool_use(session: Session) -> None:
    call = ToolBlock("one", "Bash", {"command": "ls"})
    session.messages.add_assistant_message(ReasoningBlock("hm"), TextBlock("let me see", "model"), call)
    assert frameless(session.lines()[1]) == {
        "type": "assistant",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "let me see"},
                {"type": "tool_use", "id": "one", "name": "Bash", "input": {"command": "ls"}},
            ],
        },
    }


def test_what_an_api_wants_back_is_kept_with_its_block_and_survives_a_resume(session: Session) -> None:
    kept = Kept("anthropic", "claude", {"type": "thinking", "signature": "s", "deep": [{"a": None}]})
    blocks = (
        ReasoningBlock("", kept=kept),
        TextBlock("let me see", "model", kept=kept),
        ToolBlock("one", "Bash", {"command": "ls"}, kept=kept),
    )
    session.messages.add_assistant_message(*blocks)
    content = session.lines()[1]["message"]["content"]
    assert [part["kept"]["api"] for part in content] == ["anthropic"] * 3
    assert load_session(session.path).messages == (Message("assistant", blocks),)
    assert "kept" not in json.dumps(Message("assistant", blocks).to_dict())


@pytest.mark.parametrize("kept", [5, {"api": "anthropic"}, {"api": 1, "model": "m", "data": {}}, None])
def test_what_cannot_be_sent_back_is_dropped_and_the_answer_stays(tmp_path: Path, kept: Any) -> None:
    part = {"type": "text", "text": "hello", "kept": kept}
    line = {"type": "assistant", "message": {"role": "assistant", "content": [part]}}
    file = tmp_path / "session.jsonl"
    file.write_text(json.dumps(line))
    assert load_session(file).messages == (Message("assistant", (TextBlock("hello", "model"),)),)


def test_a_result_is_a_line_of_the_user_with_a_tool_result(session: Session) -> None:
    session.messages.add_assistant_message(ToolBlock("one", "Bash", {}))
    session.messages.update_tool_block("one", result="not that", success=False, error="blocked", origin=GUARD)
    line = frameless(session.lines()[2])
    result = {"type": "tool_result", "tool_use_id": "one", "content": "not that", "is_error": True}
    assert line["type"] == "user"
    assert line["message"] == {"role": "user", "content": [result]}
    assert line["error"] == "blocked"


def test_texts_of_hooks_are_a_line_of_the_user_that_says_so(session: Session) -> None:
    texts = TextBlock("a", "hook", GUARD), TextBlock("b", "hook", Origin("PreToolUse", "other"))
    session.messages.add_user_message(*texts)
    line = frameless(session.lines()[1])
    assert line["message"] == {
        "role": "user",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    }
    assert line["source"] == "hook"


def test_what_is_for_the_user_alone_is_a_line_of_our_own(session: Session) -> None:
    session.messages.add_error_block("broken")
    session.messages.add_notice_block("look", "info")
    session.ran(hook_run(reason="why"))
    error, notice, run = map(frameless, session.lines()[1:])
    assert error == {"type": "system", "subtype": "error", "content": "broken"}
    assert notice == {"type": "system", "subtype": "notice", "content": "look", "level": "info"}
    assert (run.pop("run"), len(run.pop("chain"))) == (1, 64)
    assert run == {"type": "system", "subtype": "hook_run", **msgspec.to_builtins(hook_run(reason="why"))} | {
        "deferred": [],
        "calls": [],
    }


def test_a_summary_for_the_model_is_a_line_of_our_own(session: Session) -> None:
    session.prompt("one")
    session.messages.compact("they said one", 1)
    assert frameless(session.lines()[2]) == {
        "type": "system",
        "subtype": "compact",
        "summary": "they said one",
        "upto": 1,
    }


def test_the_json_is_compact_so_that_a_grep_for_the_role_finds_it(session: Session) -> None:
    session.prompt("a: b, c")
    session.messages.add_assistant_message(TextBlock("done", "model"))
    counted = subprocess.run(
        ["grep", "-c", '"role":"assistant"', str(session.path)], capture_output=True, text=True, check=True
    )
    assert counted.stdout == "1\n"
    for line in session.path.read_text().splitlines():
        assert line == json.dumps(json.loads(line), separators=(",", ":"))


def test_every_line_but_the_first_names_itself_and_the_one_before(session: Session) -> None:
    session.prompt("one")
    session.messages.add_assistant_message(ToolBlock("one", "Bash", {}))
    session.messages.update_tool_block("one", result="ok", success=True)
    session.refuse("secret secret", "no", hook_run())
    session.messages.add_notice_block("look")
    lines = session.lines()[1:]
    ids = [line["uuid"] for line in lines]
    assert len(set(ids)) == len(lines) == 7
    assert all(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", one) for one in ids)
    assert [line["parentUuid"] for line in lines] == [None, *ids[:-1]]
    assert {line["sessionId"] for line in lines} == {"the-session"}
    assert {line["cwd"] for line in lines} == {"/srv/project"}


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))])
def test_times_are_in_utc_and_end_in_z(tmp_path: Path, zone: timezone) -> None:
    store = FileSessionStore(tmp_path / "s.jsonl")
    recorder = Recorder(store, session_id="s", project_dir="/", now=lambda: NOON.astimezone(zone))
    recorder.start(model="m")
    recorder.hook_run(hook_run())
    store.close()
    lines = [json.loads(line) for line in store.path.read_text().splitlines()]
    assert [line["timestamp"] for line in lines] == ["2031-02-03T12:00:00.123Z"] * 2
    assert lines[0]["model"] == "m"


def test_without_a_clock_of_its_own_a_recorder_uses_the_real_one(tmp_path: Path) -> None:
    store = FileSessionStore(tmp_path / "s.jsonl")
    before = datetime.now(UTC)
    Recorder(store, session_id="s", project_dir="/").start()
    store.close()
    written = json.loads(store.path.read_text())["timestamp"]
    assert written.endswith("Z")
    assert before - timedelta(seconds=1) <= datetime.fromisoformat(written) <= datetime.now(UTC)


def test_what_is_recorded_is_in_the_file_when_the_call_returns(session: Session) -> None:
    for at in range(5):
        session.messages.add_notice_block(f"note {at}")
        assert session.lines()[-1]["content"] == f"note {at}"


def test_the_file_is_named_by_project_and_session(tmp_path: Path) -> None:
    path = transcript_file(tmp_path, "/home/me/my project.git", "5f1c")
    assert path == tmp_path / "projects" / "-home-me-my-project-git" / "5f1c.jsonl"


@pytest.mark.parametrize(
    "session_id",
    ["", "../other", "../../x", "/etc/passwd", "a/b", ".hidden", "x" * 65, "a\n", "-r", "a\0b", "a.b"],
)
def test_an_id_that_could_leave_the_place_of_transcripts_is_refused(tmp_path: Path, session_id: str) -> None:
    with pytest.raises(SessionError, match="is not a session id") as raised:
        transcript_file(tmp_path, "/srv", session_id)
    assert str(raised.value).isprintable()


# ---------------------------------------------------------------------------------------- a prompt that is not accepted


def test_a_prompt_is_not_on_disk_before_it_is_accepted(session: Session) -> None:
    session.messages.add_prompt("the whole secret")
    session.ran(hook_run(outcome="none", reason="looked at: the whole secret"))
    assert b"secret" not in session.path.read_bytes()
    session.messages.accept_prompt()
    run, user = session.lines()[1:]
    assert user["message"]["content"] == "the whole secret"
    assert run["subtype"] == "hook_run"
    assert run["reason"] == "looked at: the whole secret"


def test_a_refused_prompt_leaves_its_reason_and_its_length(session: Session) -> None:
    session.refuse("the whole secret", "not that", hook_run(reason="not that"))
    run, blocked, error = map(frameless, session.lines()[1:])
    assert run["subtype"] == "hook_run"
    assert blocked == {"type": "system", "subtype": "prompt_blocked", "reason": "not that", "length": 16}
    assert error == {"type": "system", "subtype": "error", "content": "not that"}


def strings(value: Any) -> Iterator[str]:
    """Every text in a record, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


@example(prompt="deploy with hunter2\n")
@example(prompt="  deploy\nwith the password hunter2\r\nplease  ")
@example(prompt='say "hunter2" \\ and <tag> ünï\u2028code')
@given(prompt=st.text(min_size=12, max_size=60).filter(lambda text: len(text.strip()) >= 12))
def test_a_refused_prompt_is_nowhere_in_the_file_whoever_quotes_it(prompt: str) -> None:
    with TemporaryDirectory() as directory:
        plain = Session(Path(directory) / "plain.jsonl")
        plain.refuse("x", "no", hook_run())
        plain.store.close()
        assume(prompt.strip().encode() not in plain.path.read_bytes())  # a word of the format itself is no quotation
        session = Session(Path(directory) / "s.jsonl")
        quoted = f"I refuse <{prompt}>, again <{prompt.strip()}>"
        run = hook_run(reason=quoted, deferred=(quoted,), before={"deep": [quoted]}, after={"x": quoted})
        session.refuse(prompt, quoted, run, hook_run(name="other", outcome="failure", reason=quoted))
        session.messages.add_notice_block(quoted)
        session.ran(run)
        session.store.close()
        assert prompt.strip().encode() not in session.path.read_bytes()
        for text in strings(session.lines()):
            assert prompt.strip() not in text
        assert session.lines()[3]["reason"].count("[prompt]") >= 2


def test_each_line_of_a_refused_prompt_is_hidden_for_itself(session: Session) -> None:
    session.refuse("first secret\nsecond secret\nhi", "the line 'second secret' looks wrong")
    assert session.lines()[1]["reason"] == "the line '[prompt]' looks wrong"


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(
    "prompt", ['use the password "hunter2" now', "größer: hunter2 ünïcode", "tab\there C:\\hunter2"]
)
def test_a_refused_prompt_is_hidden_also_where_a_hook_quotes_it_as_json(
    session: Session, prompt: str, ascii_only: bool
) -> None:
    """A hook that prints its stdin when it breaks does that."""
    session.refuse(prompt, f"bad input: {json.dumps({'prompt': prompt}, ensure_ascii=ascii_only)}")
    assert b"hunter2" not in session.path.read_bytes()


@pytest.mark.parametrize("prompt", ["e", "hook", "error", "system", "UserPromptSubmit", "type", "s", "enforce"])
def test_hiding_a_short_prompt_leaves_the_records_readable(session: Session, prompt: str) -> None:
    session.refuse(prompt, "no", hook_run(reason="no"))
    session.messages.add_notice_block("look")
    session.prompt("another one")
    read = load_session(session.path)
    assert read.skipped == 0
    assert [(run.event, run.outcome, run.mode) for run in read.hooks] == [("UserPromptSubmit", "block", "enforce")]
    assert read.messages == tuple(session.messages.messages)
    assert [line.get("subtype") for line in session.lines()[1:]] == [
        *("hook_run", "prompt_blocked", "error", "notice", None)
    ]


@pytest.mark.parametrize("prompt", ["user", "text", "role", "e"])
def test_hiding_a_short_prompt_leaves_the_dialect_of_what_hooks_say_later(session: Session, prompt: str) -> None:
    session.refuse(prompt, "no")
    session.messages.add_user_message(TextBlock("a", "hook", GUARD), TextBlock("b", "hook", GUARD))
    assert session.lines()[-1]["message"] == {
        "role": "user",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    }


def test_the_next_prompt_may_say_the_same_and_is_kept(session: Session) -> None:
    session.refuse("the same words", "not now")
    session.prompt("the same words")
    assert session.lines()[-1]["message"]["content"] == "the same words"


def test_a_refused_prompt_stays_hidden_when_the_next_one_has_come(session: Session) -> None:
    """An async hook that was started for it may end only now."""
    session.refuse("the whole secret", "no")
    session.prompt("something else")
    session.ran(hook_run(is_async=True, outcome="context", deferred=("they said: the whole secret",)))
    assert b"the whole secret" not in session.path.read_bytes()


# ------------------------------------------------------------------------------------------------ reading it back again

texts = st.text(max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(texts, values, max_size=3)
origins = st.builds(Origin, st.sampled_from(["UserPromptSubmit", "PreToolUse", "Stop"]), texts)
runs = st.builds(
    hook_run,
    event=st.sampled_from(["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]),
    name=texts,
    exit_code=st.none() | st.integers(0, 255),
    tool_use_id=st.none() | texts,
    failure=st.none() | st.sampled_from(["timeout", "signal", "spawn", "exit", "json"]),
    look=st.integers(1, 2),
    let_through=st.booleans(),
    duration_ms=st.floats(0, 1e6),
    reason=texts,
    is_async=st.booleans(),
    before=st.none() | objects,
    after=st.none() | objects,
    original_sha256=st.none() | texts,
    deferred=st.lists(texts, max_size=2).map(tuple),
)


LEVELS: tuple[Literal["info", "warning"], ...] = ("info", "warning")
Waiting = list[tuple[str, str, str]]
Step = Callable[[Session, Waiting], object]
"""What an agent does, as a function of the session and the list of contexts that wait for a prompt."""


def submitted(draw: st.DrawFn, occasion: int) -> list[Step]:
    prompt = draw(texts)
    beside = [msgspec.structs.replace(run, occasion=occasion) for run in draw(st.lists(runs, max_size=1))]

    def step(session: Session, waiting: Waiting) -> None:
        session.messages.add_prompt(prompt)
        session.ran(*beside)
        session.messages.accept_prompt()
        waiting.clear()

    return [step]


def refused(draw: st.DrawFn, occasion: int) -> list[Step]:
    prompt, reason = draw(st.uuids()).hex, draw(texts)
    guard = hook_run(reason=reason, occasion=occasion)
    beside = hook_run(is_async=True, name="notes", deferred=(draw(texts),), occasion=occasion)
    in_order = draw(st.permutations([guard, beside]))
    return [lambda session, _: session.refuse(prompt, reason, *in_order)]


def context(draw: st.DrawFn, _: int) -> list[Step]:
    blocks = draw(st.lists(st.builds(TextBlock, texts, st.just("hook"), origins), min_size=1, max_size=3))

    def step(session: Session, waiting: Waiting) -> None:
        session.messages.add_user_message(*blocks)
        for block in blocks:  # what has waited for the next prompt may come within the turn: it is known by its hook
            by = block.origin and (block.origin.event, block.origin.hook)
            came = next((one for one in waiting if one[:2] == by), None)
            if came is not None:
                waiting.remove(came)

    return [step]


def answered(draw: st.DrawFn, occasion: int) -> list[Step]:
    said = st.one_of(st.builds(TextBlock, texts, st.just("model")), st.builds(ReasoningBlock, texts))
    calls = [ToolBlock(f"call-{occasion}-{at}", draw(texts), draw(objects)) for at in range(draw(st.integers(0, 3)))]
    blocks: list[Block] = [*draw(st.lists(said, max_size=2)), *calls]
    ended = draw(st.permutations(calls))[: draw(st.integers(0, 3))]
    return [lambda session, _: session.messages.add_assistant_message(*blocks), *(result(draw, one) for one in ended)]


def result(draw: st.DrawFn, call: ToolBlock) -> Step:
    text, success = draw(texts), draw(st.booleans())
    error, origin = draw(st.none() | texts), draw(st.none() | origins)
    return lambda session, _: session.messages.update_tool_block(
        call.id, result=text, success=success, error=error, origin=origin
    )


def told(draw: st.DrawFn, _: int) -> list[Step]:
    text, level = draw(texts), draw(st.sampled_from(LEVELS))
    if draw(st.booleans()):
        return [lambda session, _: session.messages.add_error_block(text)]
    return [lambda session, _: session.messages.add_notice_block(text, level)]


def compacted(draw: st.DrawFn, _: int) -> list[Step]:
    summary, share = draw(texts), draw(st.floats(0, 1))
    return [lambda session, _: session.messages.compact(summary, round(share * len(session.messages.messages)))]


def journalled(draw: st.DrawFn, occasion: int) -> list[Step]:
    run = msgspec.structs.replace(draw(runs), occasion=occasion)

    def step(session: Session, waiting: Waiting) -> None:
        session.ran(run)
        waiting += [(run.event, run.name, text) for text in run.deferred]

    return [step]


@st.composite
def conversation(draw: st.DrawFn, *, after: int = 0) -> list[Step]:
    kinds = draw(
        st.lists(
            st.sampled_from([submitted, refused, context, answered, told, compacted, journalled]),
            min_size=0,
            max_size=8,
        )
    )
    return [step for at, kind in enumerate(kinds, after + 1) for step in kind(draw, at)]


@given(conversation(), conversation(after=10))
def test_a_session_that_is_read_back_and_resumed_is_the_same(first: list[Step], second: list[Step]) -> None:
    with TemporaryDirectory() as directory:
        session, waiting, journal = Session(Path(directory) / "s.jsonl"), Waiting(), list[HookRun]()
        for steps in (first, second):
            for step in steps:
                step(session, waiting)
            journal += session.journal
            session.store.close()
            read = load_session(session.path)
            assert read.messages == tuple(session.messages.messages)
            assert MessageManager(read.messages, compacted=read.compacted).for_model == session.messages.for_model
            assert read.hooks == tuple(journal)
            assert read.deferred == tuple(waiting)
            assert read.skipped == 0
            assert read.last_uuid == session.lines()[-1].get("uuid")
            session = Session(session.path, read)


def test_a_resumed_session_goes_on_in_the_same_chain(session: Session) -> None:
    session.prompt("one")
    session.store.close()
    resumed = Session(session.path, load_session(session.path))
    resumed.prompt("two")
    resumed.store.close()
    one, two = session.lines()[1:]
    assert two["parentUuid"] == one["uuid"]
    assert [message.text for message in load_session(session.path).messages] == ["one", "two"]


@given(conversation(), conversation(after=10))
def test_whatever_a_session_does_its_journal_is_one_chain(first: list[Step], second: list[Step]) -> None:
    """Also over a resumption, a summary, and prompts that were erased."""
    with TemporaryDirectory() as directory:
        session, runs = Session(Path(directory) / "the-session.jsonl"), 0
        for steps in (first, second):
            for step in steps:
                step(session, Waiting())
            runs += len(session.journal)
            session.store.close()
            report = check(session.path.read_bytes().splitlines(), "the-session")
            assert (report.findings, report.head.run) == ((), runs)
            session = Session(session.path, load_session(session.path))


def test_lone_surrogates_and_huge_numbers_survive_in_some_form(session: Session) -> None:
    """A model can write both; losing the whole line over them would lose the call."""
    session.messages.add_assistant_message(ToolBlock("one", "Bash", {"command": "echo \ud800", "n": 2**80}))
    session.messages.update_tool_block("one", result="x\udcffy", success=True)
    session.prompt("\ud83d alone")
    read = load_session(session.path)
    assert read.skipped == 0
    (block,) = read.messages[0].blocks
    assert isinstance(block, ToolBlock)
    assert block.parameters["n"] == 2**80
    assert block.result is not None
    assert block.result[0] + block.result[-1] == "xy"
    assert read.messages[1].text.endswith(" alone")


def test_context_that_still_waits_for_a_prompt_is_given_back_and_used_context_is_not(session: Session) -> None:
    session.ran(hook_run(event="Stop", name="a", deferred=("used",)))
    session.prompt("go")
    session.ran(hook_run(event="Stop", name="b", deferred=("one", "two")))
    session.refuse("the whole secret", "no")
    session.messages.add_user_message(TextBlock("feedback", "hook", GUARD))
    assert load_session(session.path).deferred == (("Stop", "b", "one"), ("Stop", "b", "two"))


# ----------------------------------------------------------------------------------------------------------- bad files


def test_a_session_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="no session 5f1c"):
        load_session(tmp_path / "5f1c.jsonl")


def test_a_directory_in_its_place_is_an_error_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match=re.escape(str(tmp_path))):
        load_session(tmp_path)


def test_an_empty_file_is_an_empty_session(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(b"")
    assert load_session(tmp_path / "s.jsonl") == Resumed()


def test_blank_lines_are_no_loss(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(b"\n  \n\r\n")
    assert load_session(tmp_path / "s.jsonl").skipped == 0


@given(st.binary(max_size=400))
def test_garbage_is_skipped_whatever_it_is(garbage: bytes) -> None:
    with TemporaryDirectory() as directory:
        session = Session(Path(directory) / "s.jsonl")
        session.prompt("before")
        session.store.close()
        with session.path.open("ab") as file:
            file.write(garbage + b"\n")
        after = Session(session.path, load_session(session.path))
        after.prompt("after")
        after.store.close()
        assert [message.text for message in load_session(session.path).messages] == ["before", "after"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
kinds = st.sampled_from(["text", "thinking", "tool_use", "tool_result", "image"])
parts = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("text", "thinking", "id", "name", "input", "tool_use_id", "content"), json_values)
    | {"type": kinds, "is_error": json_values},
)
foreign_lines = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant", "system", "summary"]) | json_values},
    optional={
        "message": json_values
        | st.fixed_dictionaries({"content": st.lists(parts, max_size=2) | texts | json_values}, optional={}),
        "subtype": st.sampled_from(["error", "notice", "hook_run", "prompt_blocked", "compact"]) | json_values,
        **dict.fromkeys(("content", "level", "source", "origins", "uuid", "error", "deferred", "upto"), json_values),
    },
)


@example([{"type": "assistant", "message": {"content": [{"type": "text", "text": 5}]}}])
@example([{"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "", "name": "", "input": 5}]}}])
@example([{"type": "user", "message": {"content": "x"}, "source": 5}])
@example([{"type": "system", "subtype": "error", "content": 5}])
@example([{"type": "system", "subtype": "notice", "content": "x", "level": "shout"}])
@example([{"type": "user", "message": {"content": "x"}, "uuid": 5}])
@example([{"type": "system", "subtype": "compact", "summary": "x", "upto": -5}])
@given(st.lists(foreign_lines, max_size=5))
def test_whatever_lines_there_are_what_is_read_is_sound(lines: list[Record]) -> None:
    """A line of another program must not break the agent later, when its text is sent or shown."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "s.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        read = load_session(path)
        assert msgspec.convert(msgspec.to_builtins(read.messages), tuple[Message, ...]) == read.messages
        assert read.last_uuid is None or isinstance(read.last_uuid, str)
        assert read.compacted is None or 0 <= read.compacted.upto <= len(read.messages)
        convert_messages_for_api(read.messages)


def test_a_line_that_is_nested_beyond_reason_is_skipped(session: Session) -> None:
    session.prompt("before")
    with session.path.open("ab") as file:
        file.write(b'{"type":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n")
    read = load_session(session.path)
    assert [message.text for message in read.messages] == ["before"]
    assert read.skipped == 1


def test_lines_of_kinds_that_are_not_ours_are_passed_over(session: Session) -> None:
    with session.path.open("a") as file:
        file.write('{"type":"summary","summary":"…","leafUuid":"x"}\n{"type":"system","subtype":"other"}\n')
    session.prompt("after")
    read = load_session(session.path)
    assert [message.text for message in read.messages] == ["after"]
    assert read.skipped == 0


def test_a_line_of_the_assistant_may_have_plain_content(tmp_path: Path) -> None:
    line = {"type": "assistant", "message": {"role": "assistant", "content": "hello"}}
    (tmp_path / "s.jsonl").write_text(json.dumps(line) + "\n")
    assert load_session(tmp_path / "s.jsonl").messages == (Message("assistant", (TextBlock("hello", "model"),)),)


def test_a_tool_result_may_have_blocks_as_content(session: Session) -> None:
    session.messages.add_assistant_message(ToolBlock("one", "Read", {}))
    content = [{"type": "tool_result", "tool_use_id": "one", "content": [{"type": "text", "text": "body"}]}]
    with session.path.open("a") as file:
        file.write(json.dumps({"type": "user", "message": {"role": "user", "content": content}}) + "\n")
    (block,) = load_session(session.path).messages[0].blocks
    assert isinstance(block, ToolBlock)
    assert "body" in (block.result or "")
    assert block.success is True


def test_an_image_is_kept_in_the_dialect_and_read_back(session: Session) -> None:
    session.messages.add_assistant_message(ToolBlock("c1", "Read", {}))
    image = Image("image/png", "aGk=", 3, 2)
    session.messages.update_tool_block("c1", result="a.png", success=True, images=(image,))
    content = session.lines()[-1]["message"]["content"][0]["content"]
    assert content[0] == {"type": "text", "text": "a.png"}
    assert content[1]["source"] == {"type": "base64", "media_type": "image/png", "data": "aGk="}
    (message,) = load_session(session.path).messages
    assert message.blocks == (ToolBlock("c1", "Read", {}, "a.png", success=True, images=(image,)),)
    assert "images" not in message.to_dict()["blocks"][0]


def test_a_result_without_its_call_is_skipped(session: Session) -> None:
    content = [{"type": "tool_result", "tool_use_id": "gone", "content": "x"}]
    with session.path.open("a") as file:
        file.write(json.dumps({"type": "user", "message": {"role": "user", "content": content}}) + "\n")
    read = load_session(session.path)
    assert (read.messages, read.skipped) == ((), 1)


def test_a_torn_last_line_loses_itself_alone_wherever_it_is_torn(session: Session) -> None:
    session.prompt("first")
    session.prompt("second, with ünïcode")
    session.store.close()
    whole = session.path.read_bytes()
    last = whole.rindex(b'{"type":"user"')
    for end in range(last + 1, len(whole) - 1):
        session.path.write_bytes(whole[:end])
        read = load_session(session.path)
        assert [message.text for message in read.messages] == ["first"]
        assert read.skipped == 1


TORN = {
    "half a line": b'{"type":"assistant","message":{"role":"assi',
    "half a character": '{"type":"assistant","message":"ü'.encode()[:-1],
    "zeros of a crashed file system": b"\0" * 512,
    "a line and zeros": b'{"type":"summary"}\n' + b"\0" * 7,
    "half a chained line": b'{"type":"system","subtype":"hook_run","run":1,"chain":"00',
}


@pytest.mark.parametrize("torn", TORN.values(), ids=TORN.keys())
def test_a_torn_tail_is_ended_when_the_file_is_opened_and_counted_when_it_is_read(
    session: Session, torn: bytes
) -> None:
    session.prompt("first")
    session.ran(hook_run())
    session.store.close()
    with session.path.open("ab") as file:
        file.write(torn)
    resumed = Session(session.path, load_session(session.path))
    resumed.store.open()
    assert session.path.read_bytes().endswith(torn + b"\n")
    resumed.ran(hook_run())
    resumed.prompt("second")
    resumed.store.close()
    read = load_session(session.path)
    assert [message.text for message in read.messages] == ["first", "second"]
    assert (len(read.hooks), read.skipped) == (2, 1)
    kinds = [finding.kind for finding in check(session.path.read_bytes().splitlines(), "the-session").findings]
    assert kinds.count("unreadable line") == 1
    assert set(kinds) <= {"unreadable line", "inserted record"}


def test_after_a_torn_last_line_nothing_of_the_resumed_session_is_lost(session: Session) -> None:
    session.prompt("first")
    session.store.close()
    with session.path.open("ab") as file:
        file.write(b'{"type":"assistant","message":{"role":"assi')
    resumed = Session(session.path, load_session(session.path))
    resumed.prompt("second")
    resumed.prompt("third")
    resumed.store.close()
    read = load_session(session.path)
    assert [message.text for message in read.messages] == ["first", "second", "third"]
    assert read.skipped == 1


def test_five_thousand_messages_are_read(session: Session) -> None:
    for at in range(1250):
        session.prompt(f"prompt {at}")
        session.messages.add_assistant_message(ToolBlock(f"call-{at}", "Bash", {"command": "ls " + "x" * 100}))
        session.messages.update_tool_block(f"call-{at}", result="y" * 500, success=True)
        session.messages.add_user_message(TextBlock("context", "hook", GUARD))
        session.messages.add_assistant_message(TextBlock("done", "model"))
    started = perf_counter()
    read = load_session(session.path)
    print(f"{len(read.messages)} messages read in {perf_counter() - started:.3f} s")
    assert read.messages == tuple(session.messages.messages)
    assert len(read.messages) == 5000


# ----------------------------------------------------------------------------------------- together with a whole agent


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    return tmp_path / "home"


def everything_below(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file())


def script(directory: Path, text: str) -> str:
    file = directory / "hook.sh"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize("length", [20, 20_000])
async def test_a_prompt_that_a_hook_refuses_and_quotes_is_nowhere_below_the_home(
    tmp_path: Path, home: Path, length: int
) -> None:
    prompt = "my password is hunter2 " + "x" * length
    refuse = script(tmp_path, 'echo "refused: $1" >&2; exit 2')
    async with await Agent.create(
        workdir=tmp_path / "project",
        hooks={"UserPromptSubmit": [{"hooks": [{"command": refuse}]}]},
        model_client=ScriptedModel([]),
    ) as agent:
        result = await agent.send_message(prompt)
    assert result.status == "blocked"
    assert b"hunter2" not in everything_below(home)


async def test_a_prompt_that_was_interrupted_before_its_verdict_is_neither_kept_nor_sent_later(
    tmp_path: Path, home: Path
) -> None:
    """The hook that would have refused it had no chance to."""
    started = asyncio.Event()

    async def slow_guard(call: Any) -> dict[str, str] | None:
        if "hunter2" in call.prompt:
            started.set()
            await asyncio.Event().wait()
        return None

    model = ScriptedModel(["hello"])
    async with await Agent.create(
        workdir=tmp_path / "project", hooks={"UserPromptSubmit": [{"hooks": [slow_guard]}]}, model_client=model
    ) as agent:
        turn = asyncio.create_task(agent.send_message("my password is hunter2"))
        await started.wait()
        agent.interrupt()
        assert (await turn).status == "interrupted"
        await agent.send_message("good morning")
    assert "hunter2" not in json.dumps(model.requests[0].messages)
    assert b"hunter2" not in everything_below(home)


async def test_what_an_async_hook_says_about_a_refused_prompt_does_not_come_with_the_next_one(
    tmp_path: Path, home: Path
) -> None:
    agent: Agent

    async def guard(call: Any) -> dict[str, str] | None:
        if "hunter2" not in call.prompt:
            return None
        await until(lambda: any(run.is_async for run in agent.hook_runs))
        return {"decision": "block", "reason": "no passwords"}

    model = ScriptedModel(["hello"])
    note = script(tmp_path, 'case "$1" in *hunter2*) echo "they said: $1" ;; esac')
    agent = await Agent.create(
        workdir=tmp_path / "project",
        hooks={"UserPromptSubmit": [{"hooks": [{"command": note, "async": True}, guard]}]},
        model_client=model,
    )
    async with agent:
        assert (await agent.send_message("my password is hunter2")).status == "blocked"
        await agent.send_message("good morning")
    assert "hunter2" not in json.dumps(model.requests[0].messages)
    assert b"hunter2" not in everything_below(home)


async def test_context_that_came_while_its_prompt_was_judged_is_not_given_again_after_a_resume(
    tmp_path: Path, home: Path
) -> None:
    agent: Agent

    async def guard(call: Any) -> None:
        await until(lambda: any(run.is_async for run in agent.hook_runs))

    model = ScriptedModel(["hello"])
    note = script(tmp_path, "echo remember the milk")
    agent = await Agent.create(
        workdir=tmp_path / "project",
        hooks={"UserPromptSubmit": [{"hooks": [{"command": note, "async": True}, guard]}]},
        model_client=model,
    )
    async with agent:
        result = await agent.send_message("good morning")
    assert json.dumps(model.requests[0].messages).count("remember the milk") == 1
    assert load_session(Path(result.transcript_path)).deferred == ()


async def test_an_agent_resumes_what_it_wrote(tmp_path: Path, home: Path) -> None:
    options: dict[str, Any] = {
        "workdir": tmp_path / "project",
        "hooks": {"Stop": [{"command": """echo '{"additionalContext": "the build is red"}'""", "async": True}]},
    }
    async with await Agent.create(**options, model_client=ScriptedModel([Reply("hi", reasoning="hm")])) as agent:
        await agent.send_message("good morning")
        before, session_id = agent.messages, agent.session_id
    runs_before = agent.hook_runs
    model = ScriptedModel(["again"])
    async with await Agent.create(**options, model_client=model, resume=session_id) as agent:
        assert agent.messages == before
        assert agent.hook_runs == runs_before
        await agent.send_message("and now?")
    assert "the build is red" in json.dumps(model.requests[0].messages[-1])
