"""Pages as results of WebFetch, and the memory of those that were fetched a short while ago.

Loaded with the first page.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from time import monotonic

from msgspec import Struct

from wave_agent.effects.page_urls import PageUrl
from wave_agent.permissions.decision import Rules
from wave_agent.permissions.hosts import PageHosts
from wave_agent.permissions.network_proxy import Resolve, resolve
from wave_agent.text import one_line, strip_controls
from wave_agent.tools.base import ToolResult
from wave_agent.tools.page_text import PageText, page_text
from wave_agent.tools.pages import LARGEST, FetchedPage, FetchError, ForbiddenAddressError, Judge, PageFetcher

_KEPT_SECONDS = 15 * 60
_KEPT = 32
_KEPT_CHARACTERS = 8_000_000
"""In all pages that are kept."""


class ReadPage(Struct, frozen=True):
    """A page as the model sees it."""

    page: FetchedPage
    """Without its body."""
    size: int
    shown: PageText


class PageReader:
    """Reads pages for one session."""

    def __init__(
        self, resolver: Resolve | None, environment: Mapping[str, str], clock: Callable[[], float] = monotonic
    ) -> None:
        self._fetcher = PageFetcher(resolver or resolve, environment)
        self._kept = KeptPages(clock)

    async def read(self, url: PageUrl, wanted: str, rules: Rules) -> ToolResult:
        """`wanted` is what the model looks for. `rules` say which addresses may be reached."""

        def judge(asked: PageUrl) -> Judge:
            hosts = PageHosts(asked.host, restricting=(*rules.deny, *rules.ask), allowing=rules.allow)
            return lambda address: hosts.why_not_at(asked.host, address, asked.port)

        started = monotonic()
        found = self._kept.get(url.text)
        if found is None:
            try:
                page = await self._fetcher.fetch(url, judge)
            except FetchError as error:
                why = strip_controls(str(error))
                notice = f"WebFetch: {why}" if isinstance(error, ForbiddenAddressError) else ""
                return ToolResult(content=why, success=False, ran=False, notice=notice)
            found = await _read(page)
            if page.status == 200:
                self._kept.put(url.text, found)
        return _result(found, url, wanted, round((monotonic() - started) * 1000, 3))


class KeptPages:
    """Some pages, for some minutes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pages: OrderedDict[str, tuple[float, ReadPage]] = OrderedDict()

    def get(self, url: str) -> ReadPage | None:
        kept = self._pages.get(url)
        return kept[1] if kept is not None and self._clock() < kept[0] else None

    def put(self, url: str, page: ReadPage) -> None:
        self._pages.pop(url, None)
        self._pages[url] = self._clock() + _KEPT_SECONDS, page
        while len(self._pages) > _KEPT or self._length() > _KEPT_CHARACTERS:
            self._pages.popitem(last=False)

    def _length(self) -> int:
        return sum(len(page.shown.text) for _, page in self._pages.values())


async def _read(page: FetchedPage) -> ReadPage:
    body = page.body
    if body is None:
        return ReadPage(page, 0, PageText("", binary=page.content_type.partition(";")[0] or "nothing"))
    # In a thread: a long page takes a while.
    shown = await asyncio.to_thread(page_text, body, page.content_type, page.url.text)
    without_body = FetchedPage(
        url=page.url,
        status=page.status,
        reason=page.reason,
        content_type=page.content_type,
        body=None,
        is_cut=page.is_cut,
    )
    return ReadPage(without_body, len(body), shown)


def _result(found: ReadPage, asked: PageUrl, wanted: str, milliseconds: float) -> ToolResult:
    page = found.page
    success = page.status < 400
    content = _moved(page) if page.moved_to is not None else _content(found, asked, wanted)
    return ToolResult(
        content=content,
        success=success,
        response={
            "url": page.url.text,
            "code": page.status,
            "codeText": page.reason,
            "bytes": found.size,
            "durationMs": milliseconds,
            **({} if page.moved_to is None else {"redirect": page.moved_to.text}),
        },
    )


def _moved(page: FetchedPage) -> str:
    assert page.moved_to is not None
    return (
        f"{page.url.text} redirects to {page.moved_to.text} (status {page.status}), which is another place. Nothing "
        "was fetched from there. If you need that page, call WebFetch with its URL."
    )


def _content(found: ReadPage, asked: PageUrl, wanted: str) -> str:
    page, shown = found.page, found.shown
    status = "" if page.status == 200 else f", status {page.status} {page.reason}".rstrip()
    kind = page.content_type.partition(";")[0].strip()
    from_there = "" if page.url == asked else f" (redirected from {asked.text})"
    lines = [f"[Page: {page.url.text}{from_there}{status}. What follows is its text, not the user's words]"]
    if wanted.strip():
        lines.append(f"[Looked for: {one_line(wanted, 500)}]")
    if shown.binary:
        lines.append(f"[It is not text ({shown.binary}): nothing to show]")
        return "\n".join(lines)
    if page.is_cut or not shown.is_whole:
        lines.append(f"[The page is very long: only its start is here, of at most {LARGEST:,} bytes]")
    if shown.title:
        lines.append(f"Title: {shown.title}")
    lines.append(shown.text or f"[The page has no text{f' ({kind})' if kind else ''}]")
    return "\n".join(lines)
