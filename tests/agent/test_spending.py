"""What a session cost, the limit on it, and the other limits on requests."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from wave_agent import Agent, ArgumentError, ModelError, NoticeBlock, SettingsError
from wave_agent.agent.spending import Spending
from wave_agent.models.base import Usage
from wave_agent.models.prices import Prices
from wave_agent.sessions.transcript import Used, load_session
from wave_agent.testing import Reply, ScriptedModel, call

PRICED = {"models": {"m": {"prices": {"input": 10, "output": 100, "cacheRead": 1}}}}
READ = Reply(tool_calls=[call("Glob", pattern="*")], usage=Usage(10_000, 1_000))
"""20 cents."""
DONE = Reply("Done.", usage=Usage(20_000, 1_000, cache_read_tokens=10_000))
"""21 cents."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


async def agent_with(project: Path, client: ScriptedModel, **options: Any) -> Agent:
    given = {"model": "m", "settings": PRICED, **options}
    return await Agent.create(workdir=project, model_client=client, setting_sources=[], **given)


def notices_of(agent: Agent) -> list[str]:
    blocks = [block for message in agent.messages for block in message.blocks]
    return [block.content for block in blocks if isinstance(block, NoticeBlock)]


async def test_a_prompt_costs_what_its_requests_cost(home: Path) -> None:
    async with await agent_with(home, ScriptedModel([READ, DONE, DONE])) as agent:
        first = await agent.send_message("Look.")
        second = await agent.send_message("Again.")
        assert (agent.cost_usd, agent.saved_usd) == pytest.approx((0.62, 0.18))
        assert agent.usage == Usage(50_000, 3_000, cache_read_tokens=20_000)
    assert (first.cost_usd, second.cost_usd) == pytest.approx((0.41, 0.21))
    assert second.usage == DONE.usage
    recorded = load_session(Path(agent.transcript_path)).used
    assert replace(recorded, cost_usd=0, saved_usd=0) == Used(3, 50_000, 3_000, 20_000)
    assert (recorded.cost_usd, recorded.saved_usd) == pytest.approx((0.62, 0.18))


async def test_a_cost_that_is_not_known_is_not_zero(home: Path) -> None:
    async with await agent_with(home, ScriptedModel([DONE, "No usage."]), settings={}) as agent:
        unpriced = await agent.send_message("Hi.")
    async with await agent_with(home, ScriptedModel(["No usage."])) as agent:
        unreported = await agent.send_message("Hi.")
        assert agent.cost_usd is None
    assert (unpriced.cost_usd, unreported.cost_usd) == (None, None)
    assert unpriced.to_dict()["cost_usd"] is None
    assert load_session(Path(agent.transcript_path)).used.cost_usd is None


async def test_a_model_in_the_table_has_prices_unless_the_settings_say_otherwise(home: Path) -> None:
    for settings, cost in (({}, 0.0295), ({"models": {"gpt-5": {"prices": {"input": 1}}}}, 0.02)):
        model = ScriptedModel([Reply("Hi.", usage=Usage(20_000, 1_000, cache_read_tokens=5_000))])
        async with await agent_with(home, model, model="gpt-5", settings=settings) as agent:
            result = await agent.send_message("Hi.")
        assert result.cost_usd == pytest.approx(cost, abs=0.0003)
        assert agent.context.window == 272_000


async def test_the_summary_of_a_long_conversation_is_paid_for_too(home: Path) -> None:
    summary = Reply("They looked around.", usage=Usage(1_000, 0))
    async with await agent_with(home, ScriptedModel([READ, DONE, summary])) as agent:
        await agent.send_message("Look." * 2000)
        before = agent.cost_usd
        assert await agent.compact()
        assert before is not None
        assert agent.cost_usd == pytest.approx(before + 0.01)


# --------------------------------------------------------------------------------------------------------------- limits


async def test_what_was_used_is_known_by_model_and_for_subagents(home: Path) -> None:
    task = Reply(tool_calls=[call("Task", description="a", prompt="b", subagent_type="explore")], usage=Usage(1000, 10))
    model = ScriptedModel([task, READ, DONE, DONE, Reply("Hi.", usage=Usage(100, 1))])
    async with await agent_with(home, model, max_cost=1.0) as agent:
        await agent.send_message("Look.")
        assert (agent.costs.models.keys(), agent.costs.total.usage) == ({"m"}, agent.usage)
        assert agent.costs.subagents.usage == Usage(30_000, 2_000, cache_read_tokens=10_000)
        assert agent.costs.subagents.dollars == pytest.approx(0.41)
        assert (agent.costs.limit, agent.costs.left) == (1.0, pytest.approx(1 - (0.011 + 0.41 + 0.21)))
    options = {"settings": {"models": {**PRICED["models"], "n": PRICED["models"]["m"]}}, "resume": agent.session_id}
    async with await agent_with(home, model, **options) as agent:
        agent.model_name = "n"
        await agent.send_message("Hi.")
        assert agent.costs.models["n"].usage == Usage(100, 1)
        assert (agent.costs.limit, agent.costs.left) == (None, None)
        assert (agent.used_before.requests, agent.used_before.input_tokens) == (4, 51_000)


def test_what_hooks_and_agents_of_commands_use_is_known_apart() -> None:
    spending = Spending(lambda _: Prices(input=10, output=100))
    child = Spending(lambda _: Prices(input=10, output=100), above=spending)
    for one in (spending, child):
        hook = one.for_hook(lambda _: Prices(input=10, output=100))
        hook.add("small", Usage(1000, 10))
        one.add_for_hook(hook.total)
    costs = spending.costs
    assert costs.models == {}
    assert costs.hooks.usage == costs.total.usage == Usage(hook_tokens=2020)
    assert costs.hooks.dollars == pytest.approx(0.022)
    assert costs.subagents.usage == Usage(hook_tokens=1010)
    assert costs.others == 0


async def test_at_the_limit_no_further_request_is_sent(home: Path) -> None:
    model = ScriptedModel([READ, READ, DONE])
    async with await agent_with(home, model, max_cost=0.3) as agent:
        result = await agent.send_message("Look.")
        again = await agent.send_message("Once more.")
        assert not await agent.compact()
    assert (result.status, result.turns, again.status, again.turns) == ("max_cost", 2, "max_cost", 0)
    assert len(model.requests) == 2
    notices = notices_of(agent)
    assert notices[0] == "Stopped: the limit of $0.30 is reached ($0.40 spent)."
    assert result.messages[1].to_dict()["blocks"][0]["success"]  # the tools of the last answer have run


async def test_a_server_that_reports_no_usage_cannot_evade_the_limit(home: Path) -> None:
    model = ScriptedModel(Reply(tool_calls=[call("Glob", pattern=f"{number}*")]) for number in range(1000))
    async with await agent_with(home, model, max_cost=0.3) as agent:
        result = await agent.send_message("Look.")
    assert result.status == "max_cost"
    assert 2 <= result.turns <= 30
    assert result.usage == Usage()


@pytest.mark.parametrize("options", [{"model": "unknown"}, {"model": None}, {"fallback_model": "unknown"}])
async def test_a_limit_without_prices_is_refused_at_once(home: Path, options: dict[str, Any]) -> None:
    with pytest.raises(
        SettingsError, match=r'"models": \{"\w+": \{"prices": \{"input": 3, "output": 15\}\}\}'
    ) as error:
        await agent_with(home, ScriptedModel([]), max_cost=1, **options)
    name = "NAME" if options.get("model", "") is None else "unknown"
    assert f"Set models.{name}.prices in {os.environ['WAVE_HOME']}/settings.json" in str(error.value)


async def test_with_a_limit_no_model_without_prices_can_be_chosen(home: Path) -> None:
    async with await agent_with(home, ScriptedModel([]), max_cost=1) as agent:
        agent.model_name = "unknown"
        assert agent.model_name == "m"
        agent.model_name = "gpt-5"
        assert agent.model_name == "gpt-5"
    assert "The model stays m, not unknown. " in json.dumps([message.to_dict() for message in agent.messages])


def test_a_cost_that_becomes_unknown_ends_a_limited_session() -> None:
    spending = Spending({"m": Prices(1, 1)}.get, 5)
    spending.add("m", Usage(1, 1))
    assert not spending.is_used_up
    spending.add("other", Usage(1, 1))
    assert spending.is_used_up
    assert spending.why_used_up == "Stopped: the limit of $5.00 is reached (an unknown amount spent)."


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_cost": 0}, "max_cost must be a number of US dollars greater than 0, not 0."),
        ({"max_cost": float("nan")}, "max_cost must be a number of US dollars greater than 0, not nan."),
        ({"max_cost": "1"}, "max_cost must be a number of US dollars, not str '1'."),
        ({"max_output_tokens": 0}, "max_output_tokens must be at least 1, not 0."),
        ({"effort": "extreme"}, '"extreme" is not an effort; expected one of low, medium, high, xhigh, max.'),
        ({"fallback_model": "m"}, "The fallback model must be another one than the model itself, m."),
    ],
)
async def test_wrong_limits_are_refused(tmp_path: Path, options: dict[str, Any], expected: str) -> None:
    with pytest.raises((SettingsError, ArgumentError)) as refused:
        await agent_with(tmp_path, ScriptedModel([]), **options)
    assert str(refused.value) == expected


async def test_effort_and_output_limit_go_with_every_request(home: Path) -> None:
    model = ScriptedModel([READ, DONE])
    async with await agent_with(home, model, effort="low", max_output_tokens=500) as agent:
        await agent.send_message("Look.")
    assert [(one.effort, one.max_output_tokens) for one in model.requests] == [("low", 500)] * 2


async def test_the_settings_can_limit_the_output_of_a_model(home: Path) -> None:
    model = ScriptedModel([DONE])
    async with await agent_with(home, model, settings={"models": {"m": {"maxOutputTokens": 700}}}) as agent:
        await agent.send_message("Look.")
    assert [(one.effort, one.max_output_tokens) for one in model.requests] == [(None, 700)]


# ------------------------------------------------------------------------------------------------------------- fallback


@pytest.mark.parametrize("status", [429, 503, 529])
async def test_another_model_takes_over_for_the_rest_of_the_session(tmp_path: Path, status: int) -> None:
    project = tmp_path / str(status)
    project.mkdir()
    model = ScriptedModel([READ, ModelError("Too busy.", status=status), READ, DONE, DONE])
    async with await agent_with(project, model, fallback_model="gpt-5") as agent:
        result = await agent.send_message("Look.")
        assert agent.model_name == "gpt-5"
        await agent.send_message("Again.")
        agent.model_name = "m"
        assert agent.model_name == "m"
    assert (result.status, result.turns) == ("completed", 3)
    assert [one.model for one in model.requests] == ["m", "m", "gpt-5", "gpt-5", "gpt-5"]
    assert model.requests[2].messages == model.requests[1].messages
    assert result.cost_usd == pytest.approx(0.2 + 0.0225 + 0.02375)
    notices = notices_of(agent)
    assert notices == ["m is overloaded: gpt-5 takes over for the rest of this session. (Too busy.)"]


@pytest.mark.parametrize(
    "reply",
    [
        ModelError("No such model.", status=404),
        Reply("I was saying", error=ModelError("Broken.", status=529)),
    ],
)
async def test_nothing_else_makes_another_model_take_over(tmp_path: Path, reply: Any) -> None:
    async with await agent_with(tmp_path, ScriptedModel([reply]), fallback_model="gpt-5") as agent:
        result = await agent.send_message("Look.")
        assert (result.status, agent.model_name) == ("error", "m")


async def test_a_fallback_that_is_overloaded_too_ends_the_turn(home: Path) -> None:
    model = ScriptedModel([ModelError("Busy.", status=529), ModelError("Busy too.", status=529)])
    async with await agent_with(home, model, fallback_model="gpt-5") as agent:
        result = await agent.send_message("Look.")
    assert (result.status, result.error) == ("error", "Busy too.")
