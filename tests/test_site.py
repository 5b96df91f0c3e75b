"""The documentation site: built without the network, every link leads somewhere, and search works from a file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.replay.browser import Tab, browser, find_browser
from tests.waiting import until

ROOT = Path(__file__).resolve().parent.parent


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


async def found_for(tab: Tab, words: str) -> list[str]:
    tab.evaluate('document.querySelector("input[name=query]").focus()')
    tab.type(words)
    titles = '[...document.querySelectorAll(".md-search-result__item h1")].map(title => title.textContent)'
    await until(lambda: bool(tab.evaluate(titles)))
    return tab.evaluate(titles)


@pytest.mark.skipif(find_browser() is None, reason="no browser; .ci/browser installs one")
async def test_search_works_from_a_file_and_nothing_is_loaded_from_elsewhere(site: Path, tmp_path: Path):
    program = find_browser()
    assert program is not None
    with browser(program, tmp_path) as tab:
        tab.open(site / "first-hook.html")
        assert any("Settings" in title or "Hooks" in title for title in await found_for(tab, "onFailure"))
        assert tab.complaints == []


@pytest.mark.skipif(find_browser() is None, reason="no browser; .ci/browser installs one")
def test_no_page_is_wider_than_a_phone(site: Path, tmp_path: Path):
    program = find_browser()
    assert program is not None
    with browser(program, tmp_path) as tab:
        tab.send("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
        for page in sorted(site.glob("*.html")):
            tab.open(page)
            assert tab.evaluate("document.documentElement.scrollWidth") <= 390, page.name


def test_files_that_the_tests_read_are_shown_with_their_names(site: Path):
    page = (site / "first-hook.html").read_text()
    assert '<span class="filename">.wave/hooks/guard.py</span>' in page
    assert "file=" not in page
