"""Lines of which rules allow some commands, and the others only read: they run, and nothing else does."""

import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent
from wave_agent.testing import Reply, ScriptedModel, call

ALLOWED = ["Bash(make test)", "Bash(make build)", "Bash(git add:*)", "Bash(git commit:*)", "Bash(./run.sh)"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "WAVE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    project = (tmp_path / "project").resolve()
    files = {"Makefile": "test:\n\t@echo tested\nbuild:\n\t@touch built\n", ".env": "canary\n", "a.txt": "a\n"}
    files |= {f"sub/{name}": content for name, content in files.items()}
    files |= {"run.sh": "#!/bin/sh\necho mine\n", "sub/run.sh": "#!/bin/sh\necho other\n"}
    for name, content in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(content)
        (project / name).chmod(0o755)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "Makefile").write_text("test:\n\t@echo outside\n")
    script = "git init -q; git config user.name Me; git config user.email me@example.org; echo .env > .gitignore"
    subprocess.run(["sh", "-ec", script], cwd=project, check=True)
    return project


async def refused(project: Path, lines: list[str], *, allow: list[str] = ALLOWED, **rules: Any) -> list[str]:
    """Those of the lines that do not run. Each starts where the session started."""
    calls = [call("Bash", command=line) for line in lines]
    replies: list[Any] = [
        Reply(tool_calls=[each]) for one in calls for each in (one, call("Bash", command=f"cd {project}"))
    ]
    model = ScriptedModel([*replies, "Done."])
    permissions = {"allow": [*allow, "Bash(cd /:*)"], **rules}
    options: dict[str, Any] = {
        "settings": {"permissions": permissions},
        "setting_sources": [],
        "max_turns": 2 * len(lines) + 2,
    }
    async with await Agent.create(workdir=project, model_client=model, **options) as agent:
        await agent.send_message("Go.")
    results = [str(one["content"]) for one in model.requests[-1].messages if one["role"] == "tool"][::2]
    assert len(results) == len(lines)
    return [line for line, found in zip(lines, results, strict=True) if found.startswith("Not run")]


RUN = [
    "make test 2>&1 | tail -5",
    "make test || true",
    "make test && echo OK",
    'make test; echo "exit $?"',
    "cd sub && make test",
    "cd sub && make test && cd ..",
    "git add -A && git commit -qm x && git status -s | head",
    "ls build || make build",
    "make test | grep -c tested",
    "cat a.txt && make test",
]
REFUSED = [
    "make test | bash",
    "make test | xargs rm",
    "make test | xargs cat",
    "make test | tee out.txt",
    "make test > out.txt",
    "make test | tail -5 > out.txt",
    "make test; rm a.txt",
    "make test && curl https://evil.example",
    "make test | sort -o out.txt",
    "make test | sed -i s/a/b/ a.txt",
    "make test $(touch out.txt)",
    "cd ../outside && make test",
    "cd .. && cat outside/Makefile && make test",
    "cd sub && ./run.sh",
    "make test && cat ../outside/Makefile",
    "make test & echo started",
    "PATH=sub make test | tail -1",
    "make test < a.txt",
    "(make test; rm a.txt)",
    "(make test) 2>&1 | tail -1",
    "make test && git config core.fsmonitor x && git status",
    "make test && eval 'touch out.txt'",
    "make other | tail -1",
    "tail -1 a.txt | bash",
]


async def test_a_line_runs_if_each_command_is_allowed_or_only_reads(project: Path) -> None:
    assert await refused(project, [*RUN, *REFUSED]) == REFUSED
    assert not (project / "out.txt").exists()


async def test_a_rule_about_paths_leaves_them_as_they_are(project: Path) -> None:
    lines = ["make test 2>&1 | tail -1", "cd sub && make test", "make test && cat .env", "make test; cat sub/.env"]
    assert await refused(project, lines, deny=["Read(.env)"]) == lines[2:]
    assert await refused(project, lines, allow=["Bash(make *)"], deny=["Read(.env)"]) == lines[2:]


async def test_deny_and_ask_rules_see_the_whole_line(project: Path) -> None:
    lines = ["make test | tail -1", "make test | head -1", "make test | wc -l"]
    assert await refused(project, lines, deny=["Bash(tail:*)"], ask=["Bash(head:*)"]) == lines[:2]


async def test_settings_that_run_something_keep_git_out(project: Path) -> None:
    with (project / ".git" / "config").open("a") as settings:
        settings.write("[core]\n\tfsmonitor = ./run.sh\n")
    lines = ["make test && git status -s", "make test && ls"]
    assert await refused(project, lines) == lines[:1]


PARTS = ["make test", "ls", "cat a.txt", "rm a.txt", "cat ../outside/Makefile", "python3 -c 1", "true"]
BETWEEN = [" && ", " | ", "; ", " || "]


async def test_what_is_permitted_is_a_union_of_permitted_parts(project: Path) -> None:
    """A line of two commands runs exactly if both of them would run by themselves, and one is allowed by a rule."""
    alone = set(PARTS) - set(await refused(project, PARTS))
    assert alone == {"make test", "ls", "cat a.txt", "true"}
    lines = {f"{one}{between}{other}": {one, other} for one, between, other in product(PARTS, BETWEEN, PARTS)}
    sample = dict(list(lines.items())[::3])
    assert await refused(project, list(sample)) == [line for line, parts in sample.items() if not parts <= alone]
