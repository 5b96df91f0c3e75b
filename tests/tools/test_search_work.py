"""How much a search does: it stops when its answer is full, and there are never many at once."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.tools.session import Session
from tests.tools.trees import write
from wave_agent.system.cores import cores
from wave_agent.system.real_files import look
from wave_agent.tools.registry import find_tool
from wave_agent.tools.search.walk import FileRun, Walk

COUNTING = """
import json, sys
seen = {"open": 0, "os.scandir": 0}
def count(event, arguments):
    if event in seen:
        seen[event] += 1
from wave_agent.tools.search.program import search
request = json.loads(sys.argv[1])
search({**request, "head_limit": 1})  # what is imported late
sys.addaudithook(count)
answer = search(request)
print(json.dumps([len(answer["lines"]), seen["open"], seen["os.scandir"]]))
"""


def counted(project: Path, rg: str | None = None, **wanted: object) -> tuple[int, int, int]:
    """Of one search: lines shown, files opened, directories read."""
    found = look(str(project))
    request = {
        "kind": "grep", "path": str(project), "real": found.real, "identity": found.file, "unread": (), "rg": rg,
        "project": str(project), "cwd": str(project), "pattern": "word", "glob": "", "ignore_case": False,
        "output_mode": "files_with_matches", "numbers": True, "after": 0, "before": 0, "head_limit": 250,
        "characters": 30_000, "size": 120_000, "multiline": False, **wanted,
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", COUNTING, json.dumps(request)], capture_output=True, check=True)
    lines, opened, directories = json.loads(done.stdout)
    return lines, opened, directories


def tree(project: Path) -> None:
    """400 files with `word`, the last one also with `rare`."""
    write(project, {f"{number // 10:02}/{number % 10}": "word\n" for number in range(400)})
    write(project, {"39/9": "word rare\n"})


def test_a_search_opens_no_more_files_than_its_answer_needs(tmp_path: Path) -> None:
    tree(tmp_path)
    lines, opened, directories = counted(tmp_path, head_limit=20)
    assert lines == 20
    assert opened == 21  # one more, to know that there are more
    assert directories <= 32  # of 41: batches are read ahead
    assert counted(tmp_path, pattern="rare")[0] == 1


def stand_in(tmp_path: Path, body: str) -> tuple[str, Callable[[], list[str]]]:
    """A program to use as rg, and its command lines."""
    program, log = tmp_path / "rg", tmp_path / "log"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{log}\n{body}\n')
    program.chmod(0o755)
    return str(program), lambda: log.read_text().splitlines() if log.exists() else []


def test_rg_is_not_started_for_a_word_that_is_in_most_files(tmp_path: Path) -> None:
    tree(project := tmp_path / "project")
    rg, command_lines = stand_in(tmp_path, "exit 1")
    assert counted(project, rg)[0] == 250
    assert command_lines() == []


def test_rg_gets_whole_directories_and_python_opens_only_what_it_names(tmp_path: Path) -> None:
    tree(project := tmp_path / "project")
    rg, command_lines = stand_in(tmp_path, r"printf './39/9\0./not/ours\0'")
    lines, opened, _ = counted(project, rg, pattern="rare")
    assert lines == 1
    assert opened < 320
    assert all(
        line.endswith("-- ./30/ ./31/ ./32/ ./33/ ./34/ ./35/ ./36/ ./37/ ./38/ ./39/") for line in command_lines()
    )


def test_an_rg_that_fails_leaves_everything_to_python(tmp_path: Path) -> None:
    tree(project := tmp_path / "project")
    rg, command_lines = stand_in(tmp_path, "exit 2")
    assert counted(project, rg, pattern="rare")[0] == 1
    assert command_lines()
    assert counted(project, str(tmp_path / "none"), pattern="rare")[0] == 1


def test_a_file_with_a_long_list_of_matches_is_read_to_the_limit_only(tmp_path: Path) -> None:
    write(tmp_path, {"a": "word\n" * 1000})
    assert counted(tmp_path, output_mode="content", head_limit=7)[0] == 7
    assert counted(tmp_path, output_mode="content", head_limit=0)[0] == 1000


def test_files_come_in_the_order_of_their_paths_and_directories_are_read_late(tmp_path: Path) -> None:
    write(tmp_path, dict.fromkeys(("a.b", "a/b", "a-b", "c/x.log", "c/d", "c/__pycache__/e", "z"), ""))
    (tmp_path / ".gitignore").write_text("*.log\n__pycache__\n")
    (tmp_path / "link").symlink_to(tmp_path / "z")
    runs = Walk(str(tmp_path), str(tmp_path)).in_order()
    assert next(runs) == FileRun("", [".gitignore", "a-b", "a.b"], is_whole=False)
    (tmp_path / "a" / "late").touch()
    assert list(runs) == [
        FileRun("a/", ["b", "late"], is_whole=True),
        FileRun("c/", ["d"], is_whole=False),
        FileRun("", ["z"], is_whole=False),
    ]


async def test_searches_wait_for_a_place_and_their_time_begins_then(session: Session) -> None:
    write(session.project, {"a": "word\n"})
    running, most = 0, 0

    @contextmanager
    def ledger() -> Generator[Callable[[int], object]]:
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        yield lambda pid: pid
        running -= 1

    context = msgspec.structs.replace(session.context, ledger=ledger)
    grep = find_tool("Grep", session.tools)
    calls = [grep.run(grep.parse({"pattern": "word"}), context) for _ in range(4 * cores())]
    assert all("a" in result.content for result in await asyncio.gather(*calls))
    assert most <= 2 * cores()
