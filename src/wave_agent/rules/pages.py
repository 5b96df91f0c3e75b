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
    """Rules that permit this page and others of its host; none if the host cannot be told. A page of this machine or
    its network has to be permitted by its address as well, which `Net` does."""
    host = page_host(url)
    if host == ANY_HOST:
        return ()
    return (f"Net({host})",) if _is_private(host) else (f"WebFetch(domain:{host})",)


def _is_private(host: str) -> bool:
    from ipaddress import ip_address  # lazy: few sessions fetch a page

    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return not ip_address(host).is_global
    except ValueError:  # a name, which may lead anywhere
        return False
