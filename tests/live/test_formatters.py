"""Hooks that change files after an edit, as a formatter does."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, serving
from wave_agent import Agent
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import RecordingModelServer

FORMAT = """#!/bin/sh
cat >> format.log; echo >> format.log
[ -e a.py ] && sed -i 's/ *= */ = /' a.py
exit 0
"""


def results(server: RecordingModelServer, request: int = -1) -> list[str]:
    return [message["content"] for message in server.requests[request].body["messages"] if message["role"] == "tool"]


def hook(project: Project, name: str, script: str, **fields: Any) -> dict[str, Any]:
    file = project.directory / f"{name}.sh"
    file.write_text(script)
    file.chmod(0o755)
    return {"command": f"./{name}.sh", "name": name, **fields}


def after_edits(project: Project, *hooks: dict[str, Any], matcher: str = "Edit|Write") -> None:
    project.settings({"hooks": {"PostToolUse": [{"matcher": matcher, "hooks": [one]} for one in hooks]}})


def write(content: str) -> Any:
    return call("Write", file_path="a.py", content=content)


def edit(old: str, new: str) -> Any:
    return call("Edit", file_path="a.py", old_string=old, new_string=new)


def test_a_formatter_makes_the_next_edit_of_the_same_answer_fail(project: Project) -> None:
    after_edits(project, hook(project, "format", FORMAT))
    calls = [write("x=1\n# one\n"), edit("# one", "y=2"), edit("y = 2", "y = 3")]
    with serving(Reply(tool_calls=calls), "Done.") as server:
        done = project.wave("-p", "go", "--trust", "--permission-mode", "acceptEdits", server=server)
    file = project.directory / "a.py"
    written, first, second = results(server)
    assert written == (
        f"Created {file} (2 lines).\n\nHook format then changed {file}:\n@@ -1,2 +1,2 @@\n-x=1\n+x = 1\n # one"
    )
    assert first.endswith(f"\n\nHook format then changed {file}:\n@@ -1,2 +1,2 @@\n x = 1\n-y=2\n+y = 2")
    assert second.startswith(f"Edited {file}.")
    assert "Hook format" not in second
    assert len((project.directory / "format.log").read_text().strip().splitlines()) == 3
    assert file.read_text() == "x = 1\ny = 3\n"
    assert (done.returncode, done.stderr) == (0, "")


async def test_undo_gives_up_after_a_formatter(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVE_HOME", str(project.home))
    after_edits(project, hook(project, "format", FORMAT))
    (project.directory / "a.py").write_text("x=1\n# one\n")
    read = call("Read", file_path="a.py")
    replies = [Reply(tool_calls=[read, edit("# one", "y=2"), edit("y = 2", "z=3")]), "Done."]
    with serving(*replies) as server:
        async with await Agent.create(
            workdir=project.directory, base_url=server.base_url, model="test", trust=True, permission_mode="acceptEdits"
        ) as agent:
            await agent.send_message("go")
            assert (project.directory / "a.py").read_text() == "x = 1\nz = 3\n"
            taken = await agent.undo()
    assert (project.directory / "a.py").read_text() == "x=1\n# one\n"
    assert (taken.restored, dict(taken.refused)) == ((str(project.directory / "a.py"),), {})


def test_a_file_that_somebody_else_changed_is_overwritten_because_a_formatter_ran_too(project: Project) -> None:
    after_edits(project, hook(project, "format", FORMAT), matcher="*")
    calls = [write("x=1\n"), call("Bash", command="echo 'mine=1' >> a.py"), edit("x = 1", "x = 2")]
    with serving(Reply(tool_calls=calls), "Done.") as server:
        project.wave("-p", "go", "--trust", "--permission-mode", "bypassPermissions", server=server)
    file = project.directory / "a.py"
    _, ran, edited = results(server)
    assert "Hook format" not in ran  # the command had changed it before, so the whole change is not the hook's
    assert edited == f"{file} has changed since it was read. Read it again, then try again."
    assert file.read_text() == "x = 1\nmine = 1\n"


def test_another_file_that_the_model_has_read_is_out_of_date_without_a_word(project: Project) -> None:
    (project.directory / "b.py").write_text("GENERATED = 1\n")
    after_edits(project, hook(project, "generate", "#!/bin/sh\nsed -i 's/1/2/' b.py\n"))
    calls = [write("x = 1\n"), call("Edit", file_path="b.py", old_string="GENERATED = 2", new_string="B = 2")]
    with serving(Reply(tool_calls=[call("Read", file_path="b.py")]), Reply(tool_calls=calls), "Done.") as server:
        project.wave("-p", "go", "--trust", "--permission-mode", "acceptEdits", server=server)
    _, written, edited = results(server)
    told = f"Hook generate then changed {project.directory / 'b.py'}:\n@@ -1 +1 @@\n-GENERATED = 1\n+GENERATED = 2"
    assert written.endswith(told)
    assert edited.startswith("Edited ")
    assert (project.directory / "b.py").read_text() == "B = 2\n"


def test_what_a_redacting_hook_keeps_back_reaches_the_model_in_the_diff_of_a_formatter(project: Project) -> None:
    replace = json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": "[redacted]"}})
    redact = f"#!/bin/sh\ngrep -q hunter2 && echo '{replace}'\nexit 0\n"
    after_edits(project, hook(project, "format", FORMAT), hook(project, "redact", redact))
    (project.directory / "a.py").write_text("KEY='hunter2'\n# two\n# three\n# four\n# five\n# six\n# seven\n")
    changes = [edit("# two", "y=2"), edit("# seven", "z=7")]
    replies = [Reply(tool_calls=[call("Read", file_path="a.py")]), Reply(tool_calls=changes), "Done."]
    with serving(*replies) as server:
        project.wave("-p", "go", "--trust", "--permission-mode", "acceptEdits", server=server)
    file = project.directory / "a.py"
    _, first, second = results(server)
    assert first == '<hook event="PostToolUse" name="redact">\n[redacted]\n</hook>'
    hidden = "The diff is not shown: a hook replaces or withholds such results."
    assert second.startswith(f"Edited {file}.")  # nothing to redact in it, but the hook is known to redact
    assert f"One of the hooks format, redact then changed {file}. {hidden}" in second
    after = server.requests[-1].body["messages"][-1]
    assert after["role"] == "user"
    assert f"changed {file}. {hidden}" in after["content"]
    assert "'hunter2'" not in "".join([first, second, after["content"]])
    assert file.read_text().startswith("KEY = 'hunter2'\ny = 2\n")


def test_a_hook_that_is_not_waited_for_is_somebody_else(project: Project, tmp_path: Path) -> None:
    slow = f"#!/bin/sh\ncat > /dev/null\nsed -i 's/=/ = /' a.py\ntouch {tmp_path}/done\n"
    after_edits(project, hook(project, "slow", slow, **{"async": True}))
    wait = call("Bash", command=f"until [ -e {tmp_path}/done ]; do sleep 0.01; done")
    with serving(Reply(tool_calls=[write("x=1\n"), wait, edit("x", "y")]), "Done.") as server:
        project.wave("-p", "go", "--trust", "--permission-mode", "bypassPermissions", server=server)
    written, _, edited = results(server)
    assert written == f"Created {project.directory / 'a.py'} (1 line)."
    assert "has changed since it was read" in edited
    assert (project.directory / "a.py").read_text() == "x = 1\n"


SOURCE = {"cell_type": "code", "execution_count": None, "id": "a1", "metadata": {}, "outputs": []}
TIDY = """#!/bin/sh
cat >> {name}.log; echo >> {name}.log
[ {name} = stop ] || sed -i 's/ *= */ = /' a.py a.ipynb
exit 0
"""


async def test_several_edits_and_an_edit_of_a_notebook_are_formatted_reported_and_undone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of Edit are."""
    monkeypatch.setenv("WAVE_HOME", str(project.home))
    tidy, stop = (hook(project, name, TIDY.format(name=name)) for name in ("tidy", "stop"))
    after = {"matcher": "Edit|MultiEdit|NotebookEdit", "hooks": [tidy]}
    project.settings({"hooks": {"PostToolUse": [after], "Stop": [{"hooks": [stop]}]}})
    code, book = project.directory / "a.py", project.directory / "a.ipynb"
    before = json.dumps({"cells": [{**SOURCE, "source": ["x = 1"]}], "metadata": {}, "nbformat": 4})
    code.write_text("one = 1\ntwo = 2\n")
    book.write_text(before)
    edits = [{"old_string": "one = 1", "new_string": "one=3"}, {"old_string": "two = 2", "new_string": "two=4"}]
    replies = [
        Reply(tool_calls=[call("Read", file_path="a.py"), call("Read", file_path="a.ipynb")]),
        Reply(tool_calls=[call("MultiEdit", file_path="a.py", edits=edits)]),
        Reply(tool_calls=[call("NotebookEdit", notebook_path="a.ipynb", cell_id="a1", new_source="x=5")]),
        "Done.",
    ]
    with serving(*replies) as server:
        async with await Agent.create(
            workdir=project.directory, base_url=server.base_url, model="test", trust=True, permission_mode="acceptEdits"
        ) as agent:
            await agent.send_message("go")
            assert code.read_text() == "one = 3\ntwo = 4\n"
            assert json.loads(book.read_text())["cells"][0]["source"] == ["x = 5"]
            taken = await agent.undo()

    _, _, several, notebook = results(server)
    assert f"Hook tidy then changed {code}:\n" in several
    assert "+one = 3" in several
    assert f"Hook tidy then changed {book}:\n" in notebook
    seen = [json.loads(line) for line in (project.directory / "tidy.log").read_text().splitlines() if line]
    assert [one["tool_name"] for one in seen] == ["MultiEdit", "NotebookEdit"]
    (end,) = [json.loads(line) for line in (project.directory / "stop.log").read_text().splitlines() if line]
    assert sorted(end["changed_files"]) == sorted(map(str, (code, book)))
    assert (code.read_text(), book.read_text()) == ("one = 1\ntwo = 2\n", before)
    assert sorted(taken.restored) == sorted(map(str, (code, book)))
