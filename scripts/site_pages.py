"""What the documentation site does differently from the files in `docs/`. MkDocs calls these functions; see mkdocs.yml.

The pages are written to be read in the repository as well. So links to files outside `docs/` lead to copies of them in
the site, and what follows the language of a code block, which is for the tests, becomes a title (`file=NAME`), another
language (`as=NAME`) or nothing (`picture`). In cells of tables, GitHub wants a `|` escaped even in
code, and MkDocs does not.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent

OUTSIDE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "SECURITY.md": "reporting.md",
    "examples/README.md": "examples/index.md",
    "tests/conformance/README.md": "conformance.md",
    **{
        path.relative_to(ROOT).as_posix(): path.relative_to(ROOT).as_posix()
        for pattern in ("examples/*.py", "examples/*.sh", "schemas/**/*.json")
        for path in ROOT.glob(pattern)
    },
}
"""Files of the repository that the site contains, and their places in it."""

LOOKED_UP_LAST = ("architecture", "changelog", "conformance", "effects/", "messages/", "spec-map", "hosts")
LOOKED_UP_FIRST = ("first-hook", "hooks", "models", "settings", "troubleshooting")
"""What the paths of pages begin with that a search shows after or before others that fit as well."""

_FENCE = re.compile(r"^(?P<fence> *`{3,})(?P<language>\w+) (?P<words>[^`\n]+)$", re.MULTILINE)
_ROW = re.compile(r"^ *\|.*\|$", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"\]\((?P<path>[^)#:\s]+)(?P<anchor>(?:#[^)\s]*)?)\)")


def on_files(files: Files, *, config: Any) -> Files:
    for source, place in OUTSIDE.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    place: str = page.file.src_uri
    boost = 0.5 if place.startswith(LOOKED_UP_LAST) else 2 if place.startswith(LOOKED_UP_FIRST) else 1
    page.meta["search"] = {"boost": boost}
    source = next((source for source, its_place in OUTSIDE.items() if its_place == place), f"docs/{place}")
    markdown = _ROW.sub(lambda row: _CODE.sub(lambda span: span[0].replace("\\|", "|"), row[0]), markdown)
    return _FENCE.sub(_fence, _LINK.sub(lambda link: _link(link, source, place), markdown))


def _fence(fence: re.Match[str]) -> str:
    file = re.search(r"file=(\S+)", fence["words"])
    title = f' title="{file[1]}"' if file else ""
    language = re.search(r"as=(\w+)", fence["words"])
    return fence["fence"] + (language[1] if language else fence["language"]) + title


def _link(link: re.Match[str], source: str, place: str) -> str:
    """A link in the file `source` of the repository, as it has to be at `place` in the site."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link["path"]))
    if target not in OUTSIDE and not target.startswith("docs/"):
        return link[0]  # MkDocs reports it
    goal = OUTSIDE.get(target) or target.removeprefix("docs/")
    return f"]({posixpath.relpath(goal, posixpath.dirname(place) or '.')}{link['anchor']})"
