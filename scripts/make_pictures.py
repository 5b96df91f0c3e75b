"""Draws the pictures for the documentation: the real screen, a scripted model, real hooks. `make pictures` runs it.

`make pictures ARGS="demo"` makes only those that are named. `demo` is a recording that also ships with the package.
"""

import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for the stage used by the screen's tests

from animated_svg import animated_svg  # noqa: E402
from record_demo import record  # noqa: E402

from tests.screen.stage import Stage, stage  # noqa: E402
from wave_agent.models.base import Usage  # noqa: E402
from wave_agent.screen.hooks_view import HooksView  # noqa: E402
from wave_agent.screen.permission import PermissionDialog  # noqa: E402
from wave_agent.screen.trust import TrustQuestion  # noqa: E402
from wave_agent.testing import Reply, call  # noqa: E402

IMAGES = ROOT / "docs" / "images"
RECORDING = ROOT / "src" / "wave_agent" / "cli" / "recording.json"
SIZE = (96, 28)
SETTINGS: dict[str, Any] = {
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "./no-rm-rf.sh", "onFailure": "block"}]}
        ],
        "PostToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "./format.sh"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "./tests-pass.sh", "timeout": 300}]}],
    }
}
GUARD = """#!/bin/bash
grep -q 'rm -rf' || exit 0
echo "rm -rf is not allowed here. Say what should be deleted, and the user will do it." >&2
exit 2
"""
CODE = "def parse(text):\n    return text.split(' ')\n"
MODEL = {"models": {"qwen3-coder": {"contextWindow": 65536}}}


def set_up(project: Path) -> None:
    (project / ".wave").mkdir(parents=True)
    (project / ".wave" / "settings.json").write_text(json.dumps(SETTINGS, indent=2))
    (project / "parser.py").write_text(CODE)
    for name, text in (("no-rm-rf.sh", GUARD), ("format.sh", "#!/bin/bash\n"), ("tests-pass.sh", "#!/bin/bash\n")):
        (project / name).write_text(text)
        (project / name).chmod(0o755)


def opened(project: Path, replies: list[Any] | None = None, **options: Any) -> AbstractAsyncContextManager[Stage]:
    return stage(project, replies or [], size=SIZE, model="qwen3-coder", overlays=(MODEL,), **options)


async def conversation(project: Path) -> str:
    replies = [
        Reply(
            "The parser splits at **every** blank, so two blanks make an empty word:\n\n```python\n"
            '>>> parse("a  b")\n["a", "", "b"]\n```\n\nI will look at the tests and clear the old build.',
            tool_calls=[call("Bash", command="wc -l parser.py"), call("Bash", command="rm -rf build")],
            reasoning="Two blanks in a row.\nsplit() without an argument joins them.",
            usage=Usage(5210, 300),
        ),
        Reply("I left `build` alone: please delete it yourself.", usage=Usage(6300, 40)),
    ]
    async with opened(project, replies, permission_mode="bypassPermissions") as on:
        on.agent.permission_mode = "acceptEdits"
        on.agent.allow("Bash(wc:*)")
        await on.say("Why does parse give empty words?")
        return picture(on)


async def question(project: Path) -> str:
    edit = call("Edit", file_path="parser.py", old_string="text.split(' ')", new_string="text.split()")
    replies = [
        Reply(tool_calls=[call("Read", file_path="parser.py")]),
        Reply("One call does it.", tool_calls=[edit], usage=Usage(5100, 90)),
    ]
    async with opened(project, replies) as on:
        await on.send("Fix it.")
        await on.until(lambda: on.asks(PermissionDialog) is not None)
        drawn = picture(on)
        await on.press("escape")
        await on.idle()
        return drawn


async def hooks(project: Path) -> str:
    async with opened(project) as on:
        await on.send("/hooks")
        await on.until(lambda: isinstance(on.app.screen, HooksView))
        return picture(on)


async def trust(project: Path) -> str:
    async with opened(project, trust=False, wait_for_agent=False) as on:
        await on.until(lambda: on.asks(TrustQuestion) is not None)
        drawn = picture(on)
        await on.press("escape")
        return drawn


async def demo(project: Path) -> str:
    recording = await record(project.parent / "project")
    RECORDING.write_text(recording.to_json())
    return animated_svg(recording)


def picture(on: Stage) -> str:
    """Without the parts that differ between runs."""
    svg = on.app.export_screenshot(title="wave")
    svg = re.sub(r"terminal-\d+", "terminal", svg)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # a picture must not fetch anything
    return svg.replace(on.app.open_agent.session_id[:8], "1f0c2d3e") if on.app.open_agent else svg


PICTURES: dict[str, Callable[[Path], Coroutine[Any, Any, str]]] = {
    one.__name__: one for one in (conversation, question, hooks, trust, demo)
}


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        draw = PICTURES[name]
        with tempfile.TemporaryDirectory() as directory:
            home = Path(directory).resolve()
            os.environ |= {"HOME": str(home), "WAVE_HOME": str(home / ".wave")}
            project = home / "my-project"
            set_up(project)
            svg = asyncio.run(draw(project)).replace(str(home), "~")
        (IMAGES / f"{name}.svg").write_text(svg)
        print(f"docs/images/{name}.svg")


if __name__ == "__main__":
    main()
