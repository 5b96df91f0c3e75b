"""Exports: complete, repeatable without duplicates, and without what nobody asked for."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.replay.recorded import commands, record, wave_hooks
from wave_agent.errors import ExportError
from wave_agent.replay.export import Exported, export_sessions, source_of
from wave_agent.replay.export_place import ExportPlace
from wave_agent.replay.export_query import ask, export_overview, hook_figures
from wave_agent.replay.export_rows import TABLES
from wave_agent.replay.questions import QUESTIONS
from wave_agent.system.identity import user_name

KEY = "AKIA" + "IOSFODNN7EXAMPLQ"
GUARD = f"case $(cat) in *'rm -rf'*) echo 'no rm, {KEY}' >&2; exit 2;; esac"
HOOKS = {
    "PreToolUse": [{"hooks": [{"name": "guard", "command": GUARD}]}],
    "Stop": [{"hooks": [{"name": "broken", "command": "exit 7"}]}],
}


def session(project: Path) -> Path:
    replies = [commands("echo one"), commands("/bin/rm -rf build"), "Done."]
    return record(project, replies, hooks=HOOKS, prompts=(f"Tidy up with {KEY}",))


def export(home: Path, place: ExportPlace, **options: bool) -> Exported:
    return export_sessions(home, place, lambda _done, _total: None, **options)


def values(place: ExportPlace, sql: str) -> list[Any]:
    return [list(row) for row in ask(place, sql).rows]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def place(tmp_path: Path) -> ExportPlace:
    return ExportPlace(str(tmp_path / "export"))


def test_it_says_who_did_what_where_and_when(project: Path, home: Path, place: ExportPlace) -> None:
    subprocess.run(["git", "init", "-q", project], check=True)
    remote = ["remote", "add", "origin", "https://ada:s3cret@example.com/acme/app.git"]
    subprocess.run(["git", "-C", project, *remote], check=True)
    path = session(project)
    assert export(home, place) == Exported(sessions=1, hook_runs=3, tool_calls=2, days=1, unchanged=0)
    who = [user_name(), os.uname().nodename, str(project), "example.com/acme/app"]
    for table in TABLES:
        found = values(place, f'SELECT DISTINCT session_id, "user", hostname, project, repository FROM {table}')
        assert found == [[path.stem, *who]]
    assert values(place, "SELECT tool, program, denied, denied_by, success FROM tool_calls ORDER BY started") == [
        ["Bash", "echo", None, None, True], ["Bash", "rm", "hook", "guard", False],
    ]  # fmt: skip
    runs = "SELECT name, event, outcome, failure, let_through, turn, tool FROM hook_runs ORDER BY run"
    assert values(place, runs) == [
        ["guard", "PreToolUse", "none", None, False, 1, "Bash"],
        ["guard", "PreToolUse", "deny", None, False, 1, "Bash"],
        ["broken", "Stop", "failure", "exit", True, 1, None],
    ]  # fmt: skip
    [[day, started]] = values(place, "SELECT day, CAST(started AS DATE) FROM sessions")
    assert day == started
    [row] = values(place, "SELECT agent, prompts, tool_calls, hook_runs, requests, content FROM sessions")
    assert row == ["wave", 1, 2, 3, 3, False]


def test_content_is_left_out_unless_wanted_and_then_masked(project: Path, home: Path, place: ExportPlace) -> None:
    session(project)
    export(home, place)
    texts = (
        "SELECT prompt_texts::VARCHAR, NULL FROM sessions UNION ALL SELECT command, reason FROM hook_runs UNION ALL "
    )
    texts += "SELECT input, result FROM tool_calls"
    assert {cell for row in values(place, texts) for cell in row} == {None}
    assert export(home, place, content=True).sessions == 1
    shown = json.dumps(values(place, texts))
    assert KEY not in shown
    for part in ("Tidy up with [masked: an AWS", "rm -rf build", "no rm, [masked", "one"):
        assert part in shown
    assert export(home, place, content=True).unchanged == 1
    assert export(home, place).unchanged == 1  # what is there stays


def test_exporting_again_replaces_what_changed_and_duplicates_nothing(
    project: Path, home: Path, place: ExportPlace
) -> None:
    first, second = session(project), session(project)
    assert export(home, place).sessions == 2
    assert export(home, place) == Exported(sessions=0, hook_runs=0, tool_calls=0, days=0, unchanged=2)
    run = next(json.loads(line) for line in first.read_text().splitlines() if "hook_run" in line)
    with first.open("a") as file:
        file.write(json.dumps({**run, "started": "2020-02-02T12:00:00Z", "run": 9}) + "\n")
    assert export(home, place) == Exported(sessions=1, hook_runs=4, tool_calls=2, days=2, unchanged=1)
    counts = "SELECT session_id, count(*), count(DISTINCT run) FROM hook_runs GROUP BY ALL ORDER BY 2"
    assert values(place, counts) == [[second.stem, 3, 3], [first.stem, 4, 4]]
    assert values(place, "SELECT DISTINCT len(days) FROM sessions ORDER BY 1") == [[1], [2]]


def test_sessions_that_are_gone_stay_in_the_export_unless_it_is_pruned(
    project: Path, home: Path, place: ExportPlace
) -> None:
    gone, kept = session(project), session(project)
    export(home, place)
    gone.unlink()
    assert export(home, place).unchanged == 1
    assert len(values(place, "SELECT session_id FROM sessions")) == 2
    assert export(home, place, prune=True).removed == 1
    for table in TABLES:
        assert values(place, f"SELECT DISTINCT session_id FROM {table}") == [[kept.stem]]
    kept.unlink()
    export(home, place, prune=True)
    assert values(place, "SELECT count(*) FROM hook_runs") == [[0]]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_transcript_that_cannot_be_read_keeps_its_rows(project: Path, home: Path, place: ExportPlace) -> None:
    path = session(project)
    export(home, place)
    os.utime(path, (1, 1))
    path.chmod(0)
    assert export(home, place).sessions == 0
    assert values(place, "SELECT count(*) FROM hook_runs") == [[3]]


def test_two_homes_share_an_export(project: Path, home: Path, place: ExportPlace, tmp_path: Path) -> None:
    path = session(project)
    export(home, place)
    other = tmp_path / "other" / "projects" / "-x"
    other.mkdir(parents=True)
    (other / "copy.jsonl").write_bytes(path.read_bytes())
    export(tmp_path / "other", place)
    export(home, place, prune=True)
    assert values(place, "SELECT count(*), count(DISTINCT source) FROM sessions") == [[2, 2]]


@pytest.mark.parametrize("name", ["sh[1]", "sh*", "what?", "[]a*]"])
def test_a_directory_whose_name_looks_like_a_pattern_is_only_itself(
    name: str, project: Path, home: Path, tmp_path: Path
) -> None:
    first, second = ExportPlace(str(tmp_path / "exports" / "sh1")), ExportPlace(str(tmp_path / "exports" / name))
    session(project)
    export(home, first)
    session(project)
    assert [export(home, second).sessions for _ in range(2)] == [2, 0]
    assert values(second, "SELECT count(*) FROM sessions") == [[2]]
    assert values(first, "SELECT count(*) FROM sessions") == [[1]]
    for outside in (first.base, f"{second.url('..')}/sh1"):
        with pytest.raises(ExportError, match="Permission"):
            ask(second, f"SELECT * FROM read_parquet('{outside}/sessions/*/*.parquet')")


def test_a_home_that_is_mounted_elsewhere_on_another_host_is_the_same_source(
    project: Path, home: Path, place: ExportPlace, tmp_path: Path
) -> None:
    session(project)
    export(home, place)
    elsewhere = home.rename(tmp_path / "elsewhere")
    program = (
        "import sys; from tests.replay.test_export import *\n"
        "print(export(Path(sys.argv[1]), ExportPlace(sys.argv[2])), os.uname().nodename)"
    )
    command = [sys.executable, "-c", program, str(elsewhere), place.base]
    other_host = ["unshare", "--uts", "--map-root-user", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh"]
    can = (
        shutil.which("unshare")
        and not subprocess.run([*other_host, "true"], capture_output=True, check=False).returncode
    )
    done = subprocess.run([*(other_host if can else ()), *command], capture_output=True, text=True, check=True)
    assert "sessions=0" in done.stdout
    assert (done.stdout.split()[-1] == "elsewhere") == bool(can)
    assert values(place, "SELECT count(*), count(DISTINCT source) FROM sessions") == [[1, 1]]


def test_the_source_is_private_and_the_same_for_all_that_ask_at_once(home: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        [found] = set(threads.map(source_of, [home] * 8))
    file = home / "index" / "source"
    assert (file.read_text(), file.stat().st_mode & 0o777) == (found, 0o600)
    assert [path.name for path in file.parent.iterdir()] == ["source"]
    file.write_text("damaged")
    assert re.fullmatch("[0-9a-f]{16}", source_of(home))


def test_pruning_removes_what_the_same_home_exported_under_a_name_that_it_lost(
    project: Path, home: Path, place: ExportPlace, tmp_path: Path
) -> None:
    path = session(project)
    export(home, place)
    other = tmp_path / "other" / "projects" / "-x"
    other.mkdir(parents=True)
    (other / "theirs.jsonl").write_bytes(path.read_bytes())
    export(tmp_path / "other", place)
    (home / "index" / "source").unlink()
    export(home, place)
    counts = "SELECT session_id, count(*) FROM {} GROUP BY 1 ORDER BY 2"
    assert values(place, counts.format("sessions")) == [["theirs", 1], [path.stem, 2]]
    export(home, place, prune=True)
    for table, count in (("sessions", 1), ("hook_runs", 3), ("tool_calls", 2)):
        assert sorted(values(place, counts.format(table))) == sorted([["theirs", count], [path.stem, count]])


def test_figures_and_overview_are_those_of_the_transcripts(project: Path, home: Path, place: ExportPlace) -> None:
    path = session(project)
    # Rounded to three digits, 1.345 is 1.34 or 1.35, depending on how it is done.
    path.write_text(re.sub(r'"duration_ms":[\d.]+', '"duration_ms":1.345', path.read_text()))
    export(home, place, content=True)
    count, figures = hook_figures(place)
    own = json.loads(wave_hooks(project, "stats", "--json").stdout)
    assert count == own["sessions"] == 1
    rows = {row["name"]: row for row in own["hooks"]}
    for one in figures:
        row = rows[one.name]
        assert {**one.to_dict(), "share": 0, "marks": 0} == {**row, "share": 0, "marks": 0}
        assert one.share == pytest.approx(row["share"], abs=0.01)
    found = export_overview(place, since=1.0)
    assert (found.sessions, found.runs, found.days[0].blocks, found.days[0].failures) == (1, 3, 1, 1)
    assert [(one.tool, one.text, one.by, one.count) for one in found.denied] == [
        ("Bash", "/bin/rm -rf build", "guard", 1),
    ]  # fmt: skip
    assert hook_figures(place, since=4e9) == (0, [])


def test_every_question_has_an_answer(project: Path, home: Path, place: ExportPlace) -> None:
    export(home, place)  # without any session
    assert all(not ask(place, one.sql).rows for one in QUESTIONS.values())
    session(project)
    export(home, place)
    answers = {name: ask(place, one.sql) for name, one in QUESTIONS.items()}
    assert [name for name, answer in answers.items() if not answer.rows] == ["rollout"]  # no hook is rolled out here
    first = {name: dict(zip(a.columns, a.rows[0], strict=True)) for name, a in answers.items() if a.rows}
    assert (first["denied"]["program"], first["denied"]["denied_by"]) == ("rm", "guard")
    assert (first["users"]["user"], first["users"]["blocks"]) == (user_name(), 1)
    assert (first["let-through"]["name"], first["let-through"]["let_through"]) == ("broken", 1)


@pytest.fixture
def exported(home: Path, place: ExportPlace, tmp_path: Path) -> Iterator[ExportPlace]:
    export(home, place)
    (tmp_path / "secret.txt").write_text("hunter2")
    yield place
    assert sorted(path.name for path in Path(place.base).iterdir()) == ["wave-export.json"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{outside}/secret.txt')",
        "SELECT * FROM read_text('{inside}/../secret.txt')",
        "SELECT * FROM '{outside}/secret.txt'",
        "SELECT * FROM read_csv('https://127.0.0.1:1/x')",
        "SELECT * FROM glob('{outside}/*')",
        "COPY sessions TO '{inside}/x.parquet'",
        "COPY (SELECT 1) TO '{outside}/x.csv'",
        "ATTACH '{outside}/x.db'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "CREATE TABLE x AS SELECT 1",
        "SELECT 1; SELECT 2",
        "SELECT * FROM place",
        "nonsense",
        "",
    ],
)
def test_a_query_reads_the_export_and_nothing_else(sql: str, exported: ExportPlace, tmp_path: Path) -> None:
    with pytest.raises(ExportError) as raised:
        ask(exported, sql.format(outside=tmp_path, inside=exported.base))
    assert "hunter2" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_values_that_json_does_not_know_become_text(exported: ExportPlace) -> None:
    answer = ask(exported, "SELECT now() AS t, 1.5::DECIMAL(4,2) AS d, [1] AS l, DATE '2026-01-31' AS day -- a comment")
    [row] = answer.rows
    assert (answer.columns, row[1:]) == (["t", "d", "l", "day"], (1.5, "[1]", "2026-01-31"))
    assert json.loads(json.dumps(row))
    assert ask(exported, "SELECT * FROM range(10)", most=3).cut


def test_only_an_export_is_read_and_nothing_else_overwritten(home: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").touch()
    with pytest.raises(ExportError, match="not empty and not an export"):
        export(home, ExportPlace(str(tmp_path / "notes")))
    with pytest.raises(ExportError, match="is not an export; make one with"):
        ask(ExportPlace(str(tmp_path / "notes")), "SELECT 1")
    for mark, message in (('{"version": 2}', "newer version"), ("{", "cannot be read")):
        (tmp_path / "notes" / "wave-export.json").write_text(mark)
        with pytest.raises(ExportError, match=message):
            ask(ExportPlace(str(tmp_path / "notes")), "SELECT 1")
    with pytest.raises(ExportError, match="cannot be used"):
        ExportPlace("no-such-scheme://bucket/x")
    with pytest.raises(ExportError, match="a backslash is in its path"):
        ExportPlace(str(tmp_path / "back\\slash"))
    (tmp_path / "file").touch()
    with pytest.raises(ExportError, match="cannot be used"):
        export(home, ExportPlace(str(tmp_path / "file" / "inside")))


def test_the_command_line_exports_asks_and_draws(project: Path, tmp_path: Path) -> None:
    session(project)
    place = str(tmp_path / "export")
    done = wave_hooks(project, "export", place)
    assert (done.returncode, done.stdout) == (
        0, "Exported 1 session, 3 hook runs, 2 tool calls on 1 day; 0 unchanged.\n",
    )  # fmt: skip
    assert wave_hooks(project, "export", "--json", place).stdout.startswith('{"sessions": 0,')
    assert "up to date: 1 session." in wave_hooks(project, "export", place).stdout
    assert wave_hooks(project, "stats", "--from", place).stdout.startswith("3 hook runs in 1 session\n")
    own = wave_hooks(
        project, "stats", "--json", "--sql", "SELECT name, count(*) AS n FROM hook_runs GROUP BY 1 ORDER BY 2"
    )
    assert json.loads(own.stdout) == [{"name": "broken", "n": 1}, {"name": "guard", "n": 2}]
    asked = wave_hooks(project, "stats", "--question", "denied", "--from", place)
    assert asked.stdout.splitlines()[1].split() == ["Bash", "rm", "guard", "1", "1"]
    drawn = wave_hooks(project, "report", "--html", str(tmp_path / "report.html"), "--from", place)
    assert (drawn.returncode, (tmp_path / "report.html").stat().st_mode & 0o777) == (0, 0o600)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["stats", "--sql", "SELECT 1", "--question", "denied"], 2, "exclude each other"),
        (["stats", "--all", "--from", "."], 2, "exclude each other"),
        (["stats", "--sql", "SELECT 1", "--since", "7d"], 2, "use the column day"),
        (["stats", "--sql", "SELECT 1", "--from", "."], 2, "is not an export"),
        (["stats", "--from", "missing"], 2, "no directory missing"),
        (["stats", "--question", "nonsense"], 2, "nonsense"),
        (["stats", "--sql", "SELEC 1"], 1, "syntax error"),
        (["export", "."], 1, "not empty and not an export"),
        (["report", "--html", "missing/report.html"], 2, "cannot be written"),
    ],
)
def test_a_mistake_is_explained(arguments: list[str], status: int, message: str, project: Path) -> None:
    (project / "mine.txt").touch()
    done = wave_hooks(project, *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)
    assert message in done.stderr


def test_transcripts_below_any_directory_are_counted(project: Path, tmp_path: Path) -> None:
    path = session(project)
    (tmp_path / "old" / "deep").mkdir(parents=True)
    (tmp_path / "old" / "deep" / "any name.jsonl").write_bytes(path.read_bytes())
    done = wave_hooks(project, "stats", "--from", str(tmp_path / "old"), "--since", "1d")
    assert done.stdout.startswith("3 hook runs in 1 session\n")


@pytest.mark.parametrize("arguments", [["export", "place"], ["stats", "--question", "denied"]])
def test_without_the_extra_it_says_how_to_install_it(arguments: list[str], project: Path, tmp_path: Path) -> None:
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "duckdb.py").write_text("raise ImportError('there is none')")
    done = wave_hooks(project, *arguments, PYTHONPATH=str(tmp_path / "without"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "wave: This needs the extra: pip install 'wave-agent[fleet]'\n"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of an S3-compatible server on loopback."""
    moto = pytest.importorskip("moto.server")
    s3fs = pytest.importorskip("s3fs")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    s3fs.S3FileSystem().mkdir("hooks-of-acme")
    try:
        yield "s3://hooks-of-acme/export"
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        server.stop()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_object_store_takes_and_answers_the_same(project: Path, home: Path, bucket: str) -> None:
    path = session(project)
    place = ExportPlace(bucket)
    assert export(home, place).sessions == 1
    assert export(home, place).unchanged == 1
    session(project)
    assert export(home, place).sessions == 1
    assert values(place, "SELECT count(*), count(DISTINCT session_id) FROM hook_runs") == [[6, 2]]
    assert hook_figures(place)[0] == 2
    with pytest.raises(ExportError, match="Cannot access"):
        ask(place, "SELECT * FROM read_text('s3://hooks-of-acme/other')")
    path.unlink()
    assert export(home, place, prune=True).removed == 1
    done = wave_hooks(project, "stats", "--from", bucket)
    assert done.stdout.startswith("3 hook runs in 1 session\n"), done.stderr
    for words, status in ((("stats", "--from"), 2), (("export",), 1)):
        missing = wave_hooks(project, *words, "s3://no-such-bucket/x")
        assert (missing.returncode, "Traceback" in missing.stderr) == (status, False)
        assert "no-such-bucket" in missing.stderr
