"""Rules about pages: whether a pattern, which is a host, matches the URL of a call to WebFetch."""

from wave_agent.effects.page_urls import page_host
from wave_agent.effects.values import ANY_HOST
from wave_agent.rules.touched import covers_host, host_matches


def page_matches(pattern: str | None, url: object, *, restricts: bool) -> bool:
    """`pattern` None: any host. A URL whose host cannot be told is restricted by every rule and permitted by none.

    Only a restriction means other names of this machine as well: see `host_matches`.
    """
    host = page_host(url)
    if host == ANY_HOST:
        return restricts
    if pattern is None:
        return True
    return host_matches(pattern, host) if restricts else covers_host(pattern, host)


def page_rules(url: object) -> tuple[str, ...]:
    """Rules that permit this page and others of its host; none if the host cannot be told."""
    host = page_host(url)
    return () if host == ANY_HOST else (f"WebFetch(domain:{host})",)
