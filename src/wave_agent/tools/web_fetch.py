"""WebFetch: the text of a page."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta, Struct

from wave_agent.permissions.decision import ToolKind
from wave_agent.tools.base import Tool, ToolContext, ToolInputError, ToolResult

if TYPE_CHECKING:  # loaded with the first page
    from wave_agent.effects.page_urls import PageUrl
    from wave_agent.permissions.network_proxy import Resolve
    from wave_agent.tools.fetched_pages import PageReader


class WebFetchInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: Annotated[str, Meta(min_length=1)]
    prompt: Annotated[str, Meta(description="What you look for.")] = ""


class WebFetch(Tool):
    name: ClassVar[str] = "WebFetch"
    description: ClassVar[str] = (
        "Returns the text of a web page, as Markdown. A redirect to another host is reported, not followed."
    )
    kind: ClassVar[ToolKind] = ToolKind.FETCHES
    dispensable: ClassVar[bool] = True
    notes_changes: ClassVar[bool] = True
    Input: ClassVar[type[Struct]] = WebFetchInput

    def __init__(self, resolve: "Resolve | None" = None, clock: Callable[[], float] = time.monotonic) -> None:
        """`resolve` finds the addresses of a host, if not the system."""
        self._resolve = resolve
        self._clock = clock
        self._reader: PageReader | None = None

    def parse(self, tool_input: Mapping[str, Any]) -> Any:
        call: WebFetchInput = super().parse(tool_input)
        _page_url(call.url)
        return call

    def why_impossible(self, tool_input: Mapping[str, Any], context: ToolContext) -> str | None:
        if context.sandbox is None:
            return None
        url = _page_url(str(tool_input.get("url")))
        why = context.sandbox.why_unreachable(url.host, url.port)
        return None if why is None else f"{url.host} must not be reached: {why}."

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        call: WebFetchInput = arguments
        if self._reader is None:
            from wave_agent.tools.fetched_pages import PageReader  # lazy: many sessions fetch no page

            self._reader = PageReader(self._resolve, context.environment, self._clock)
        return await self._reader.read(_page_url(call.url), call.prompt, context.rules())


def _page_url(text: str) -> "PageUrl":
    """The URL that is asked for. Raises `ToolInputError`."""
    # lazy: many sessions fetch no page
    from wave_agent.effects.page_urls import PageUrlError, parse_page_url, secured

    try:
        url = parse_page_url(text)
    except PageUrlError as error:
        raise ToolInputError(f"WebFetch: invalid input: {error} - at `$.url`") from None
    if url.has_user:
        raise ToolInputError("WebFetch: a URL must not contain a user name or a password - at `$.url`")
    return secured(url)
