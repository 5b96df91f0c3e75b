"""The guard in docs/hooks/input.md keeps what it promises."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent
from wave_agent.testing import Reply, ScriptedModel, call

DOCS = Path(__file__).parents[2] / "docs" / "hooks" / "input.md"
READ = [
    call("Read", file_path=".env"),
    call("Grep", pattern="TOKEN"),
    *(
        call("Bash", command=line)
        for line in (
            "base64 < .env",
            "grep -rn x .",
            "cat sub/.env",
            "rg -uu x",
            "tar cf - .",
            "bash show.sh",
            "cat .e*",
        )
    ),
]
OTHER = [
    call("Read", file_path="a.txt"),
    call("Grep", pattern="x", path="sub"),
    *(call("Bash", command=line) for line in ("cat a.txt", "grep -rn x sub", "ls -a", "cat *.txt", "git log")),
]


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
async def test_the_guard_in_the_docs_stops_whatever_reads_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    project = (tmp_path / "project").resolve()
    guard = DOCS.read_text().partition("```bash file=keep-env.sh\n")[2].partition("```")[0]
    files = {".env": "TOKEN=1\n", "a.txt": "x\n", "sub/b.txt": "x\n", "show.sh": "cat .env\n", "keep-env.sh": guard}
    for name, content in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(content)
    (project / "keep-env.sh").chmod(0o755)
    model = ScriptedModel([Reply(tool_calls=[*READ, *OTHER]), "Done."])
    hooks: Any = {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "./keep-env.sh"}]}]}
    options: Any = {"hooks": hooks, "setting_sources": [], "permission_mode": "bypassPermissions"}
    async with await Agent.create(workdir=project, model_client=model, **options) as agent:
        await agent.send_message("Go.")
    found = [str(one["content"]) for one in model.requests[-1].messages if one["role"] == "tool"]
    assert ["off limits" in one for one in found] == [True] * len(READ) + [False] * len(OTHER), found
