"""What a session has used and asked for, what that cost, and whether it may go on."""

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from wave_agent.agent.shared_budget import NOT_SHARED, SharedBudget
from wave_agent.errors import SettingsError
from wave_agent.models.base import Usage
from wave_agent.models.prices import Prices


def shown(dollars: float) -> str:
    return f"${dollars:.2f}" if dollars >= 0.1 else f"${dollars:.4f}"


def requests_in_words(number: int) -> str:
    return "1 model request" if number == 1 else f"{number} model requests"


class Tally(Struct, frozen=True):
    """Requests and what they cost."""

    usage: Usage = Usage()
    dollars: float | None = 0.0
    """None: some of it was used by a model whose prices are unknown."""
    saved: float = 0.0
    """US dollars that the server's cache saved."""

    def __add__(self, other: "Tally") -> "Tally":
        dollars = None if self.dollars is None or other.dollars is None else self.dollars + other.dollars
        return Tally(self.usage + other.usage, dollars, self.saved + other.saved)


class Costs(Struct, frozen=True, kw_only=True):
    """What a session has used, in parts. Everything but `earlier` since it was opened."""

    total: Tally
    models: Mapping[str, Tally] = {}
    """Of each model; hooks are not part of this."""
    subagents: Tally = Tally()
    """The part of the total that subagents used."""
    hooks: Tally = Tally()
    """What hooks used that asked a model: tokens apart from the others, dollars as part of the total."""
    others: float | None = 0.0
    """US dollars that agents spent which commands have started; part of the total."""
    limit: float | None = None
    """US dollars that the session may cost."""
    left: float | None = None
    """What is left of the limit. None: there is none, or what was spent is unknown."""


class Spending:
    """The tallies of a session: in total, and of the current turn."""

    def __init__(
        self,
        prices: Callable[[str], Prices | None],
        limit: float | None = None,
        above: "Spending | None" = None,
        shared: SharedBudget = NOT_SHARED,
    ) -> None:
        """`prices` returns those of a model, if known. `limit` is in US dollars. What a subagent uses is part of what
        the agent `above` uses, whose limit applies; `shared` is for agents in other processes."""
        self._prices = prices
        self._shared = shared
        self.limit = limit if above is None else above.limit
        self._above = above
        self.total = Tally()
        self.turn = Tally()
        self._models: dict[str, Tally] = {}
        self._subagents = Tally()
        self._hooks = Tally()
        self._others: float | None = 0.0

    @property
    def costs(self) -> Costs:
        self.refresh()
        left = None
        if self.limit is not None and self.total.dollars is not None:
            left = max(0.0, self.limit - self.total.dollars)
        return Costs(
            total=self.total,
            models=dict(self._models),
            subagents=self._subagents,
            hooks=self._hooks,
            others=self._others,
            limit=self.limit,
            left=left,
        )

    def begin_turn(self) -> None:
        self.refresh()
        self.turn = Tally()

    def refresh(self) -> None:
        """Count what agents that commands have started spent since."""
        tally = Tally(Usage(), self._shared.take_dollars())
        self._others = None if self._others is None or tally.dollars is None else self._others + tally.dollars
        self.total += tally
        self.turn += tally

    def add(self, model: str, usage: Usage) -> None:
        """Counts one request."""
        self._count(Tally(usage, *self._costs(model, usage)), model)

    def add_unreported(self, model: str, estimate: Callable[[], Usage]) -> None:
        """Counts a request for which the server reported no usage. Its cost is unknown; with a limit it is estimated,
        since the limit must end a session with such a server too."""
        self._count(Tally(Usage(), *((None, 0.0) if self.limit is None else self._costs(model, estimate()))), model)

    def add_for_hook(self, used: Tally) -> None:
        """Counts requests that a hook made: apart from the session's own, but towards the limit."""
        tokens = used.usage.input_tokens + used.usage.output_tokens
        tally = Tally(Usage(hook_tokens=tokens), used.dollars, used.saved)
        self._hooks += tally
        self._count(tally)

    def for_hook(self, prices: Callable[[str], Prices | None]) -> "Spending":
        """For the requests of one hook, which may cost what is left."""
        left = None if self.limit is None else max(0.0, self.limit - (self.total.dollars or 0.0))
        return Spending(prices, left)

    def _costs(self, model: str, usage: Usage) -> tuple[float | None, float]:
        prices = self._prices(model)
        return (None, 0.0) if prices is None else (prices.cost(usage), prices.saved(usage))

    def _count(self, tally: Tally, model: str | None = None, *, below: bool = False) -> None:
        self.total += tally
        self.turn += tally
        if model is not None:
            self._models[model] = self._models.get(model, Tally()) + tally
        elif below:  # a hook in a subagent
            self._hooks += tally
        if below:
            self._subagents += tally
        if self._above is not None:
            self._above._count(tally, model, below=True)
        self._shared.add(dollars=tally.dollars)

    @property
    def is_used_up(self) -> bool:
        """No further request may be sent."""
        if self._above is not None:
            return self._above.is_used_up
        self.refresh()
        if self._shared.cost_used_up is not None:
            return True
        return self.limit is not None and (self.total.dollars is None or self.total.dollars >= self.limit)

    @property
    def why_used_up(self) -> str:
        if self._above is not None:
            return self._above.why_used_up
        if (limit := self._shared.cost_used_up) is not None:
            return f"Stopped: the limit of {shown(limit)} of the agent that started this one is reached."
        spent = "an unknown amount" if self.total.dollars is None else shown(self.total.dollars)
        return f"Stopped: the limit of {shown(self.limit or 0)} is reached ({spent} spent)."

    def require_prices(self, model: str, home: Path) -> None:
        """Raises `SettingsError` if there is a limit, and the model's prices are unknown. `home` has the settings."""
        if self.limit is not None and self._prices(model) is None:
            name = model or "NAME"
            raise SettingsError(
                f"A limit on the cost needs the prices of {model or 'the model'}, which are unknown. Set "
                f"models.{name}.prices in {home / 'settings.json'}, in US dollars per million tokens: "
                f'"models": {{"{name}": {{"prices": {{"input": 3, "output": 15}}}}}}.'
            )


class RequestCount:
    """The model requests of the current prompt. Those of a subagent are part of those of the agent above."""

    def __init__(
        self,
        limit: int | None = None,
        above: "RequestCount | None" = None,
        shared: SharedBudget = NOT_SHARED,
    ) -> None:
        """`shared` is for agents in other processes."""
        self.limit = limit
        self._shared = shared
        self._above = above
        self.made = 0

    def begin_turn(self) -> None:
        self.made = 0
        self._shared.begin_prompt()

    def refresh(self) -> None:
        """Count the requests that agents which commands have started made since."""
        self.made += self._shared.take_requests()

    def add(self, requests: int = 1) -> None:
        """Negative: a request is repeated in another form."""
        self.made += requests
        if self._above is not None:
            self._above.add(requests)
        self._shared.add(requests=requests)

    @property
    def exhausted(self) -> int | None:
        """The limit that no further request fits into."""
        self.refresh()
        if (shared := self._shared.turns_used_up) is not None:
            return shared
        if self.limit is not None and self.made >= self.limit:
            return self.limit
        return None if self._above is None else self._above.exhausted
