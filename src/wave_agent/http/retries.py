"""When a request is tried again, and after how long."""

from collections.abc import Mapping

from msgspec import Struct

RETRIED_STATUSES = frozenset({408, 409, 425, 429, *range(500, 600)})
"""Another try may go better. All else (400, 401, 403, 404, …) fails the same way each time."""


class RequestFailure(Exception):  # noqa: N818 - becomes a `ModelError` or a `Retry`, never leaves the package
    """An attempt that went wrong: `reason` is a clause for the user."""

    def __init__(
        self,
        reason: str,
        *,
        again: bool,
        advice: str = "",
        status: int | None = None,
        wait: float | None = None,
    ) -> None:
        """`again`: another try may go better. `wait`: the seconds that the server asked for."""
        super().__init__(reason)
        self.reason, self.again, self.advice, self.status, self.wait = reason, again, advice, status, wait


class Backoff(Struct, frozen=True):
    """How patient a model client is."""

    attempts: int = 6
    """In all, the first one included."""
    first: float = 0.5
    """Seconds before the first retry; each further one waits twice as long."""
    longest: float = 30
    longest_asked: float = 60
    """A server may ask for more than `longest`, but not for more than this."""

    def seconds(self, failures: int, asked: float | None, chance: float) -> float:
        """Before the next attempt, after `failures` of them. `chance`, from 0 to 1, keeps clients out of step."""
        if asked:
            return min(asked, self.longest_asked)
        return min(self.longest, self.first * 2 ** (failures - 1)) * (0.75 + chance / 2)


def asked_wait(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that the server asks to wait; None if it does not, or not in a way that can be read."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return _until_date(headers.get("retry-after", ""), now)


def _until_date(value: str, now: float) -> float | None:
    from email.utils import parsedate_to_datetime  # lazy: few servers send a date, and it is not free to import

    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, OverflowError):
        return None
