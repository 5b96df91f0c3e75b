"""How many requests a prompt has taken, and how many it may take."""


class RequestCount:
    """The model requests of the current prompt. Those of a subagent are part of those of the agent above."""

    def __init__(self, limit: int | None = None, above: "RequestCount | None" = None) -> None:
        self.limit = limit
        self._above = above
        self.made = 0

    def begin_turn(self) -> None:
        self.made = 0

    def add(self, requests: int = 1) -> None:
        """Negative: a request is repeated in another form."""
        self.made += requests
        if self._above is not None:
            self._above.add(requests)

    @property
    def exhausted(self) -> int | None:
        """The limit that no further request fits into."""
        if self.limit is not None and self.made >= self.limit:
            return self.limit
        return None if self._above is None else self._above.exhausted
