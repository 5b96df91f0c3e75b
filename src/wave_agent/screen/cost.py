"""Tokens and dollars, as people read them, and what `/cost` says."""

from collections.abc import Iterator

from wave_agent.agent.agent import Agent
from wave_agent.agent.spending import Tally, shown
from wave_agent.models.prices import MILLION
from wave_agent.text import one_line

__all__ = ["cost_lines", "shown", "tokens"]


def tokens(count: int) -> str:
    """`950`, `12.3k`, `1.2M`."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < MILLION else f"{count / MILLION:.1f}M"


def cost_lines(agent: Agent) -> Iterator[str]:
    """What the session has used, what that cost, and what may still be used."""
    costs, usage, context = agent.costs, agent.usage, agent.context
    yield f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out since this session was opened."
    if usage.cache_read_tokens:
        share = usage.cache_read_tokens / max(usage.input_tokens, 1)
        saved = f", which saved {shown(agent.saved_usd)}" if agent.saved_usd > 0 else ""
        yield (
            f"{usage.cache_read_tokens:,} of the tokens in ({share:.0%}) came from the server's prompt cache{saved}."
        )
    if costs.subagents != Tally():
        yield f"Of that, subagents used {_used(costs.subagents)}."
    if usage.hook_tokens:
        hooks = f"{usage.hook_tokens:,} tokens, {_dollars(costs.hooks.dollars)}"
        yield f"Besides that, hooks that ask a model used {hooks}."
    if costs.others is None or costs.others > 0:
        yield f"Agents that commands started: {_dollars(costs.others)}."
    if len(costs.models) > 1:
        yield "By model:"
        for name, tally in sorted(costs.models.items(), key=lambda item: -(item[1].dollars or 0)):
            yield f"  {one_line(name, 40) or '(the server’s default)'}: {_used(tally)}"
    if context.used is not None:
        of = f" of {context.window:,}" if context.window else ""
        yield f"Context window: {context.used:,}{of} tokens."
    dollars, prices = agent.cost_usd, f"models.{agent.model_name or 'NAME'}.prices"
    unknown = f"The cost is unknown: set {prices} in your settings."
    yield f"{shown(dollars)} in total." if dollars is not None else unknown
    if costs.limit is not None:
        left = "how much of it is left is unknown" if costs.left is None else f"{shown(costs.left)} of it left"
        yield f"The limit of this session is {shown(costs.limit)} (--max-cost): {left}."
    if (before := agent.used_before).requests:
        yield (
            f"Before it was resumed: {before.input_tokens:,} tokens in, {before.output_tokens:,} out, "
            f"{before.cache_read_tokens:,} from the cache, {_dollars(before.cost_usd)}."
        )


def _used(tally: Tally) -> str:
    usage = tally.usage
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    return f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out, {_dollars(tally.dollars)}"


def _dollars(dollars: float | None) -> str:
    return "cost unknown" if dollars is None else shown(dollars)
