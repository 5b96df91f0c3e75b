"""`/hooks`: change a hook in your own editor, and see at once whether it still works.

The session itself never runs what is not trusted: a project's script that was changed is asked about, and a changed
entry in the settings counts from the next session on.
"""

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar, Protocol

from msgspec.structs import replace
from textual import events
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static

from wave_agent.agent.agent import Agent
from wave_agent.agent.foundation import Foundation, lay_foundation
from wave_agent.errors import WaveError
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.lint.findings import Finding
from wave_agent.screen.agents import Agents
from wave_agent.screen.dialogs import ACCEPT
from wave_agent.screen.editor import editor_words
from wave_agent.screen.hooks_view import HookRow, HooksView
from wave_agent.screen.plain import plain
from wave_agent.screen.question import Choice, Question
from wave_agent.screen.trust import ChangedFiles
from wave_agent.settings.places import OF_THE_PROJECT
from wave_agent.text import clip, one_line
from wave_agent.workshop.retest import IN_CODE, EditTarget, Retest, edit_target, is_same, lint_of, retest, same_hook
from wave_agent.workshop.trial import Rehearsal, Tried

KEYS = "e edits, t tests, Esc closes"
RUN, LEAVE = "run", "leave"
_SHOWN = 1000
"""Characters of what a hook printed."""
_UNCHANGED = "Nothing was changed. An editor that returns before you save must wait (code --wait); t tests afterwards."
_NOT_TRUSTED = "Not run: it is not trusted as it is now, and stays off in this session."
_NEW_ENTRY = (
    "Its settings have changed: this tests the new entry. The session keeps the old one; /clear starts another."
)
_CHANGED_BEFORE = "It had changed before you opened it, since it was trusted: look at all of it."


class BenchScreen(Protocol):
    """What changing hooks needs from the screen."""

    @property
    def agent(self) -> Agent: ...
    @property
    def agents(self) -> Agents: ...
    @property
    def environment(self) -> Mapping[str, str]: ...

    async def edit(self, words: Sequence[str]) -> int: ...


class HookBench(HooksView):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "edit", show=False),
        Binding("t", "test", show=False),
        Binding("pageup", "body(-1)", show=False),
        Binding("pagedown", "body(1)", show=False),
    ]

    def __init__(
        self, front: BenchScreen, hooks: Sequence[HookDefinition], title: str, rows: Sequence[HookRow], empty: str
    ) -> None:
        super().__init__(title, rows, empty)
        self._front = front
        self._hooks = hooks
        self._reports: dict[int, list[Content]] = {}
        self._working = False

    # ------------------------------------------------------------------------------------------------------------ keys

    def action_edit(self) -> None:
        self._begin(self._edit)

    def action_test(self) -> None:
        self._begin(self._test)

    def on_option_list_option_selected(self) -> None:
        self.action_edit()

    def action_body(self, step: int) -> None:
        body = self.query_one(".body", VerticalScroll)
        body.scroll_relative(y=step * max(1, body.size.height - 1), animate=False)

    # ------------------------------------------------------------------------------------------------ one piece of work

    def _begin(self, action: Callable[[int, HookDefinition], object]) -> None:
        at = self.query_one(OptionList).highlighted if self._hooks else None
        if at is not None and not self._working:
            self._working = True
            self.run_worker(partial(self._attend, at, action), group="bench", exit_on_error=False)

    async def _attend(self, at: int, action: Callable[[int, HookDefinition], object]) -> None:
        self._reports[at] = []
        try:
            work = action(at, self._hooks[at])
            assert asyncio.iscoroutine(work)
            await work
        except WaveError as error:
            self._add(at, plain(str(error), "$text-error"))
        except Exception as error:  # a bug of ours must not end the conversation
            self._add(at, plain(f"Internal error: {type(error).__name__}: {error}", "$text-error"))
        finally:
            self._working = False
            self._head(self._title)

    def _head(self, text: str) -> None:
        if self.is_attached:
            self.query_one(".title", Static).update(plain(text, "bold"))

    def _add(self, at: int, *lines: Content) -> None:
        self._reports[at] += lines
        self.show(at)

    def show(self, at: int) -> None:
        """What was done with a hook is shown above what it is."""
        if not self.is_attached or self.query_one(OptionList).highlighted != at:
            return
        report = self._reports.get(at)
        parts = [*report, plain("")] if report else []
        details = Content("\n").join([*parts, self._rows[at].details])
        self.query_one(".details", Static).update(details)
        self.query_one(".body", VerticalScroll).scroll_home(animate=False)

    async def _edit(self, at: int, hook: HookDefinition) -> None:
        front, project = self._front, self._front.agent.project
        target = await asyncio.to_thread(edit_target, hook, project)
        if target.why_not:
            self._add(at, plain(target.why_not, "$text-warning"))
            return
        words = editor_words(front.environment, target.file, target.line)
        before = await asyncio.to_thread(_content, target.file)
        earlier = _changes_of(front.agent, target.file)
        self._head(f"Editing {one_line(os.path.basename(target.file), 60)} …")
        status = await front.edit(words)
        if status:
            how = f"with status {status}" if status > 0 else f"by signal {-status}"
            self._add(at, plain(f"The editor ended {how}.", "$text-warning"))
        if await asyncio.to_thread(_content, target.file) == before:
            self._add(at, plain(_UNCHANGED))
            return
        self._add(at, plain(f"Saved {_short(target.file, project)}.", "bold"))
        await self._examine(at, hook, target, earlier)

    async def _test(self, at: int, hook: HookDefinition) -> None:
        if hook.function is not None:
            self._add(at, plain(IN_CODE, "$text-warning"))
            return
        target = await asyncio.to_thread(edit_target, hook, self._front.agent.project)
        await self._examine(at, hook, target, {})

    async def _examine(
        self, at: int, hook: HookDefinition, target: EditTarget, earlier: Mapping[str, str | None]
    ) -> None:
        """Findings in its file, then a test, if it may run. `earlier`: changes that the editor found there."""
        agent, place = self._front.agent, self._front.agents.place
        self._head(f"Testing {one_line(hook.name, 60)} …")
        if target.file:
            findings = await asyncio.to_thread(lint_of, target.file, hook, place, agent.home)
            self._add(at, *_lint_lines(findings, agent.project))
        foundation = await asyncio.to_thread(self._foundation)
        if target.is_script and not await self._is_trusted(at, target.file, earlier):
            self._add(at, plain(_NOT_TRUSTED, "$text-warning"))
            return
        tried, is_new = self._as_it_is_now(at, hook, foundation)
        if tried is None:
            return
        needs_consent = tried.layer in OF_THE_PROJECT and (is_new or not tried.enabled)
        if needs_consent and await self._ask(RunOnce(tried, agent.project)) != RUN:
            self._add(at, plain("Not run.", "$text-warning"))
            return
        result = await retest(tried, foundation, None if is_new else agent.project_trust.problem)
        self._add(at, *_result_lines(result, agent.project))

    def _foundation(self) -> Foundation:
        return lay_foundation(replace(self._front.agents.options, trust=True, trust_ref=None, resume=None), os.environ)

    def _as_it_is_now(
        self, at: int, hook: HookDefinition, foundation: Foundation
    ) -> tuple[HookDefinition | None, bool]:
        """The hook as the settings define it now, and whether that differs from what the session runs."""
        now = same_hook(hook, foundation.settings.hooks.hooks)
        if now is None and os.path.isfile(hook.source):
            self._add(at, plain("It is no longer in the settings; this session keeps it.", "$text-warning"))
            return None, False
        if now is None or is_same(hook, now):
            return hook, False
        self._add(at, plain(_NEW_ENTRY, "$text-warning"))
        return now, True

    async def _is_trusted(self, at: int, file: str, earlier: Mapping[str, str | None]) -> bool:
        """Whether the session may run the script as it is now. A person is asked about a change."""
        agent = self._front.agent
        changes = await asyncio.to_thread(_changes_of, agent, file)
        if not changes:
            return True
        if earlier:
            self._add(
                at,
                plain(_CHANGED_BEFORE, "$text-warning"),
            )
        if await self._ask(ChangedFiles(agent.project, changes, by_user=True)) != ACCEPT:
            return False
        agent.project_trust.accept(changes)
        self._add(at, plain("This session uses it as it is now. The next one asks again: wave hooks trust"))
        return True

    async def _ask(self, question: Question) -> str | None:
        """In place of the view."""
        dialog = self.query_one(".dialog", Vertical)
        await self.mount(question)
        question.take_keyboard()
        dialog.display = False
        try:
            return await question.answer
        finally:
            if self.is_attached:
                dialog.display = True
                self.query_one(OptionList).focus()
            await question.remove()

    def on_resize(self, event: events.Resize) -> None:
        for question in self.query(Question):
            question.fit(event.size)


class RunOnce(Question):
    """Asked before a project's hook is tested that nobody has agreed to."""

    def __init__(self, hook: HookDefinition, project: str) -> None:
        lines = [
            plain(project, "bold"),
            plain(""),
            plain("This command would run on your machine, with your permissions, on a sample event:"),
            plain(f"  {hook.event}: {' '.join([hook.shown_command, *(hook.args or ())])}"),
            plain(""),
            plain("This session keeps the hooks it started with."),
        ]
        choices = (Choice(LEAVE, "Do not run it", "n"), Choice(RUN, "Run it once, to test it", "y"))
        super().__init__("Test the changed hook?", Content("\n").join(lines), choices)


def _content(file: str) -> bytes | None:
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError:
        return None


def _changes_of(agent: Agent, file: str) -> dict[str, str | None]:
    """How this file differs from what the session trusts."""
    changes = agent.project_trust.changes()
    return {name: now for name, now in changes.items() if _real(os.path.join(agent.project, name)) == _real(file)}


def _real(file: str) -> str:
    return os.path.realpath(file)


def _short(file: str, project: str) -> str:
    return os.path.relpath(file, project) if file.startswith(f"{project}/") else file


def _lint_lines(findings: Sequence[Finding], project: str) -> Iterator[Content]:
    if not findings:
        yield Content.assemble(plain("✓ ", "$text-success"), plain("Lint: no findings."))
    for one in findings:
        style = "$text-error" if one.level == "error" else "$text-warning"
        place = f"{_short(one.file, project)}:{one.line}"
        yield Content.assemble(plain(f"! {one.code} ", style), plain(f"{place}: {one.reason}"))
        yield plain(f"    {one.fix}", "$muted")


def _result_lines(result: Retest, project: str) -> Iterator[Content]:
    if result.sample is not None:
        yield from _sample_lines(result.sample)
    for problem in result.problems:
        yield plain(f"! {problem}", "$text-warning")
    if not result.case_files:
        return
    failed = [one for one in result.cases if one.differs]
    mark, style = ("✗", "$text-error") if failed else ("✓", "$text-success")
    files = ", ".join(_short(file, project) for file in result.case_files)
    counts = f"{len(result.cases) - len(failed)} passed, {len(failed)} failed"
    yield Content.assemble(plain(f"{mark} ", style), plain(f"Cases: {counts} ({files})"))
    for one in failed:
        yield plain(f"    FAILED {one_line(one.case.name, 200)}", "$text-error")
        for difference in one.differs:
            yield from (plain(f"      {one_line(line, 500)}") for line in difference.lines())


def _sample_lines(found: Rehearsal) -> Iterator[Content]:
    subject = found.subject
    given = subject.facts.get("tool_input") if subject.tool else subject.facts.get("prompt")
    shown = "" if given is None else json.dumps(given, ensure_ascii=False)
    about = one_line(f"{subject.event} {subject.tool or ''} {shown}", 200)
    failed = not found.runs or any(one.run.outcome == "failure" for one in found.runs)
    mark, style = ("!", "$text-warning") if failed else ("✓", "$text-success")
    yield Content.assemble(plain(f"{mark} ", style), plain(f"Sample: {about}: {found.account.word}"))
    for one in found.runs:
        yield from _run_lines(one)
    for left in found.left_out:
        yield plain(f"    It was not run: {left.why}. Give it cases of its own: docs/workshop.md", "$text-warning")


def _run_lines(tried: Tried) -> Iterator[Content]:
    yield plain(f"    {tried.read_as}, {tried.result.duration:.0f} ms")
    for name, text in (("stdout", tried.result.stdout), ("stderr", tried.result.stderr)):
        if text.strip():
            yield Content.assemble(plain(f"    {name}  ", "$muted"), plain(clip(text.strip(), _SHOWN)))
    for problem in tried.problems:
        yield plain(f"    {clip(problem, _SHOWN)}", "$text-warning")
