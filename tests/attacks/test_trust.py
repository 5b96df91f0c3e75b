"""Attempts to get rid of a guard between two sessions: one session takes it away or has itself trusted, the next one is
started by somebody who knows nothing of that.

Each attempt runs with real programs, and is shown to work where nothing looks at what was trusted.
"""

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import WAVE, Project, serving
from wave_agent.settings.hook_entries import load_hooks
from wave_agent.settings.sources import project_settings
from wave_agent.settings.trust import TrustStore, candidates, file_digest, record_of
from wave_agent.system.project import Project as Place
from wave_agent.testing import Reply, call

GUARD = "#!/bin/sh\nif grep -q canary; then echo 'not that' >&2; exit 2; fi\n"
BYPASS = ("--permission-mode", "bypassPermissions")


class Guarded(Project):
    """A repository whose second commit brings a guard, which the user trusts."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.git("init", "-q", "-b", "main")
        (self.directory / "readme").write_text("hello\n")
        self.git("add", "-A")
        self.git("commit", "-qm", "one")
        self.settings({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": "./guard.sh"}]}]}})
        self.guard = self.directory / "guard.sh"
        self.guard.write_text(GUARD)
        self.guard.chmod(0o755)

    def git(self, *arguments: str) -> None:
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *arguments], cwd=self.directory, check=True, capture_output=True)

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "a guard")

    def trust(self) -> None:
        project = str(self.directory)
        sources = project_settings(self.home, Place.at(project))
        found = candidates(sources, project, file_digest)
        TrustStore(self.home).trust(project, record_of(sources, project, found))

    def guards(self) -> list[str]:
        """The hooks that would run in a project which nobody remembers anything about."""
        sources = project_settings(self.home, Place.at(str(self.directory)))
        return [hook.name for hook in load_hooks(sources).hooks if hook.enabled]

    def run(self, *lines: str) -> str:
        """A session that nobody attends, in which the agent runs these lines. What the model and the user were told."""
        (self.directory / ".git" / "work.sh").write_text("\n".join(lines))
        program = "import os; os.execlp('sh', 'sh', '.git/work.sh')"  # rules and the guard do not see into it
        (self.directory / ".git" / "work.py").write_text(program)
        with serving(Reply(tool_calls=[call("Bash", command="python3 .git/work.py")]), "Done.") as server:
            done = self.wave("-p", "work", *BYPASS, server=server)
        assert done.returncode == 0, done.stderr
        return server.requests[-1].body["messages"][-1]["content"] + done.stderr

    def next_start(self, *flags: str) -> subprocess.CompletedProcess[str]:
        """The next session wants what the guard is there to prevent."""
        canary = self.directory / ".git" / "canary"
        canary.unlink(missing_ok=True)
        with serving(Reply(tool_calls=[call("Bash", command="touch .git/canary")]), "Done.") as server:
            done = self.wave("-p", "on", *BYPASS, *flags, server=server)
            assert canary.exists() == (done.returncode == 0 and len(server.requests) == 2 and "ran" in _end(server))
        return done

    @property
    def canary(self) -> bool:
        return (self.directory / ".git" / "canary").exists()


def _end(server: Any) -> str:
    told = server.requests[-1].body["messages"][-1]["content"]
    return "denied" if "not that" in told else "ran"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guarded:
    monkeypatch.setenv("PATH", f"{Path(WAVE).parent}:{os.environ['PATH']}")
    return Guarded(tmp_path)


def test_the_guard_holds_as_long_as_nobody_touches_it(project: Guarded) -> None:
    project.commit()
    project.trust()
    assert project.next_start().returncode == 0
    assert not project.canary


COMMITTED = {
    "an older commit": "git checkout -q HEAD~1",
    "a reset": "git reset -q --hard HEAD~1",
    "a new branch": "git switch -q -c evil HEAD~1",
    "a revert": "git -c user.name=a -c user.email=a@b revert --no-edit HEAD",
    "a sparse checkout": "git sparse-checkout set --no-cone '/readme' '!/guard.sh' '!/.wave'",
    "a patch": "git diff HEAD HEAD~1 | git apply",
    "a program": "python3 -c \"import os, shutil; os.remove('guard.sh'); shutil.rmtree('.wave')\"",
    "the settings alone": "git rm -q .wave/settings.json",
    "a hook switched off": """sed -i 's/"command"/"enabled": false, "command"/' .wave/settings.json""",
}
UNCOMMITTED = {"a stash": "git stash -q -u", "a clean": "git clean -qfdx"}


@pytest.mark.parametrize("attempt", [*COMMITTED, *UNCOMMITTED])
def test_a_guard_that_a_session_takes_away_stops_the_next_start(project: Guarded, attempt: str) -> None:
    if attempt in COMMITTED:
        project.commit()
    project.trust()
    project.run({**COMMITTED, **UNCOMMITTED}[attempt])
    assert not project.guards()  # without a memory of what was trusted the next session would run unguarded
    refused = project.next_start()
    assert (refused.returncode, project.canary) == (1, False)
    assert "removed or disabled: PreToolUse: ./guard.sh" in refused.stderr


def test_who_agrees_for_one_run_runs_unguarded_once(project: Guarded) -> None:
    project.commit()
    project.trust()
    project.run(COMMITTED["an older commit"])
    agreed = project.next_start("--trust")
    assert (agreed.returncode, project.canary) == (0, True)
    assert "not as you left it: removed or disabled: PreToolUse: ./guard.sh" in agreed.stderr
    assert project.next_start().returncode == 1


def test_a_rule_that_a_session_takes_away_stops_the_next_start(project: Guarded) -> None:
    project.settings({"permissions": {"deny": ["Bash(touch:*)"], "ask": ["Bash(ls:*)"]}})
    project.trust()
    project.run("echo '{}' > .wave/settings.json")
    refused = project.next_start()
    assert (refused.returncode, project.canary) == (1, False)
    assert "removed or disabled: the rule deny Bash(touch:*)" in refused.stderr
    assert "removed or disabled: the rule ask Bash(ls:*)" in refused.stderr
    assert project.wave("hooks", "trust", "--yes").returncode == 0
    assert (project.next_start().returncode, project.canary) == (0, True)


def test_a_branch_that_was_confirmed_is_not_asked_about_again_unless_a_session_went_there(project: Guarded) -> None:
    project.git("branch", "old")
    project.commit()
    project.trust()
    project.git("checkout", "-q", "old")
    assert project.next_start().returncode == 1
    project.trust()
    assert (project.next_start().returncode, project.canary) == (0, True)
    project.git("checkout", "-q", "main")
    assert (project.next_start().returncode, project.canary) == (0, False)
    project.git("checkout", "-q", "old")
    assert project.next_start().returncode == 0
    project.git("checkout", "-q", "main")
    told = project.run("git checkout -q old")
    assert "switched from main to old, which has fewer guards" in told
    refused = project.next_start()
    assert (refused.returncode, project.canary) == (1, False)
    assert "switched from main to old, which has fewer guards: please confirm again" in refused.stderr


def test_a_new_branch_is_compared_with_the_one_it_comes_from_not_with_the_smallest(project: Guarded) -> None:
    project.git("branch", "old")
    project.commit()
    project.trust()
    project.git("checkout", "-q", "old")
    project.trust()
    project.git("checkout", "-q", "main")
    project.run("git switch -q -c evil && rm -r .wave && git checkout -q --detach")
    assert project.next_start().returncode == 1


# ---------------------------------------------------------------------------------------------------- trusting oneself

REWRITE = "printf '#!/bin/sh\\nexit 0\\n' > guard.sh"
CLEAN = 'env -i PATH="$PATH" HOME="$HOME" WAVE_HOME="$WAVE_HOME"'
UNTIL_DONE = "until [ -e .git/done ]; do sleep 0.05; done"
DAEMON = (
    f"setsid -f {CLEAN} sh -c 'wave hooks trust --yes > .git/told 2>&1; touch .git/done' >/dev/null 2>&1 </dev/null"
)
TERMINAL = shlex.quote(
    "import pty, os; read = lambda fd: os.read(fd, 1024); pty.spawn(['wave', 'hooks', 'trust', '--yes'], read); "
    "open('.git/done', 'w')"
)
FORGERY = shlex.quote(
    "import json, hashlib, os; f = os.environ['WAVE_HOME'] + '/trust.json'; t = open(f).read(); "
    "h = lambda text: hashlib.sha256(text).hexdigest() + '+x'; "
    f"t = t.replace(h({GUARD.encode()!r}), h(open('guard.sh', 'rb').read())); open(f, 'w').write(t)"
)


def test_a_person_can_trust_what_was_rewritten(project: Guarded) -> None:
    """What the attempts below want: it would work."""
    project.commit()
    project.trust()
    project.guard.write_text("#!/bin/sh\nexit 0\n")
    assert project.next_start().returncode == 1
    assert project.wave("hooks", "trust", "--yes").returncode == 0
    assert (project.next_start().returncode, project.canary) == (0, True)


@pytest.mark.parametrize(
    "line",
    [
        "wave hooks trust --yes",
        "env -u WAVE_PARENT wave hooks trust --yes",
        "WAVE_PARENT= wave hooks trust --yes",
        f"{CLEAN} setsid wave hooks trust --yes",
        "wave hooks trust --revoke; rm -r .wave",
        "env -u WAVE_PARENT script -qec 'wave hooks trust --yes' /dev/null",
        f"{DAEMON}; {UNTIL_DONE}; cat .git/told",
        f"{DAEMON.replace('--yes', '--revoke')}; {UNTIL_DONE}; cat .git/told; rm -r .wave",
        f"setsid -f {CLEAN} python3 -c {TERMINAL} >.git/told 2>&1 </dev/null; {UNTIL_DONE}; cat .git/told",
        f"python3 -c {FORGERY}",
        'rm "$WAVE_HOME/trust.json"; rm -r .wave',
    ],
)
def test_a_session_that_rewrites_its_guard_cannot_have_it_trusted(project: Guarded, line: str) -> None:
    project.commit()
    project.trust()
    told = project.run(REWRITE, line)
    evidence = ("is for a person", "an agent must not change its own guards", "asks for confirmation", "asks you to")
    assert any(one in told for one in evidence), told
    refused = project.next_start()
    assert (refused.returncode, project.canary) == (1, False), told + refused.stderr


def test_nor_by_a_process_that_outlives_the_session(project: Guarded) -> None:
    """It began while the session ran. How it got away from the agent, which ends what it knows of, does not matter."""
    project.commit()
    project.trust()
    place = project.directory / ".git"
    os.mkfifo(place / "up")
    os.mkfifo(place / "gate")
    work = "sh .git/work.sh"
    (place / "work.sh").write_text(f"{REWRITE}; echo up > .git/up; until [ -e .git/go ]; do sleep 0.05; done")
    with serving(Reply(tool_calls=[call("Bash", command=work)]), "Done.") as server:
        session = project.command("-p", "work", *BYPASS, server=server)
        assert (place / "up").read_text() == "up\n"
        waiting = subprocess.Popen(
            ["sh", "-c", "read x < .git/gate; wave hooks trust --yes"],
            cwd=project.directory,
            env=project.environment(None),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        (place / "go").touch()
        assert session.communicate(timeout=60)[1] == ""
    (place / "gate").write_text("go\n")
    told = waiting.communicate(timeout=60)[1]
    assert "the process that it comes from was started while a session of this project ran" in told
    assert (project.next_start().returncode, project.canary) == (1, False)


# ------------------------------------------------------------------------------------------------------- agents below


def nested(project: Guarded, line: str) -> str:
    """The agent starts another one, which wants what the guard is there to prevent."""
    project.commit()
    project.trust()
    (project.directory / ".git" / "work.sh").write_text(line)
    canary = project.directory / ".git" / "canary"
    inner = f"touch {shlex.quote(str(canary))}"

    def answer(request: Any) -> Any:
        messages = request.body["messages"]
        if messages[-1]["role"] == "tool":
            return "Done."
        command = "sh .git/work.sh" if messages[1]["content"] == "outer" else inner
        return Reply(tool_calls=[call("Bash", command=command)])

    with serving(*[answer] * 4) as server:
        done = project.wave("-p", "outer", *BYPASS, server=server)
        told = [request.body["messages"][-1]["content"] for request in server.requests]
    assert done.returncode == 0, done.stderr
    return "\n".join(told)


START = f"wave -p inner {' '.join(BYPASS)}"
WEAKER = "mkdir -p .git/bin; printf '#!/bin/sh\\nexit 1\\n' > .git/bin/grep; chmod +x .git/bin/grep"


@pytest.mark.parametrize(
    "line",
    [
        f"git init -q a; cd a; {START}",
        f"git init -q a; cd a; mkdir .wave; echo '{{}}' > .wave/settings.json; {START} --trust",
        f"HOME=$PWD {START}",
        f"mkdir a; cd a; HOME=$PWD {START}",
        f"git worktree add -q a HEAD~1; cd a; {START}",
        f"rm -r .wave; {START} --trust",
        f"WAVE_HOME=$PWD/.git/home {START} --trust",
        f"{START} --no-project-hooks",
        f"echo '{{\"allowManagedHooksOnly\": true}}' > .git/m.json; WAVE_MANAGED_SETTINGS=.git/m.json {START}",
        f"{WEAKER}; PATH=$PWD/.git/bin:$PATH {START}",
        f"echo 'grep() {{ return 1; }}' > .git/env; BASH_ENV=$PWD/.git/env ENV=$PWD/.git/env {START}",
    ],
)
def test_an_agent_that_the_agent_starts_has_the_same_guard(project: Guarded, line: str) -> None:
    nested(project, line)
    assert not project.canary


def test_what_they_want_happens_without_the_agent_above(project: Guarded) -> None:
    """The same lines, typed by a person: the guard is not there, or is talked out of it."""
    project.commit()
    project.trust()
    for line, where in (("git init -q a", "a"), (WEAKER, ".")):
        subprocess.run(["sh", "-c", line], cwd=project.directory, check=True)
        canary = project.directory / ".git" / "canary"
        with serving(Reply(tool_calls=[call("Bash", command=f"touch {canary}")]), "Done.") as server:
            env = {"PATH": f"{project.directory}/.git/bin:{os.environ['PATH']}"} if where == "." else {}
            trust = ("--trust",) if where == "." else ()  # that it is another grep would be noticed
            done = project.wave("-p", "on", *BYPASS, *trust, "--cwd", where, server=server, **env)
        assert (done.returncode, canary.exists()) == (0, True), done.stderr
        canary.unlink()


def test_settings_of_the_user_that_a_session_rewrites_are_not_those_of_an_agent_below(project: Guarded) -> None:
    project.home.mkdir()
    (project.home / "settings.json").write_text(json.dumps({"permissions": {"deny": ["Bash(ls:*)"]}}))
    told = nested(project, f'echo "{{}}" > "$WAVE_HOME/settings.json"; {START}')
    assert "settings.json has changed since the parent agent started" in told
    assert not project.canary
