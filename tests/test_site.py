"""The documentation site: built without the network, every link leads somewhere, and search works from a file."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.replay.browser import Tab, browser, find_browser
from tests.waiting import until

ROOT = Path(__file__).resolve().parent.parent

PAGE = """
(() => {
  const links = [...document.querySelectorAll("a[href], img[src], link[rel=stylesheet], script[src]")];
  return {
    links: links.map(one => one.href || one.src).filter(Boolean),
    ids: [...document.querySelectorAll("[id]")].map(one => one.id),
  };
})()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built strictly: a dead link, a dead anchor or a page that no menu leads to is an error."""
    place = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", place],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stderr) == (0, ""), built.stdout + built.stderr
    return place


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[Tab]:
    program = find_browser()
    if program is None:
        pytest.skip("no browser; .ci/browser installs one")
    with browser(program, tmp_path) as opened:
        yield opened


def pages_of(site: Path) -> list[Path]:
    return [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]


async def found_for(tab: Tab, words: str) -> list[str]:
    """The titles of the pages that a search finds, the best first."""
    tab.evaluate('document.querySelector("input[name=query]").focus()')
    tab.type(words)
    titles = '[...document.querySelectorAll(".md-search-result__item h1")].map(title => title.textContent)'

    def are_there() -> bool:
        tab.send("Input.dispatchKeyEvent", type="keyUp", key="Shift")  # a key ends the wait for more of them
        return bool(tab.evaluate(titles))

    await until(are_there)
    return tab.evaluate(titles)


async def test_search_works_from_a_file_and_nothing_is_loaded_from_elsewhere(site: Path, tab: Tab):
    tab.open(site / "first-hook.html")
    found = await found_for(tab, "onFailure")
    assert "Configuring hooks" in found[:3]
    assert not any(title.startswith(("Messages", "Modules")) for title in found[:3])
    assert tab.complaints == []


@pytest.mark.parametrize(
    ("message", "page"),
    [
        ("wave: This project has hooks that are not trusted:", "Troubleshooting and FAQ"),
        ("not available: --sandbox needs bwrap, which was not found.", "The sandbox"),
        ("Error: Not interactive: rerun with --base-url and --model and --yes.", "Messages of commands"),
        ("The session 4f4bde8a-2ad3 is open already; close it first.", "Messages in editors"),
        ('There is no recipe "ci"; available: approve-safe, audit-log', "Messages of wave hooks"),
        ("wave: The current directory no longer exists.", "Messages of the agent and the SDK"),
        ("Could not connect to http://127.0.0.1:9/v1 (connection refused).", "Troubleshooting and FAQ"),
    ],
)
async def test_a_pasted_message_is_found_on_the_page_that_says_what_to_do(
    site: Path, tab: Tab, message: str, page: str
):
    tab.open(site / "index.html")
    assert page in (await found_for(tab, message))[:3]


def test_no_page_is_wider_than_a_phone(site: Path, tab: Tab):
    tab.send("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
    for page in pages_of(site):
        tab.open(page)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390, page.name


def test_no_link_of_any_page_is_broken(site: Path, tab: Tab):
    """In the browser: what the pages link to when their scripts have run."""
    links: dict[tuple[Path, str], Path] = {}
    ids: dict[Path, set[str]] = {}
    for page in pages_of(site):
        tab.open(page)
        seen = tab.evaluate(PAGE)
        ids[page] = set(seen["ids"])
        for link in seen["links"]:
            url = urlsplit(link)
            if url.scheme == "file":
                links[Path(unquote(url.path)), unquote(url.fragment)] = page
    broken = [
        f"{page.relative_to(site)}: {target}#{anchor}"
        for (target, anchor), page in links.items()
        if not target.is_file() or (anchor and target in ids and anchor not in ids[target])
    ]
    assert broken == []
    assert len(links) > 500
    assert tab.complaints == []


@pytest.mark.parametrize(("scheme", "brightness"), [("light", range(200, 256)), ("dark", range(80))])
def test_pages_have_the_colours_of_the_system(site: Path, tab: Tab, scheme: str, brightness: range):
    tab.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    tab.open(site / "hooks.html")
    colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert all(int(part) in brightness for part in re.findall(r"\d+", colour)[:3]), colour


async def test_of_a_terminal_only_the_commands_are_copied(site: Path, tab: Tab):
    tab.open(site / "first-hook.html")
    tab.evaluate('window.copied = ""; addEventListener("copy", event => { copied = event.target.value; }, true)')
    tab.click("pre:has(.gp) button")
    await until(lambda: bool(tab.evaluate("copied")))
    assert tab.evaluate("copied") == "wave hooks list"


def test_files_that_the_tests_read_are_shown_with_their_names(site: Path):
    page = (site / "first-hook.html").read_text()
    assert '<span class="filename">.wave/hooks/guard.py</span>' in page
    assert "file=" not in page


def test_signatures_are_code_and_types_have_no_backslashes(site: Path):
    page = (site / "reference" / "python" / "agent.html").read_text()
    assert '<span class="k">async</span>' in page
    assert "Result | None" in page
    assert "\\|" not in page
