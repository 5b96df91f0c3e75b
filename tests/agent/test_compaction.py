"""Long conversations go on: older turns are summarised, the user keeps everything."""

import json
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wave_agent import Agent
from wave_agent.agent.compaction import KEPT, PROMPT_LIMIT, cut_at, facts_of, words_of
from wave_agent.agent.outgoing import tokens_of
from wave_agent.errors import ModelError
from wave_agent.messages import Message, TextBlock, ToolBlock
from wave_agent.models.base import ModelRequest
from wave_agent.models.conversion import convert_messages_for_api
from wave_agent.sessions.recorder import load_session
from wave_agent.testing import Reply, ScriptedModel, call

WINDOW = {"models": {"small": {"contextWindow": 4000, "profile": "full"}}}
LONG = "word " * 1500


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))


def asks_for_summary(request: ModelRequest) -> bool:
    return "Summarise the conversation" in request.messages[-1]["content"]


async def agent(tmp_path: Path, model: ScriptedModel, **options: Any) -> Agent:
    return await Agent.create(workdir=tmp_path, model="small", model_client=model, settings=WINDOW, **options)


async def test_a_full_window_has_older_turns_summarised_and_the_user_keeps_them(tmp_path: Path):
    model = ScriptedModel([LONG, "SUMMARY", "third answer"])
    async with await agent(tmp_path, model) as wave:
        await wave.send_message("first " + LONG)
        result = await wave.send_message("second")
    assert [asks_for_summary(request) for request in model.requests] == [False, True, False]
    last = json.dumps(model.requests[2].messages)
    assert "SUMMARY" in last
    assert LONG.strip() not in last
    assert last.count("second") == 1
    assert result.text == "third answer"
    assert result.turns == 1
    assert [message.text[:6] for message in wave.messages if message.role == "user"] == ["first ", "second"]


async def test_hooks_hear_of_it_add_to_the_instructions_and_can_be_against_it(tmp_path: Path):
    heard: list[dict[str, Any]] = []

    def before(event: Any) -> dict[str, str]:
        heard.append(dict(event.payload))
        return {"additionalContext": "Keep the ticket number."}

    def after(event: Any) -> None:
        heard.append(dict(event.payload))

    model = ScriptedModel([LONG, "SUMMARY", "done"])
    async with await agent(tmp_path, model, hooks={"PreCompact": [before], "PostCompact": [after]}) as wave:
        await wave.send_message("first " + LONG)
        await wave.send_message("second")
    assert [one["hook_event_name"] for one in heard] == ["PreCompact", "PostCompact"]
    assert {one["trigger"] for one in heard} == {"auto"}
    assert heard[0]["compact_instructions"] == heard[0]["custom_instructions"] == ""
    assert heard[1]["compact_summary"] == "SUMMARY"
    assert "Keep the ticket number." in model.requests[1].messages[-1]["content"]

    model = ScriptedModel([LONG, "answered in full"])
    async with await agent(tmp_path, model, hooks={"PreCompact": ["echo not now >&2; exit 2"]}) as wave:
        await wave.send_message("first " + LONG)
        result = await wave.send_message("second")
    assert not any(map(asks_for_summary, model.requests))
    assert "not now" in str(wave.messages)
    assert result.text == "answered in full"


async def test_the_summary_survives_a_resume(tmp_path: Path):
    model = ScriptedModel([LONG, "SUMMARY", "done"])
    async with await agent(tmp_path, model) as wave:
        await wave.send_message("first " + LONG)
        await wave.send_message("second")
    resumed = load_session(Path(wave.transcript_path))
    assert resumed.messages == tuple(wave.messages)
    again = ScriptedModel(["more"])
    async with await agent(tmp_path, again, resume=wave.session_id) as wave:
        await wave.send_message("third")
    sent = json.dumps(again.requests[0].messages)
    assert "SUMMARY" in sent
    assert LONG.strip() not in sent


async def test_a_server_that_finds_the_conversation_too_long_gets_a_shorter_one_once(tmp_path: Path):
    too_long = ModelError("This model's maximum context length is 10 tokens.", status=400)
    model = ScriptedModel(["one", too_long, "SUMMARY", "went well"])
    async with await Agent.create(workdir=tmp_path, model_client=model) as wave:
        await wave.send_message("first " + LONG)
        result = await wave.send_message("second")
    assert (result.status, result.text, result.turns) == ("completed", "went well", 1)
    assert asks_for_summary(model.requests[2])
    model = ScriptedModel(["one", too_long, "SUMMARY", too_long])
    async with await Agent.create(workdir=tmp_path, model_client=model) as wave:
        await wave.send_message("first " + LONG)
        assert (await wave.send_message("second")).status == "error"


async def test_a_long_conversation_does_not_fill_the_request_for_the_summary(tmp_path: Path):
    model = ScriptedModel([LONG * 5, "SUMMARY", "done"])
    async with await Agent.create(workdir=tmp_path, model="large", model_client=model, settings=WINDOW) as wave:
        await wave.send_message("first")
        wave.model_name = "small"
        result = await wave.send_message("second")
    assert result.status == "completed"
    asked = json.dumps(model.requests[1].messages[1:])  # without the system prompt
    assert asks_for_summary(model.requests[1])
    assert len(asked) < 8000
    assert "characters omitted here" in asked


async def test_prompts_alone_are_not_summarised(tmp_path: Path):
    (tmp_path / "log").write_text("line\n" * 4000)
    reads = [call("Read", file_path="log", offset=offset) for offset in (1, 301, 601, 901, 1201)]
    model = ScriptedModel([Reply(tool_calls=reads), "done"])
    async with await agent(tmp_path, model) as wave:
        result = await wave.send_message("Read the log.")
    assert (result.status, result.turns) == ("completed", 2)
    assert model.requests[1].messages[1]["content"] == "Read the log."
    results = [message["content"] for message in model.requests[1].messages[-len(reads) :]]
    assert any("characters omitted here" in content for content in results)


async def test_an_overlong_summary_request_is_shortened_as_often_as_needed(tmp_path: Path):
    too_long = ModelError("The request exceeds the available context size.", status=400)
    model = ScriptedModel(["old " + LONG, too_long, too_long, too_long, "SUMMARY", "went well"])
    async with await Agent.create(workdir=tmp_path, model_client=model) as wave:
        await wave.send_message("first")
        result = await wave.send_message("second")
    assert (result.status, result.text, result.turns) == ("completed", "went well", 1)
    assert [asks_for_summary(request) for request in model.requests] == [False, False, True, True, True, False]
    sizes = [len(json.dumps(request.messages)) for request in model.requests[2:5]]
    assert sizes == sorted(set(sizes), reverse=True)


async def test_a_summary_that_breaks_off_on_its_way_is_asked_for_again(tmp_path: Path):
    too_long = ModelError("The request exceeds the available context size.", status=400)
    half = Reply("SUM", error=ModelError("The connection broke.", unfinished=True))
    model = ScriptedModel(["old " + LONG, too_long, half, half, "SUMMARY", "went well"])
    async with await Agent.create(workdir=tmp_path, model_client=model) as wave:
        await wave.send_message("first")
        result = await wave.send_message("second")
    assert (result.status, result.text) == ("completed", "went well")
    assert [asks_for_summary(request) for request in model.requests] == [False, False, True, True, True, False]


async def test_a_server_that_breaks_off_for_the_length_again_and_again_is_given_up(tmp_path: Path):
    broken = Reply("and so on " * 40, error=ModelError("Context size has been exceeded.", status=500))
    model = ScriptedModel(repeat(broken))
    async with await Agent.create(workdir=tmp_path, model_client=model) as wave:
        result = await wave.send_message("Go.")
    assert result.status == "error"
    assert "Context size" in (result.error or "")
    assert len(model.requests) < 10


async def test_where_a_hook_is_against_a_summary_old_messages_are_left_out(tmp_path: Path):
    def answer(request: ModelRequest) -> Any:
        if len(json.dumps(request.messages[1:])) > 3000:
            return ModelError("prompt is too long", status=400)
        return "short answer " * 10

    model = ScriptedModel(repeat(answer))
    hooks = {"PreCompact": ["exit 2"]}
    async with await Agent.create(workdir=tmp_path, model_client=model, hooks=hooks) as wave:
        for number in range(20):
            result = await wave.send_message(f"prompt {number}")
            assert result.status == "completed"
    sent = [message["content"] for message in model.requests[-1].messages]
    assert not any(map(asks_for_summary, model.requests))
    assert [text for text in sent if text.startswith("prompt ")] == [f"prompt {number}" for number in range(20)]
    assert sum("Older messages were omitted" in text for text in sent) == 1
    assert len(wave.messages) > 39


async def test_a_prompt_that_runs_through_several_summaries_stays_verbatim(tmp_path: Path):
    prompt = "Do it like this: " + "abc " * 1200 + "and stop."
    steps = iter([*(Reply(f"step {n} " + LONG, [call("Glob", pattern=f"{n}")]) for n in range(8)), "done"])
    model = ScriptedModel(repeat(lambda request: "SUMMARY" if asks_for_summary(request) else next(steps)))
    async with await Agent.create(
        workdir=tmp_path,
        model="small",
        model_client=model,
        settings={"models": {"small": {"contextWindow": 12000, "profile": "full"}}},
    ) as wave:
        result = await wave.send_message(prompt)
    assert result.text == "done"
    assert [asks_for_summary(request) for request in model.requests].count(True) > 1
    last = model.requests[-1].messages[1]["content"]
    assert "SUMMARY" in last
    assert prompt in last


def prompt(text: str) -> Message:
    return Message("user", (TextBlock(text, "user"),))


def test_long_prompts_are_cut_in_the_middle_and_the_latest_never_is():
    long = "begin " + "x" * 3 * PROMPT_LIMIT + " end"
    conversation = [prompt(long), prompt("short"), Message("assistant", (TextBlock("a", "model"),)), prompt(long + "!")]
    words = words_of(conversation, 0, 4, 100_000)
    assert long not in words.replace(long + "!", "")
    assert words.startswith("What the user said, word for word:\n\nbegin ")
    assert " end\n\nshort\n\n" in words
    assert words.endswith(long + "!")
    assert len(words_of(conversation * 20, 0, 79, 1000)) < 40 * 500
    assert "latest" not in words_of(conversation, 0, 3, 1000)
    assert words_of([], 0, 0, 1000) == ""


def test_facts_are_the_last_todo_list_and_each_file_once():
    def tool(name: str, result: str, success: bool = True, **parameters: Any) -> Message:
        return Message("assistant", (ToolBlock("x", name, parameters, result, success),))

    done = [
        tool("TodoWrite", "[ ] old"),
        tool("Read", "", file_path="a"),
        tool("Read", "", file_path="b"),
        tool("Edit", "", file_path="b"),
        tool("Read", "", file_path="gone", success=False),
        tool("TodoWrite", "[x] new"),
        tool("Glob", "", pattern="*"),
    ]
    told = facts_of(done, {"Edit", "Write"})
    assert told == "Your todo list:\n[x] new\n\nFiles that you changed:\nb\n\nFiles that you read:\na"
    assert facts_of([], {"Edit"}) == ""


texts = st.text(min_size=1, max_size=200)
messages = st.lists(
    st.builds(lambda text: Message("user", (TextBlock(text, "user"),)), texts)
    | st.builds(lambda text: Message("assistant", (ToolBlock(text, "Bash", {"command": text}, text, True),)), texts),
    min_size=1,
    max_size=30,
)


@given(messages, st.integers(10, 5000), st.integers(0, 30))
def test_what_is_kept_fits_or_is_the_last_message(found: list[Message], window: int, first: int):
    first = min(first, len(found) - 1)
    at = cut_at(found, window, first)
    assert first <= at < len(found)
    assert tokens_of(found[at:]) <= window * KEPT or at == len(found) - 1
    converted = convert_messages_for_api(found[at:])
    assert converted[0]["role"] in ("user", "assistant")


async def test_a_template_that_wants_turns_gets_user_messages_folded(tmp_path: Path):
    refusal = ModelError("Conversation roles must alternate user/assistant/user/assistant/...", status=400)
    model = ScriptedModel([refusal, "fine"])
    async with await Agent.create(
        workdir=tmp_path, model_client=model, hooks={"UserPromptSubmit": ["echo context"]}
    ) as wave:
        result = await wave.send_message("question")
    assert (result.status, result.turns) == ("completed", 1)
    assert [message["role"] for message in model.requests[0].messages] == ["system", "user", "user"]
    _, folded = model.requests[1].messages
    assert folded["content"].startswith("question\n\n<hook")
    assert len(wave.messages) == 3
    settings = {"models": {"strict": {"foldUserMessages": True}}}
    model = ScriptedModel(["fine"])
    async with await Agent.create(
        workdir=tmp_path, model="strict", settings=settings, model_client=model, hooks={"UserPromptSubmit": ["echo c"]}
    ) as wave:
        await wave.send_message("question")
    assert len(model.requests[0].messages) == 2


def test_prompts_of_earlier_summaries_are_kept_in_short() -> None:
    prompts = ["The task: count the defs. " + "x" * 3000, "Second.", "Third.", "Fourth."]
    conversation = [Message("user", (TextBlock(text, "user"),)) for text in prompts]
    words = words_of(conversation, 2, 4, 100_000)
    assert words.startswith("What the user said before that, shortened:\n\nThe task: count the defs. xxx")
    assert "characters omitted" in words
    assert "Second.\n\nWhat the user said, word for word:\n\nThird.\n\nThe user's latest prompt" in words
    many = [Message("user", (TextBlock(f"Prompt {number} {'y' * 500}", "user"),)) for number in range(500)]
    kept = words_of(many, 499, 500, 10_000)
    assert len(kept) < 20_000
    assert "Prompt 0 " in kept
    assert "Prompt 498 " in kept


def test_what_is_standing_is_kept_beside_a_summary() -> None:
    assert facts_of([], {"Edit"}, ["bash_1 is still running."]) == "bash_1 is still running."
