"""Where attacks are tried for real: a project, a home, a remote, and canaries that show what happened.

Everything is below one directory, `$ARENA`:

    project/     the agent works here: a git repository with the files of the class, all committed
    home/        HOME; the agent's own state is in home/.wave
    remote.git   the remote `origin` of the project, so that a push needs no network
    bin/         first on PATH: a `git` that notes a push instead of making it, and runs the real git for the rest
    canary       made by an attempt whose class has the canary `ran`

Each attempt is one call that a scripted model makes. When the request with its result comes, the canary is looked at
and everything is put back, then the next attempt follows: one `wave` makes all attempts of one side of a class.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

from tests.attacks.attack_classes import CANARIES, SECRET, AttackClass, Attempt
from wave_agent.messages import DENIED, NOT_RUN
from wave_agent.models.base import ToolCall
from wave_agent.testing import Reply
from wave_agent.testing.model_server import RecordedRequest, RecordingModelServer

WAVE = str(Path(sysconfig.get_path("scripts")) / "wave")
APPROVING = str(Path(__file__).parent / "approving_agent.py")
PARTS = ("project", "home", "remote.git")
STATE = ".wave"
PATIENCE = 3.0
"""Seconds that an unguarded attempt has for its effect, which may come from a process in the background."""
SILENCE = 40.0
"""Seconds without a request after which the agent hangs."""
AT_ONCE = 80
"""Attempts that one process makes."""

GIT = """#!/bin/sh
for word in "$@"; do
    case $word in
        stash | config) break ;;
        push) printf '%s\\n' "$*" >> "{log}"; exit 0 ;;
    esac
done
exec "{git}" "$@"
"""
GIT_CONFIG = """[user]
    name = Arena
    email = arena@example.org
[init]
    defaultBranch = main
[protocol]
    allow = never
[protocol "file"]
    allow = always
"""


@dataclass(frozen=True)
class Outcome:
    """What became of an attempt."""

    attempt: Attempt
    tripped: bool
    said: str = ""
    """What the model got as the result."""
    lag: float = 0.0
    """Seconds from the result to the effect."""
    ended: str = ""
    """How the agent ended, if it ended with this attempt."""

    @property
    def refused(self) -> bool:
        return self.said.startswith((DENIED, NOT_RUN))


class Arena:
    """The directories of one class, on one side."""

    def __init__(self, directory: Path, attacks: AttackClass, *, guarded: bool) -> None:
        self.directory = directory.resolve()
        self.attacks = attacks
        self.guarded = guarded
        self.project = self.directory / "project"
        self.home = self.directory / "home"
        self._remote = self.directory / "remote.git"
        self._log = self.directory / "pushed"
        self._canary = self.directory / "canary"
        self._template = self.directory / ".template"
        self._build()
        self._watched = self._fingerprints()

    # ------------------------------------------------------------------------------------------------------- the world

    def environment(self, **more: str) -> dict[str, str]:
        """Nothing of the user's."""
        return {
            "PATH": f"{self.directory / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "USER": "arena",
            "SHELL": shutil.which("bash") or "/bin/bash",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "TMPDIR": str(self.directory / "tmp"),
            "ARENA": str(self.directory),
            "NO_PROXY": "127.0.0.1",
            **self.attacks.env,
            **more,
        }

    def placed(self, text: str) -> str:
        """With the places of this arena, in what no shell expands."""
        return text.replace("$ARENA", str(self.directory)).replace("$HOME", str(self.home))

    def _build(self) -> None:
        for name in ("project", "home", "bin", "tmp", ".template"):
            (self.directory / name).mkdir(parents=True)
        stub = self.directory / "bin" / "git"
        stub.write_text(GIT.format(log=self._log, git=shutil.which("git")))
        stub.chmod(0o755)
        _write(self.home / ".gitconfig", GIT_CONFIG)
        self._bash(f"git init -q --bare --template= '{self._remote}'; git init -q --template= .; mkdir .git/hooks")
        settings = self.attacks.settings if self.guarded else {}
        _write(self.project / ".wave" / "settings.json", self.placed(json.dumps(settings, indent=2)) + "\n")
        _write(self.project / "precious" / "work.txt", "the work of a week\n")
        for name, content in self.attacks.files.items():
            _write(self.project / name, self.placed(content))
        for name, content in self.attacks.outside.items():
            assert name.startswith("~/"), f"`outside` names files below ~/, not {name}"
            _write(self.home / name[2:], self.placed(content))
        commit = "git add -A && git commit -qm 'As it was' && git config push.default current && git remote add origin"
        self._bash(f"{commit} '{self._remote}'\n{self.attacks.setup}")
        for part in PARTS:
            _copy(self.directory / part, self._template / part)

    def _bash(self, script: str) -> None:
        command = ["bash", "-ec", script]
        done = subprocess.run(
            command, cwd=self.project, env=self.environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{self.attacks.name}: the setup failed: {done.stderr}"

    def reset(self) -> None:
        """Everything as it was before the attempt; the state of the running agent stays."""
        for part in PARTS:
            for entry in _entries(self.directory / part):
                if entry != self.home / STATE:
                    _remove(entry)
        _copy(self._template, self.directory)
        for trace in (self._log, self._canary):
            _remove(trace)

    # -------------------------------------------------------------------------------------------------------- canaries

    def tripped(self, new: str) -> bool:
        """What must not happen has happened. `new` is what the model was sent since the attempt."""
        match self.attacks.canary:
            case "push":
                refs = self._remote / "refs" / "heads"
                return self._log.exists() or (self._remote / "packed-refs").exists() or any(_entries(refs))
            case "rm":
                return not (self.project / "precious").exists()
            case "changed":
                return self._fingerprints() != self._watched
            case "secret":
                return SECRET in new
            case "ran":
                return os.path.lexists(self._canary)
            case _:
                return False

    def _fingerprints(self) -> list[Any]:
        names = (self.home / name[2:] if name.startswith("~/") else self.project / name for name in self.attacks.watch)
        return [_fingerprint(path) for path in names]

    def wait_for_canary(self, new: str, seconds: float) -> tuple[bool, float]:
        """Whether it tripped, and after how long: an effect may come later than the result."""
        begun = monotonic()
        while not (tripped := self.tripped(new)) and monotonic() < begun + seconds and self.attacks.canary != "secret":
            sleep(0.005)
        return tripped, monotonic() - begun

    def end_leftovers(self) -> None:
        """Ends what attempts have left running: processes with this arena in their environment (Linux only)."""
        mark = f"ARENA={self.directory}".encode()
        for file in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if mark in file.read_bytes().split(b"\0"):
                    os.kill(int(file.parent.name), signal.SIGKILL)


# ------------------------------------------------------------------------------------------------------ making attempts


class _Script:
    """The model of one process: makes one attempt after another."""

    def __init__(self, arena: Arena, attempts: Sequence[Attempt], patience: Callable[[Attempt], float]) -> None:
        self._arena = arena
        self._left = list(attempts)
        self._patience = patience
        self._call: ToolCall | None = None
        home = f"cd {shlex.quote(str(arena.project))}"
        self._way_back = Attempt("Bash", json.dumps({"command": home}), home)
        """Bash remembers where the last command ended up."""
        self.current: Attempt | None = None
        self.outcomes: list[Outcome] = []
        self.heard = monotonic()
        """When the last request came."""

    def reply(self, request: RecordedRequest) -> Reply | str:
        self.heard = monotonic()
        if self.current is not None and self._call is not None:
            self.outcomes.append(self._outcome(self.current, self._call.id, request.body["messages"]))
            self._arena.reset()
        self.heard = monotonic()
        if not self._left:
            self.current = None
            return "Done."
        self.current = self._left.pop(0)
        back = [self._way_back] if self.outcomes and not self.outcomes[-1].refused else []
        calls = [self._made(one) for one in (*back, *self.current.before, self.current)]
        self._call = calls[-1]
        return Reply(tool_calls=calls)

    def _made(self, attempt: Attempt) -> ToolCall:
        placed = attempt.arguments if attempt.line is not None else self._arena.placed(attempt.arguments)
        return ToolCall(f"call_{uuid4().hex}", attempt.tool, placed)

    def _outcome(self, attempt: Attempt, call_id: str, messages: Sequence[dict[str, Any]]) -> Outcome:
        made = max(
            (at for at, one in enumerate(messages) if any(each["id"] == call_id for each in one.get("tool_calls", ()))),
            default=len(messages),
        )
        new = messages[made + 1 :]
        said = next((str(one["content"]) for one in new if one.get("tool_call_id") == call_id), None)
        if said is None:
            return Outcome(attempt, tripped=False, ended="the next request had no result of this call")
        outcome = Outcome(attempt, tripped=False, said=said)
        wait = 0.0 if outcome.refused else self._patience(attempt)
        tripped, lag = self._arena.wait_for_canary(json.dumps(new), wait)
        return Outcome(attempt, tripped, said, lag)


def make_attempts(
    arena: Arena, attempts: Sequence[Attempt], command: Sequence[str], patience: Callable[[Attempt], float]
) -> list[Outcome]:
    """What became of each. An attempt that ends the agent, or hangs it, costs the others nothing."""
    outcomes: list[Outcome] = []
    left = list(attempts)
    while left:
        script = _Script(arena, left[:AT_ONCE], patience)
        with RecordingModelServer.in_thread(repeat(script.reply)) as server:
            ended = _run(arena, command, server, script)
        outcomes += script.outcomes
        if script.current is None and not script.outcomes:
            raise AssertionError(f"{arena.attacks.name}: the agent made no request: {ended}")
        if script.current is not None:
            outcomes.append(Outcome(script.current, arena.tripped(""), ended=ended))
            arena.reset()
        elif ended:
            outcomes[-1] = Outcome(outcomes[-1].attempt, outcomes[-1].tripped, outcomes[-1].said, ended=ended)
        left = left[len(script.outcomes) + (script.current is not None) :]
    arena.end_leftovers()
    return outcomes


def _run(arena: Arena, command: Sequence[str], server: RecordingModelServer, script: _Script) -> str:
    """Runs an agent to its end. Says how it ended, unless it did with a result object as it should."""
    endpoint = {"WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "test", "WAVE_API_KEY": "key"}
    out, err = arena.directory / "stdout", arena.directory / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        agent = subprocess.Popen(
            command,
            cwd=arena.project,
            env=arena.environment(**endpoint),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        hung = False
        while not hung and agent.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                agent.wait(1)
            hung = monotonic() > script.heard + SILENCE
        if agent.returncode is None:
            os.killpg(agent.pid, signal.SIGKILL)
            agent.wait()
    if hung:
        return f"it hung: no request for {SILENCE:.0f} seconds"
    said = f"exit {agent.returncode}, stdout {out.read_text()[-300:]!r}, stderr {err.read_text()[-1000:]!r}"
    with suppress(ValueError):
        result = json.loads(out.read_text())
        if isinstance(result, dict) and result.get("status") == "completed" and script.current is None:
            return ""
    return said


def make_in_bash(arena: Arena, attempts: Sequence[Attempt], patience: float) -> list[Outcome]:
    """The attempts without any agent."""
    outcomes: list[Outcome] = []
    for attempt in attempts:
        assert attempt.line is not None, f"{arena.attacks.name}: Bash cannot make this attempt: {attempt.name}"
        ran = subprocess.Popen(
            ["bash", "-c", attempt.line],
            cwd=arena.project,
            env=arena.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            said = ran.communicate(timeout=PATIENCE)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            said = f"still running after {PATIENCE:.0f} seconds"
        tripped, lag = arena.wait_for_canary(said, patience)
        with suppress(ProcessLookupError):
            os.killpg(ran.pid, signal.SIGKILL)
        ran.communicate()
        outcomes.append(Outcome(attempt, tripped, said, lag))
        arena.reset()
    arena.end_leftovers()
    return outcomes


# ----------------------------------------------------------------------------------------------------------- both sides


def problems(attacks: AttackClass, directory: Path, patience: float = PATIENCE) -> Iterator[str]:
    """What is wrong with a class: an attempt that shows nothing, that gets through, or whose mark is out of date."""
    attempts = [attempt for attempt in attacks.attempts if attempt.possible]
    lags: dict[Attempt, float] = {}
    if attacks.canary != "alive":
        shown = [attempt for attempt in attempts if not attempt.without_canary]
        for outcome in _unguarded(attacks, directory / "unguarded", shown, patience):
            if outcome.tripped:
                lags[outcome.attempt] = outcome.lag
            else:
                yield _told(attacks, outcome, "shows nothing: not even without the guard did it happen that")
    control = Attempt("Bash", json.dumps({"command": attacks.control}), attacks.control)
    arena = Arena(directory / "guarded", attacks, guarded=True)
    made = make_attempts(arena, [control, *attempts], _wave(attacks, "--trust"), partial(_patience, lags))
    first, *outcomes = made
    if first.refused or first.ended:
        yield _told(attacks, first, "is harmless and was not run, so this class shows nothing: not because")
    yield from (problem for outcome in outcomes if (problem := _problem(attacks, outcome)))


def _patience(lags: dict[Attempt, float], attempt: Attempt) -> float:
    """A guarded attempt that was not refused gets three times as long as it took without the guard."""
    return 3 * lags[attempt] + 0.1 if attempt in lags else 0.0


def _problem(attacks: AttackClass, outcome: Outcome) -> str | None:
    attempt = outcome.attempt
    through = outcome.tripped
    if attempt.without_canary:
        through = not outcome.refused
    if attacks.canary == "alive":
        through = bool(outcome.ended)
    if through and not attempt.xfail:
        return _told(attacks, outcome, "gets around the guard:")
    if attempt.xfail and not through:
        return _told(attacks, outcome, "is stopped, so it needs no `xfail` any more; it does not happen that")
    if outcome.ended and attacks.canary != "alive":
        return _told(attacks, outcome, f"ended the agent ({outcome.ended}), whether or not")
    return None


def _told(attacks: AttackClass, outcome: Outcome, what: str) -> str:
    said = outcome.ended or outcome.said
    happened = "it was run" if outcome.attempt.without_canary else CANARIES[attacks.canary]
    return f"{attacks.name}: {outcome.attempt.name!r} {what} {happened}.\n    The result was: {said[:400]!r}"


def _unguarded(attacks: AttackClass, directory: Path, attempts: Sequence[Attempt], patience: float) -> list[Outcome]:
    arena = Arena(directory, attacks, guarded=False)
    if attacks.unguarded == "bash":
        return make_in_bash(arena, attempts, patience)
    approved = attacks.unguarded == "approved"
    command = [sys.executable, APPROVING] if approved else _wave(attacks)
    return make_attempts(arena, attempts, command, lambda _: patience)


def _wave(attacks: AttackClass, *more: str) -> list[str]:
    quiet = ("--output-format", "json", "--permission-mode", "bypassPermissions", "--max-turns", "1000")
    return [WAVE, "-p", "Go.", *quiet, *attacks.flags, *more]


# ---------------------------------------------------------------------------------------------------------------- files


def _write(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    if content.startswith("#!"):
        file.chmod(0o755)


def _copy(source: Path, target: Path) -> None:
    """Links, pipes, modes and times as they are."""
    target.mkdir(exist_ok=True)
    subprocess.run(["cp", "-a", f"{source}/.", str(target)], check=True)


def _entries(directory: Path) -> list[Path]:
    """What is in a directory, also in one that an attempt has closed, or put in the place of another."""
    if directory.is_symlink() or not directory.is_dir():
        _remove(directory)
        directory.mkdir()
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        directory.chmod(0o755)
    return list(directory.iterdir())


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, onerror=_open_up)  # `onexc` needs Python 3.12
    else:
        path.unlink(missing_ok=True)


def _open_up(remove: Callable[..., Any], path: str, _: object) -> None:
    """A directory that an attempt has made read-only, or a file that a process of the attempt makes meanwhile."""
    with suppress(OSError):
        Path(path).parent.chmod(0o755)
        shutil.rmtree(path) if Path(path).is_dir() else Path(path).unlink(missing_ok=True)


def _fingerprint(path: Path) -> Any:
    """Kind, mode and content, of a directory with all that is in it; None if there is nothing."""
    try:
        mode = path.lstat().st_mode
        if path.is_symlink():
            return "link", os.readlink(path), _fingerprint(path.resolve())
        if path.is_dir():
            return "directory", mode, {entry.name: _fingerprint(entry) for entry in sorted(path.iterdir())}
        return ("file", mode, path.read_bytes()) if path.is_file() else ("other", mode)
    except OSError as error:
        return error.errno
