"""The failures of a request; decides when to retry it, and after how long."""

from collections.abc import Mapping

from msgspec import Struct

RETRIED_STATUSES = frozenset({408, 409, 425, 429, *range(500, 600)})
"""Statuses worth a retry. Any other (400, 401, 403, 404, …) would fail the same way again."""


class BrokenConnectionError(Exception):
    """The other side disconnected, or does not speak HTTP."""


class InvalidRequestError(Exception):
    """The request cannot be sent as HTTP. The text is for the user."""


class RequestFailure(Exception):  # noqa: N818 - becomes a `ModelError` or a `Retry`, never leaves the package
    """A failed attempt. `reason` is a clause for the user."""

    def __init__(
        self,
        reason: str,
        *,
        again: bool,
        advice: str = "",
        status: int | None = None,
        wait: float | None = None,
    ) -> None:
        """`again`: a retry may succeed. `wait`: the number of seconds the server asked for."""
        super().__init__(reason)
        self.reason, self.again, self.advice, self.status, self.wait = reason, again, advice, status, wait


class Backoff(Struct, frozen=True):
    """How often and how long a client retries."""

    attempts: int = 6
    """In total, including the first one."""
    first: float = 0.5
    """Seconds before the first retry; each further wait is twice as long."""
    longest: float = 30
    longest_asked: float = 60
    """The server may ask for more than `longest`, but not more than this."""

    def seconds(self, failures: int, asked: float | None, chance: float) -> float:
        """Seconds to wait after `failures` failed attempts. `chance`, from 0 to 1, adds jitter."""
        if asked:
            return min(asked, self.longest_asked)
        return min(self.longest, self.first * 2 ** (failures - 1)) * (0.75 + chance / 2)


def asked_wait(headers: Mapping[str, str], now: float) -> float | None:
    """The number of seconds the server asks to wait; None if it does not, or if that is unreadable."""
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
