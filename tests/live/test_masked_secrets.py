"""A key that the model has read on the way is not in the report that somebody sends to a colleague."""

import gzip
import json
from pathlib import Path

import duckdb
import pytest

from tests.cli.project import Project, serving
from wave_agent.sessions.outbox import queue
from wave_agent.sessions.uploads import send_all
from wave_agent.testing import Reply, call

AWS = "AKIA" + "ABCDEFGHIJ234567"
PASSWORD = "hunter2" * 2
SECRETS = (AWS, PASSWORD)
"""Put together here, so that no scanner takes this file for a leak."""


@pytest.fixture
def recorded(project: Project) -> Project:
    """A session whose prompt, call, result, hook and answer hold secrets; the model got them all as they are."""
    (project.directory / "key.txt").write_text(f'{AWS}\npassword = "{PASSWORD}"\n')
    guard = {"command": f"grep -q {AWS} && echo 'it wrote {AWS}' >&2; exit 0", "name": f"find {AWS}"}
    told = {"command": f"echo 'the key is {AWS}' >&2; exit 2", "name": "tell"}
    project.settings({"hooks": {"PostToolUse": [{"hooks": [guard, told]}]}})
    replies = [
        Reply(tool_calls=[call("Bash", command=f"cat key.txt; true {AWS}")]),
        f"The key is {AWS}.",
    ]
    with serving(*replies) as server:
        ran = project.wave(
            "-p", f"Is {AWS} the key?", "--trust", "--permission-mode", "bypassPermissions", server=server
        )
        assert ran.returncode == 0, ran.stderr
        sent = json.dumps([request.body for request in server.requests])
        assert all(secret in sent for secret in SECRETS)
    assert ran.stdout == f"The key is {AWS}.\n"
    return project


def transcript(project: Project) -> Path:
    (file,) = project.home.glob("projects/*/*.jsonl")
    return file


def test_whatever_leaves_the_transcript_is_masked_unless_asked_otherwise(recorded: Project, tmp_path: Path) -> None:
    session = transcript(recorded).stem
    page, markdown = tmp_path / "page.html", tmp_path / "session.md"
    new = tmp_path / "new.json"
    guard = {"command": "cat >&2; exit 2", "name": "repeats-all"}
    new.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [guard]}]}}))
    commands = {
        "list": ("sessions",),
        "show": ("sessions", "show", session, "--json"),
        "export": ("sessions", "export", session, "-o", str(markdown)),
        "trace": ("hooks", "trace", "--json", "--html", str(page)),
        "stats": ("hooks", "stats", "--json"),
        "backtest": ("hooks", "backtest", "--json", "--trust", "--settings", str(new)),
    }

    shown = {name: recorded.wave(*arguments).stdout for name, arguments in commands.items()}
    shown |= {"page": page.read_text(), "markdown": markdown.read_text()}

    for name, text in shown.items():
        assert not any(secret in text for secret in SECRETS), name
        assert "[masked: an AWS key]" in text or name == "export", name
    assert "[masked: a password]" in shown["markdown"]
    for name in ("show", "trace", "stats", "backtest"):
        json.loads(shown[name])
    (finding,) = json.loads(shown["backtest"])["findings"]
    assert (finding["kind"], finding["hooks"]) == ("newly blocked", ["repeats-all"])

    markdown.unlink()  # an export overwrites nothing
    plain = {name: recorded.wave(*arguments, "--show-secrets").stdout for name, arguments in commands.items()}
    for name in ("list", "show", "trace", "stats", "backtest"):
        assert AWS in plain[name], name
    assert all(secret in markdown.read_text() for secret in SECRETS)


def test_the_transcript_and_a_resumed_session_have_them_as_they_are(recorded: Project) -> None:
    before = transcript(recorded).read_text()
    assert all(secret in before for secret in SECRETS)

    with serving("It still is.") as server:
        recorded.wave("-p", "And now?", "-c", "--trust", server=server)
        (request,) = server.requests
    assert all(secret in json.dumps(request.body) for secret in SECRETS)


ESCAPED = ("\n", "\\n", "%3D", "é", "\t", "\\\\n", "\x1b[31m", "值")


def test_a_key_after_any_escape_is_masked_at_every_outlet(project: Project, tmp_path: Path) -> None:
    text = " ".join(f"–{before}{AWS}" for before in ESCAPED)
    said = json.dumps({"systemMessage": text})
    (project.directory / "key.txt").write_text(f"{text}\n")
    hook = {"command": f"printf '%s' '{said}' # {text}", "name": "says"}
    project.settings({"hooks": {"PostToolUse": [{"hooks": [hook]}]}})
    replies = [Reply(tool_calls=[call("Bash", command=f"cat key.txt; echo $'{text}' '{said}'")]), text]
    with serving(*replies) as server:
        ran = project.wave("-p", text, "--trust", "--permission-mode", "bypassPermissions", server=server)
    assert ran.returncode == 0, ran.stderr
    file = transcript(project)
    queue(project.home, file)
    (tmp_path / "sent").mkdir()
    assert [one.error for one in send_all(project.home, f"file://{tmp_path / 'sent'}", pauses=())] == [""]
    (packed,) = (tmp_path / "sent").rglob("*.gz")
    assert project.wave("hooks", "export", str(tmp_path / "rows"), "--content").returncode == 0

    shown = {
        "show": project.wave("sessions", "show", file.stem, "--json").stdout,
        "export": project.wave("sessions", "export", file.stem).stdout,
        "trace": project.wave("hooks", "trace", "--json").stdout,
        "upload": gzip.decompress(packed.read_bytes()).decode(),
        "rows": "\n".join(
            str(duckdb.read_parquet(str(one)).fetchall()) for one in (tmp_path / "rows").rglob("*.parquet")
        ),
    }

    for name, output in shown.items():
        assert AWS not in output, name
        assert "[masked: an AWS key]" in output, name
    assert all(name in shown["rows"] for name in ("systemMessage", "printf"))
