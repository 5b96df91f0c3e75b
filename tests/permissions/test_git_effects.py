"""Which git commands take a guard away, asked of real repositories."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from wave_agent.permissions.git.effects import BLURS, EFFECTS, HARMLESS, GitLine, changed_by_git, meddles
from wave_agent.system.trusted_git import find_git
from wave_agent.tools.base import ToolContext
from wave_agent.tools.bash import Bash
from wave_agent.tools.shells import Shells

GIT = shutil.which("git") or "git"
PATIENT = 20.0
"""Seconds: these tests are about the answers. The limit has a test of its own."""


class Place:
    """A repository with a guard in it, and a file that is none."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.guard = root / ".wave/hooks/guard.sh"
        self.settings = root / ".wave/settings.json"

    def git(self, *words: str, cwd: Path | None = None) -> str:
        own = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.root.parent)}
        names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
        env = {**os.environ, **own, **{f"GIT_{name}": "x@y" for name in names}}
        done = subprocess.run([GIT, *words], cwd=cwd or self.root, env=env, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def conflict(self, *words: str) -> None:
        """Git stops halfway."""
        with pytest.raises(subprocess.CalledProcessError):
            self.git(*words)

    def write(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, name: str, text: str) -> None:
        self.write(name, text)
        self.git("add", "-f", name)
        self.git("commit", "-q", "-m", f"{name}: {text}")

    def asks(self, line: str, cwd: Path | None = None, seconds: float = PATIENT, **variables: str) -> str | None:
        """The file that the line would change."""
        home = {"HOME": str(self.root.parent), "PATH": os.environ["PATH"], **variables}
        context = ToolContext(project_dir=cwd or self.root, environment=home, outputs=self.root)
        tool, given = Bash(Shells()), {"command": line}
        runs, assigned = tool.git_runs(given, context)
        found = changed_by_git(
            GitLine(runs=runs, assigned=tuple(assigned), meddles=meddles(tool.written_paths(given, context))),
            [str(self.guard), str(self.settings)],
            [str(self.root / ".wave/hooks"), str(self.root / ".git/hooks")],
            beside=[str(self.root / "scripts")],
            program=GIT,
            environment=home,
            seconds=seconds,
        )
        return None if found is None else os.path.relpath(found, os.path.realpath(self.root))


@pytest.fixture
def place(tmp_path: Path, pattern: Path) -> Place:
    """On `main`: readme, then the guard, then another commit. `old` is from before the guard, `side` changes it,
    `other` changes only the readme. Nothing is changed."""
    shutil.copytree(pattern, tmp_path / "project", symlinks=True)
    return Place(tmp_path / "project")


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: git takes its time."""
    found = Place(tmp_path_factory.mktemp("pattern"))
    found.git("init", "-q", "-b", "main")
    found.commit("readme", "one")
    found.git("branch", "old")
    found.write(".wave/settings.json", "{}")
    found.git("add", ".")
    found.commit(".wave/hooks/guard.sh", "exit 2")
    found.git("checkout", "-q", "-b", "side")
    found.commit(".wave/hooks/guard.sh", "exit 0")
    found.git("checkout", "-q", "-b", "other", "main")
    found.commit("readme", "two")
    found.git("checkout", "-q", "main")
    found.commit("code", "1")
    return found.root


def nothing(_: Place) -> None:
    pass


def edited(place: Place) -> None:
    place.write("readme", "changed")
    place.write("new", "untracked")


def guard_edited(place: Place) -> None:
    place.guard.write_text("exit 2 # mine")


def untracked(place: Place) -> None:
    place.git("rm", "-q", "-r", "--cached", ".wave")
    place.git("commit", "-q", "-m", "the guard is not for all")
    edited(place)


def ignored(place: Place) -> None:
    untracked(place)
    place.write(".gitignore", ".wave\nbuild\n")


def stashed(place: Place) -> None:
    guard_edited(place)
    place.git("stash", "-q")


def cloned(place: Place) -> None:
    """`origin` is a copy in which `main` and `side` have gone on; all was fetched."""
    there = place.root.parent / "origin"
    place.git("clone", "-q", str(place.root), str(there))
    for branch, name in (("main", "readme"), ("side", ".wave/hooks/guard.sh")):
        place.git("checkout", "-q", branch, cwd=there)
        (there / name).write_text("gone on")
        place.git("commit", "-q", "-a", "-m", "on", cwd=there)
    place.git("remote", "add", "origin", str(there))
    place.git("fetch", "-q")
    for branch in ("main", "side"):
        place.git("branch", "-q", "-u", f"origin/{branch}", branch)


def picking(place: Place) -> None:
    """One commit is being picked, and is in conflict."""
    place.commit("readme", "mine")
    place.conflict("cherry-pick", "other")


def reverting(place: Place) -> None:
    place.commit("readme", "mine")
    place.commit("readme", "again")
    place.conflict("revert", "--no-edit", "HEAD~1")


def picking_two(place: Place) -> None:
    """The first of two is in conflict; neither changes the guard."""
    place.git("checkout", "-q", "other")
    place.commit("more", "1")
    place.git("checkout", "-q", "main")
    place.commit("readme", "mine")
    place.conflict("cherry-pick", "other~1", "other")


def picking_guard_next(place: Place) -> None:
    """The first of two is in conflict; the second changes the guard."""
    place.commit("readme", "mine")
    place.conflict("cherry-pick", "other", "side")


def picking_guard(place: Place) -> None:
    """The commit that is in conflict changes the guard as well."""
    place.git("checkout", "-q", "side")
    place.write(".wave/settings.json", '{"a": 1}')
    place.git("add", "-A")
    place.commit("readme", "theirs")
    place.git("checkout", "-q", "main")
    place.commit("readme", "mine")
    place.conflict("cherry-pick", "side")


def guard_picked(place: Place) -> None:
    """The first pick has changed the guard, the second is in conflict."""
    place.commit("readme", "mine")
    place.conflict("cherry-pick", "side", "other")


def list_replaced(place: Place) -> None:
    picking_two(place)
    (place.root / ".git/sequencer/todo").write_text(f"pick {place.git('rev-parse', 'side')} x\n")


def rebasing(place: Place) -> None:
    place.commit("readme", "mine")
    place.conflict("rebase", "other")


def rebase_list_replaced(place: Place) -> None:
    rebasing(place)
    (place.root / ".git/rebase-merge/git-rebase-todo").write_text(f"pick {place.git('rev-parse', 'side')} x\n")


def applying(place: Place) -> None:
    """A mailbox is being applied, and is in conflict."""
    mail = place.git("format-patch", "--stdout", "-1", "other")
    (place.root.parent / "mail").write_text(mail + "\n")
    place.commit("readme", "mine")
    place.conflict("am", "../mail")


def applying_guard_next(place: Place) -> None:
    mail = place.git("format-patch", "--stdout", "-1", "other"), place.git("format-patch", "--stdout", "-1", "side")
    (place.root.parent / "mail").write_text("\n".join(mail) + "\n")
    place.commit("readme", "mine")
    place.conflict("am", "../mail")


def bisecting(place: Place) -> None:
    for number in range(4):
        place.commit("code", f"{number}")
    place.git("bisect", "start", "HEAD", "HEAD~3")


def bisecting_past_the_guard(place: Place) -> None:
    place.commit("code", "2")
    place.commit("code", "3")
    place.git("bisect", "start", "--no-checkout", "HEAD", "old")


def two_stashes(place: Place) -> None:
    """The newer one leaves the guard alone."""
    stashed(place)
    place.write("readme", "changed")
    place.git("stash", "-q")


def readme_stashed(place: Place) -> None:
    place.write("readme", "changed")
    place.git("stash", "-q")


def guard_gone(place: Place) -> None:
    """Removed from the work tree, tracked still."""
    shutil.rmtree(place.root / ".wave")


def module_staged(place: Place) -> None:
    """The index has a module beside a guard that the work tree does not have."""
    place.write("scripts/json.py", "evil")
    place.git("add", "scripts")
    shutil.rmtree(place.root / "scripts")


def linked_above(place: Place) -> None:
    """A branch has a link in the place of a directory that is not there."""
    place.git("checkout", "-q", "old")
    place.write("evil/settings.json", "{}")
    (place.root / ".wave").symlink_to("evil")
    place.git("checkout", "-q", "-b", "linked")
    place.git("add", ".wave")
    place.git("commit", "-q", "-m", "a link")
    place.git("checkout", "-q", "old")


def there_and_back(place: Place) -> None:
    """The guard was changed, and changed back."""
    place.commit(".wave/hooks/guard.sh", "exit 0")
    place.commit(".wave/hooks/guard.sh", "exit 2")


_STEPS = ("--abort", "--continue", "--skip", "--quit")
PASSES = [
    *((nothing, f"git {name} {step}") for name in ("rebase", "cherry-pick", "revert", "am") for step in _STEPS),
    *((picking, f"git cherry-pick {step}") for step in _STEPS),
    *((reverting, f"git revert {step}") for step in _STEPS),
    *((picking_two, f"git cherry-pick {step}") for step in _STEPS),
    *((rebasing, f"git rebase {step}") for step in _STEPS),
    *((applying, f"git am {step}") for step in _STEPS),
    (picking, "git add readme && git -c core.editor=true cherry-pick --continue"),
    (picking_guard_next, "git cherry-pick --quit"),
    (nothing, "git cherry-pick other || git cherry-pick --abort"),
    (nothing, "git revert --no-edit HEAD || git revert --abort"),
    (nothing, "git rebase other || git rebase --abort"),
    (nothing, "git bisect reset"),
    (nothing, "git bisect start HEAD HEAD~1"),
    (nothing, "git bisect start && git bisect bad && git bisect good HEAD~1"),
    (nothing, "git bisect start HEAD HEAD~1 && git bisect run python3 -m pytest -q; git bisect reset"),
    (bisecting, "git bisect good"),
    (bisecting, "git bisect bad HEAD"),
    (bisecting, "git bisect skip"),
    (bisecting, "git bisect run make test"),
    (bisecting, "git bisect reset"),
    (bisecting_past_the_guard, "git bisect log"),
    (nothing, "GIT_SEQUENCE_EDITOR=: git rebase -i HEAD~1"),
    (nothing, "GIT_SEQUENCE_EDITOR='true' git rebase -i HEAD~1"),
    (nothing, "git -c sequence.editor=: rebase -i HEAD~1"),
    (nothing, "GIT_EDITOR=true git rebase --interactive HEAD~1"),
    (nothing, "EDITOR=vim git rebase HEAD~1"),
    (readme_stashed, "git stash branch newb"),
    (two_stashes, "git stash branch newb"),
    (nothing, "git stash branch newb"),
    (nothing, "git branch -f conf2 HEAD && git checkout conf2"),
    (nothing, "git branch -f other main && git checkout other && git checkout -"),
    (nothing, "git switch -c a && git commit -am x && git switch -c b HEAD~1 && git commit -am y && git rebase a"),
    (nothing, "git switch -c a && git commit -am x && git checkout main && git merge a && git branch -d a"),
    (nothing, "git switch other && git switch main && git switch -"),
    (nothing, "git commit --allow-empty -m x && git reset --hard HEAD~1"),
    (nothing, "rm -f .git/index.lock && git checkout other"),
    *((nothing, f"git {words}") for words in ("restore --staged .", "restore -S .", "checkout -- .", "restore -- .")),
    (nothing, "git checkout main -- ."),
    (edited, "git checkout other -- ."),
    (edited, "git restore --source=other --staged --worktree ."),
    (guard_edited, "git restore --staged ."),
    (guard_gone, "git restore --staged ."),
    (edited, "git restore --staged . && git restore ."),
    (edited, "git add readme && git reset && git checkout -- ."),
    (edited, "git reset HEAD readme && git checkout readme && git clean -fd"),
    (edited, "git reset -q -- readme && git stash -u"),
    (edited, "git reset --soft HEAD~1 && git stash"),
    (guard_edited, "git reset readme && git checkout readme"),
    (guard_gone, "git restore readme"),
    (guard_gone, "git checkout old -- ."),
    (linked_above, "git checkout old -- ."),
    (nothing, "git checkout -b x"),
    (nothing, "git pull"),
    (nothing, "git cherry-pick 26c6d4f2f611690a29939044e897fb1f5221c2fb"),
    (nothing, "git switch -c x && git commit --allow-empty -m y"),
    (nothing, "git checkout other"),
    (nothing, "git switch other && git switch -"),
    (nothing, "git stash; git stash pop"),
    (nothing, "git reset --hard"),
    (nothing, "git reset --hard HEAD~1"),
    (nothing, "git checkout HEAD~1 && make && git checkout main"),
    (nothing, "git merge other"),
    (nothing, "git rebase other"),
    (nothing, "git cherry-pick other"),
    (nothing, "git revert --no-edit HEAD"),
    (nothing, "git clean -fdx"),
    (nothing, "git status && git log -3 && git diff && git push"),
    (nothing, "git branch x; git tag v1; git add -A && git commit -m x"),
    (nothing, "git apply --check x.patch"),
    (nothing, "git sparse-checkout list; git stash list; git worktree list; git bisect log"),
    (nothing, "git rm readme && git commit -m x"),
    (nothing, "git mv readme notes"),
    (nothing, "git restore readme"),
    (nothing, "git -c advice.detachedHead=false checkout other"),
    (nothing, "GIT_EDITOR=true git merge other"),
    (nothing, "git submodule update --init"),
    (nothing, "cd /usr && git stash -u"),
    (edited, "git stash"),
    (edited, "git stash -u"),
    (edited, "git stash && git checkout other && git stash pop"),
    (edited, "git checkout ."),
    (edited, "git checkout -- readme"),
    (edited, "git restore ."),
    (edited, "git reset --hard"),
    (edited, "git clean -fd"),
    (edited, "git add -A && git commit -m x && git stash && git checkout other"),
    (guard_edited, "git checkout -b x && git commit -am x"),
    (guard_edited, "git stash push readme"),
    (untracked, "git stash"),
    (untracked, "git reset --hard"),
    (untracked, "git clean -fd new"),
    (ignored, "git stash -u"),
    (ignored, "git clean -fd"),
    (ignored, "git clean -fdx build"),
    (ignored, "git add -A && git stash"),
    (cloned, "git pull"),
    (cloned, "git pull --rebase origin main"),
    (cloned, "git fetch && git merge origin/main"),
    (cloned, "git checkout main && git pull"),
]

ASKS = [
    *((picking_guard_next, f"git cherry-pick {step}") for step in ("--abort", "--continue", "--skip")),
    *((picking_guard, f"git cherry-pick {step}") for step in ("--abort", "--continue", "--skip")),
    *((guard_picked, f"git cherry-pick {step}") for step in ("--abort", "--cont", "--skip")),
    *((list_replaced, f"git cherry-pick {step}") for step in ("--continue", "--skip")),
    *((rebase_list_replaced, f"git rebase {step}") for step in ("--continue", "--skip")),
    *((applying_guard_next, f"git am {step}") for step in ("--continue", "--skip", "--resolved", "-r")),
    (picking_two, "echo pick side > .git/sequencer/todo; git cherry-pick --continue"),
    (picking_two, "cd .git/sequencer && cp ~/x todo && cd ../.. && git cherry-pick --continue"),
    (picking, "git reset -q --soft side; git cherry-pick --abort"),
    (nothing, "git cherry-pick side || git cherry-pick --abort"),
    (nothing, "git cherry-pick -n other; git cherry-pick main..side"),
    (bisecting_past_the_guard, "git bisect good"),
    (bisecting_past_the_guard, "git bisect run true"),
    (bisecting_past_the_guard, "git bisect next"),
    (bisecting, "git bisect reset old"),
    (bisecting, "git bisect good old"),
    (bisecting, "git bisect replay log"),
    (nothing, "git bisect start && git bisect bad && git bisect good old"),
    (nothing, "git bisect start main old src"),
    (nothing, "git bisect start main old -- src"),
    (nothing, "git bisect start HEAD HEAD~1; git bisect reset old"),
    (there_and_back, "git bisect start HEAD HEAD~2"),
    (there_and_back, "git commit --allow-empty -m x && git reset --hard HEAD~2"),
    (there_and_back, "git commit --allow-empty -m x && git checkout main~2"),
    (nothing, "git checkout other && git checkout HEAD~2"),
    (nothing, "git fetch . side && git reset --hard FETCH_HEAD"),
    (nothing, "git branch -f other side && git checkout other"),
    (nothing, "git branch x side; git checkout x"),
    (nothing, "git branch x side; git checkout refs/heads/x"),
    (nothing, "git branch x side; git checkout heads/x~0"),
    (nothing, "git branch -f other old && git checkout other~0"),
    (nothing, "git branch -M side other && git checkout other"),
    (nothing, "git switch -C other old"),
    (stashed, "git stash branch x stash@{0}"),
    (two_stashes, "git stash drop && git stash pop"),
    (two_stashes, "git stash pop; git stash pop"),
    (two_stashes, "for i in 1 2; do git stash pop; done"),
    (two_stashes, "f() { git stash pop; }; f; f"),
    (nothing, "git reset --hard HEAD~1; git reset --hard HEAD~1"),
    (nothing, "for i in 1 2; do git checkout HEAD~1; done"),
    (two_stashes, "git stash branch x 1"),
    (nothing, "GIT_SEQUENCE_EDITOR='sed -i 1iexec' git rebase -i HEAD~1"),
    (nothing, "GIT_SEQUENCE_EDITOR=:x git rebase -i HEAD~1"),
    (nothing, "GIT_SEQUENCE_EDITOR=:; GIT_SEQUENCE_EDITOR=vim git rebase -i HEAD~1"),
    (nothing, "GIT_EDITOR='sed -i 1iexec' git rebase -i HEAD~1"),
    (nothing, "export EDITOR=./evil; git rebase --inter HEAD~1"),
    (nothing, "git -c sequence.editor=./evil rebase -i HEAD~1"),
    (nothing, "git restore --source=side --staged --worktree ."),
    (nothing, "git checkout side -- ."),
    (nothing, "git restore --source=$x ."),
    (guard_gone, "git restore ."),
    (guard_gone, "git checkout ."),
    (guard_gone, "git checkout -- ."),
    (guard_gone, "git checkout HEAD -- ."),
    (guard_gone, "git restore '*'"),
    (guard_gone, "git restore $x -- ."),
    (guard_gone, "git restore .w*"),
    (guard_gone, "git -C .. --git-dir=x checkout $x -- project"),
    (guard_edited, "git restore -SW ."),
    (guard_edited, "git restore --staged --work ."),
    (linked_above, "git checkout linked -- ."),
    (linked_above, "git restore -s linked ."),
    (nothing, "git restore --staged --source=side . && git restore ."),
    (nothing, "git restore --staged --source=old . && git clean -fd"),
    (nothing, "git restore -S -s old .wave; git stash -u"),
    (nothing, "git reset side -- . && git checkout ."),
    (nothing, "git reset side .wave && git checkout ."),
    (nothing, "git reset old .wave; git clean -fd"),
    (nothing, "git reset --soft old && git stash"),
    (guard_gone, "git restore --staged --source=side . && git restore ."),
    (nothing, "git checkout old"),
    (nothing, "git checkout HEAD~2"),
    (nothing, "git switch --detach side"),
    (nothing, "git switch side"),
    (nothing, "git checkout -b x old"),
    (nothing, "git checkout -qf HEAD~2"),
    (nothing, "git checkout old -- ."),
    (nothing, "git checkout old .wave"),
    (nothing, "git reset --hard HEAD~2"),
    (nothing, "git reset --har old"),
    (nothing, "git reset --keep old"),
    (nothing, "git reset --mixed old && git clean -fd"),
    (nothing, "git reset old; git stash -u"),
    (nothing, "git revert --no-edit HEAD~1"),
    (nothing, "git revert HEAD~2..HEAD"),
    (nothing, "git cherry-pick side"),
    (nothing, "git merge side"),
    (nothing, "git merge --no-commit -X subtree=.wave other"),
    (nothing, "git rebase side"),
    (nothing, "git rebase --onto old other"),
    (nothing, "git rm -r .wave"),
    (nothing, "git rm '*.sh'"),
    (nothing, "git rm ':(top).wave/hooks/guard.sh'"),
    (nothing, "git rm --cached .wave/hooks/guard.sh && git clean -f"),
    (nothing, "git mv .wave away"),
    (nothing, "git restore --source=old ."),
    (nothing, "git restore -s side -- .wave/hooks"),
    (nothing, "git sparse-checkout set src"),
    (nothing, "git sparse-checkout init"),
    (nothing, "git read-tree -u --reset old"),
    (nothing, "git switch --orphan x"),
    (nothing, "git bisect start HEAD old"),
    (nothing, "git branch -f x old && git checkout x"),
    (nothing, "git update-ref refs/heads/main old && git reset --hard"),
    (nothing, "git symbolic-ref HEAD refs/heads/side && git reset --hard"),
    (nothing, "git checkout $(git rev-parse old)"),
    (nothing, "cat lines | sh; echo git checkout old | unknown"),
    (nothing, "b=old; git checkout $b"),
    (nothing, "git checkout \"$1\""),
    (nothing, "git unheard-of"),
    (nothing, "git -c core.worktree=/tmp checkout other"),
    (nothing, "GIT_INDEX_FILE=/tmp/x git checkout other"),
    (nothing, "export GIT_WORK_TREE=.; git checkout other"),
    (nothing, "env GIT_DIR=.git git checkout other"),
    (nothing, "git apply <x.patch"),
    (nothing, "cat x.patch | git apply"),
    (nothing, "git am x.mbox"),
    (nothing, "git filter-branch --tree-filter 'rm -rf .wave' HEAD"),
    (nothing, "git pull /tmp/elsewhere main"),
    (nothing, "git merge-file .wave/hooks/guard.sh a b"),
    (nothing, "git worktree remove --force ."),
    (nothing, "cd .wave/hooks && git checkout old"),
    (nothing, "cd /tmp; git -C \"$OLDPWD\" checkout old"),
    (nothing, "bash -c 'git checkout old'"),
    (nothing, "sudo git checkout old"),
    (nothing, "true && (git checkout old)"),
    (guard_edited, "git stash"),
    (guard_edited, "git checkout ."),
    (guard_edited, "git checkout -f"),
    (guard_edited, "git reset --hard"),
    (guard_edited, "git restore ."),
    (guard_edited, "git add -A && git stash"),
    (guard_edited, "git commit -am x && git checkout HEAD~1"),
    (guard_edited, "git checkout-index -fa"),
    (guard_edited, "git merge --autostash other"),
    (untracked, "git stash -u"),
    (untracked, "git stash --include"),
    (untracked, "git clean -fd"),
    (untracked, "git clean -f ."),
    (untracked, "git clean -fd .wave"),
    (untracked, "git add -A && git stash"),
    (untracked, "git checkout other"),
    (ignored, "git stash -a"),
    (ignored, "git clean -fdx"),
    (ignored, "git clean -ffdX"),
    (ignored, "git add -f .wave && git stash"),
    (stashed, "git stash pop"),
    (stashed, "git stash apply 0"),
    (stashed, "git stash branch x"),
    (cloned, "git checkout side"),
    (cloned, "git pull origin side"),
    (cloned, "git merge origin/side"),
    (cloned, "git fetch origin side:other && git checkout other"),
]  # fmt: skip


@pytest.mark.parametrize(("prepare", "line"), PASSES, ids=lambda one: one if isinstance(one, str) else one.__name__)
def test_a_command_that_leaves_the_guard_alone_does_not_ask(
    place: Place, prepare: Callable[[Place], None], line: str
) -> None:
    prepare(place)
    assert place.asks(line) is None


@pytest.mark.parametrize(("prepare", "line"), ASKS, ids=lambda one: one if isinstance(one, str) else one.__name__)
def test_a_command_that_can_change_the_guard_asks(place: Place, prepare: Callable[[Place], None], line: str) -> None:
    prepare(place)
    found = place.asks(line)
    assert found is not None
    assert found.startswith(".wave")


def test_where_no_guard_is_nothing_is_asked_of_git(place: Place) -> None:
    shutil.rmtree(place.root / ".wave")
    assert place.asks("git reset --hard old") is None


@pytest.mark.parametrize("line", ["git restore .", "git checkout -- scripts", "git checkout ."])
def test_a_module_is_not_restored_beside_a_guard(place: Place, line: str) -> None:
    module_staged(place)
    assert place.asks(line) == "scripts/json.py"
    assert place.asks("git restore readme") is None


def test_an_alias_is_what_it_stands_for(place: Place) -> None:
    place.git("config", "alias.co", "checkout")
    place.git("config", "alias.st", "status --short")
    place.git("config", "alias.gone", "!rm -rf .wave")
    assert [place.asks(f"git {words}") is None for words in ("co other", "co old", "st", "gone")] == [
        *(True, False),
        *(True, False),
    ]


def test_a_patch_is_judged_by_the_names_in_it(place: Place) -> None:
    (place.root / "one.patch").write_text(place.git("diff", "main", "other", "--", "readme") + "\n")
    (place.root / "two.patch").write_text(place.git("diff", "main", "side") + "\n")
    (place.root / "three.patch").write_text(place.git("format-patch", "--stdout", "-1", "side") + "\n")
    assert place.asks("git apply one.patch") is None
    assert place.asks("git apply -p2 --directory=.wave two.patch") == ".wave/hooks/guard.sh"
    assert place.asks("git am three.patch") == ".wave/hooks/guard.sh"


def test_another_repository_with_its_work_tree_here_is_seen(place: Place) -> None:
    there = place.root.parent / "elsewhere"
    place.git("clone", "-q", str(place.root), str(there))
    place.git("config", "core.worktree", str(place.root), cwd=there)
    guard_edited(place)
    assert place.asks("git checkout .", cwd=there) == ".wave/hooks/guard.sh"
    assert place.asks(f"git --git-dir={there}/.git --work-tree=. reset --hard") == ".wave/hooks/guard.sh"


def test_git_that_does_not_answer_in_time_is_a_question(place: Place) -> None:
    assert place.asks("git checkout other", seconds=0.0) == ".wave/hooks/guard.sh"
    assert place.asks("git status", seconds=0.0) is None


def test_a_variable_of_the_session_that_leads_git_elsewhere_is_a_question(place: Place) -> None:
    assert place.asks("git checkout other", GIT_DIR="/elsewhere") is not None
    assert place.asks("git checkout other", GIT_PS1_SHOWDIRTYSTATE="1") is None


def test_asking_runs_nothing_that_the_repository_configures(place: Place, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\necho \"$0 $*\" >>'{canary}'\ncat\n")
    trap.chmod(0o755)
    cloned(place)
    guard_edited(place)
    place.write(".gitattributes", "* filter=evil diff=evil merge=evil\n")
    place.write(".git/info/attributes", "* filter=evil diff=evil\n")
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"):
        shutil.copy(trap, place.root / ".git/hooks" / hook)
    for name in (
        *("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "core.gitProxy"),
        *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv", "diff.evil.command"),
        *("merge.evil.driver", "diff.external", "credential.helper", "remote.origin.uploadpack", "pager.config"),
        *("uploadpack.packObjectsHook", "alias.ls-tree", "alias.rev-parse", "sequence.editor"),
    ):
        place.git("config", name, str(trap))
    place.git("config", "core.hooksPath", str(place.root / ".git/hooks"))
    place.git("config", "remote.origin.promisor", "true")
    place.git("config", "remote.origin.url", f"ext::{trap}")
    canary.unlink(missing_ok=True)
    os.utime(place.root / "readme")

    for line in {line.split()[1]: line for _, line in (*PASSES, *ASKS) if line.startswith("git ")}.values():
        place.asks(line)
    assert not canary.exists(), canary.read_text()
    # The trap works: git itself steps into it.
    subprocess.run([GIT, "status"], cwd=place.root, capture_output=True, check=False)
    assert canary.exists()


def test_objects_that_are_missing_are_not_fetched(place: Place, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\n: >'{canary}'\n")
    trap.chmod(0o755)
    missing = place.git("rev-parse", "side^{tree}")
    (place.root / ".git/objects" / missing[:2] / missing[2:]).unlink()
    for name, value in {
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{trap}",
        "protocol.ext.allow": "always",
        "core.repositoryFormatVersion": "1",
    }.items():
        place.git("config", name, value)
    assert place.asks("git checkout side") is not None
    assert not canary.exists()
    subprocess.run([GIT, "checkout", "side"], cwd=place.root, capture_output=True, check=False)
    assert canary.exists()


def test_a_git_inside_the_project_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    shutil.copy(GIT, tmp_path / "bin/git")
    assert find_git(f"bin:.:{tmp_path}/bin", str(tmp_path)) is None
    assert find_git(f"bin:.:{tmp_path}/bin:{os.path.dirname(GIT)}", str(tmp_path)) == GIT


def test_a_git_that_any_user_could_have_put_there_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    shutil.copy(GIT, tmp_path / "bin/git")
    assert find_git(f"{tmp_path}/bin", "/elsewhere") == f"{tmp_path}/bin/git"
    (tmp_path / "bin").chmod(0o777)
    assert find_git(f"{tmp_path}/bin", "/elsewhere") is None
    assert find_git(f"{tmp_path}/bin:{os.path.dirname(GIT)}", "/elsewhere") == GIT


def test_a_relative_git_is_not_asked(tmp_path: Path) -> None:
    assert find_git(f"bin:.:{os.path.dirname(GIT)}", str(tmp_path)) == GIT


def test_no_command_is_in_two_tables() -> None:
    assert len({*HARMLESS, *EFFECTS, *BLURS}) == len(HARMLESS) + len(EFFECTS) + len(BLURS)
