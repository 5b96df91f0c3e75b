"""Try one event outside a session: the hooks run as an agent would run them, and nothing else runs."""

import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.authority import Authority
from wave_agent.agent.call_effects import EffectsFinder
from wave_agent.agent.call_facts import needs_effects, subject_of, tool_facts
from wave_agent.agent.call_judge import unjudged
from wave_agent.agent.hook_effects import effects_outside
from wave_agent.effects.calls import effects_of
from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.values import Effects
from wave_agent.events import HookRun
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.dialects import has_failed, heard_by
from wave_agent.hooks.events import EVENTS, Flow
from wave_agent.hooks.execution import HookExecutionResult, HookRunner
from wave_agent.hooks.manager import HookManager, SessionFacts
from wave_agent.hooks.pinned import search_path
from wave_agent.hooks.plan import LeftOut
from wave_agent.hooks.runners.command import ProcessRunner
from wave_agent.hooks.semantics import kinds_of, rule_of, words_of
from wave_agent.hooks.stage import EffectsOf, ToolFacts
from wave_agent.hooks.verdicts import Ask, Outcome, TellUser, Verdict
from wave_agent.permissions.decision import JudgedCall, Permission, PermissionMode, Rules, Ruling, decide
from wave_agent.permissions.git.effects import GitLine, changed_by_git, meddles
from wave_agent.permissions.protected_paths import ProtectedPaths
from wave_agent.rules.rule import Places
from wave_agent.sessions.recorder import FileSessionStore, Recorder
from wave_agent.system.trusted_git import find_git
from wave_agent.tools.base import Tool, ToolContext, ToolInputError
from wave_agent.workshop.explanation import Account, account_of
from wave_agent.workshop.sample_events import Subject

NOT_REACHED = "not reached: an earlier hook decided"
DEAF = "in its dialect this is a different event: a tool that ran and failed is PostToolUseFailure"


class ProjectJudge(Struct, frozen=True, kw_only=True):
    """Decides about calls with a project's rules and mode."""

    places: Places
    rules: Rules = Rules()
    mode: PermissionMode = PermissionMode.DEFAULT
    directories: Sequence[str] = ()
    """Directories treated as part of the project, as real paths."""
    protected: ProtectedPaths = ProtectedPaths(frozenset(), ())
    environment: Mapping[str, str] = {}
    """Values for variables in commands."""

    def effects(self, tool: Tool) -> EffectsOf:
        """What a call of this tool would do with an input."""
        return effects_outside(tool, self._context(), search_path(self.environment))

    def _context(self) -> ToolContext:
        project, start = Path(self.places.project), Path(self.places.start or self.places.project)
        return ToolContext(project_dir=project, start=start, environment=self.environment, outputs=project)

    def judge(
        self, tool: Tool | None, name: str, tool_input: Mapping[str, Any], hooks: Outcome, *, checked: bool = True
    ) -> Permission:
        """`tool` None: a tool this agent does not have, treated as one that acts. `checked`: validate types."""
        if tool is None:
            where = Surroundings(directory=self.places.start or self.places.project, project=self.places.project)
            call = JudgedCall(tool=name, tool_input=tool_input, effects=effects_of(name, tool_input, where))
            return decide(call, self.mode, self.rules, hooks, self.places)
        try:
            if checked:
                tool.parse(tool_input)
        except ToolInputError as error:
            return Permission(answer=Ruling.DENY, by="the input does not fit the tool", for_model=str(error))
        context = self._context()
        try:
            call = subject_of(tool, tool_input, context, self.directories, self.protected)
            if needs_effects(tool, self.rules):
                finder = EffectsFinder(context, search_path(self.environment))
                call = finder.examined_now(tool, call, finder.of(tool, tool_input), self._authority)
            runs, assigned = tool.git_runs(tool_input, context)
            if runs and call.protected is None:
                meddling = meddles(tool.written_paths(tool_input, context))
                question = GitLine(runs=runs, assigned=tuple(assigned), meddles=meddling)
                call = replace(call, protected=self._changed_by_git(question), by_git=True)
            return decide(call, self.mode, self.rules, hooks, self.places)
        except Exception as error:  # as in a session: a call that cannot be judged does not run
            return Permission(answer=Ruling.DENY, by="an error", for_model=unjudged(error))

    @property
    def _authority(self) -> Authority:
        return Authority(
            mode=self.mode,
            rules=self.rules,
            places=self.places,
            directories=tuple(self.directories),
            find_protected=lambda: self.protected,
        )

    def _changed_by_git(self, question: GitLine) -> str | None:
        return changed_by_git(
            question,
            self.protected.files,
            self.protected.directories,
            beside=self.protected.beside,
            program=find_git(search_path(self.environment), self.places.project),
            environment=self.environment,
        )


class Bench(Struct, frozen=True, kw_only=True):
    """The environment in which hooks are tried."""

    hooks: Sequence[HookDefinition]
    environment: Mapping[str, str]
    judge: ProjectJudge
    tools: Mapping[str, Tool] = {}
    settings_env: Mapping[str, str] = {}
    max_stop_blocks: int = 8
    why_refused: Callable[[HookDefinition], str | None] = lambda _: None
    own_environment: Callable[[HookDefinition], Mapping[str, str]] = lambda _: {}
    runner: HookRunner | None = None
    left_out: int = 0
    """The number of project hooks skipped at the user's request."""


NO_PACKAGE = "No module named 'wave_agent'"
ANOTHER_PYTHON = (
    'The Python that ran this hook has no wave_agent. With "type": "python" and "target": "FILE:FUNCTION" instead of '
    "a command, the hook runs in Wave's own Python."
)
"""What to do about that, as pipx and uv install Wave for itself."""


class Tried(Struct, frozen=True):
    """One run of one hook, with its output."""

    hook: HookDefinition
    run: HookRun
    result: HookExecutionResult
    verdict: Verdict

    @property
    def read_as(self) -> str:
        """How exit code and stdout were interpreted, in the documentation's words."""
        if self.result.opinion is not None:
            return "the model has no objection: no opinion" if self.result.opinion.ok else "the model objects"
        kinds = kinds_of(self.hook.event, self.result)
        if kinds is None:
            if self.result.by_model:
                return "there is no answer of a model"
            if self.result.error is not None:
                return "there is no answer" if self.result.by_service or self.result.by_server else "it could not start"
            return "it did not exit by itself, so its output is ignored"
        stdout, exit_class = kinds
        means = words_of(rule_of(self.hook.dialect, kinds)).replace("**", "")
        if self.verdict.failure and self.verdict.failure.blocks:
            means = "a failure, and onFailure says block"
        printed = str(stdout) if self.result.stdout.strip() else "nothing on stdout"
        ended = f"exit {self.result.exit_code}" if self.result.exit_code is not None else str(exit_class)
        return f"{ended}, {printed}: {means}"

    @property
    def problems(self) -> tuple[str, ...]:
        """What was wrong with it, besides what it wrote to stderr."""
        own = f"hook {self.hook.name}"
        said = [one.text if isinstance(one, TellUser) else one.reason for one in self.verdict.effects
                if isinstance(one, TellUser | Ask)]  # fmt: skip
        failed = [self.verdict.failure.message] if self.verdict.failure else []
        found = [*(text for text in said if text.startswith(own)), *failed]
        found += [ANOTHER_PYTHON] if NO_PACKAGE in self.result.stderr else []
        return tuple(text for text in dict.fromkeys(found) if text != self.result.stderr)


class Rehearsal(Struct, frozen=True, kw_only=True):
    """The result of a trial."""

    subject: Subject
    runs: tuple[Tried, ...]
    left_out: tuple[LeftOut, ...]
    outcome: Outcome
    permission: Permission | None
    account: Account
    effects: Effects | None = None
    """What the call would do with its final input. None: hooks on this event do not see it."""


async def rehearse(bench: Bench, subject: Subject) -> Rehearsal:
    """Run the hooks on this event. Each rehearsal has a temporary session and transcript."""
    with tempfile.TemporaryDirectory(prefix="wave-hooks-") as scratch:
        return await _rehearse(bench, subject, Path(scratch))


def _runs_alone(hook: HookDefinition) -> bool:
    """Nothing in a session waits for it."""
    return hook.is_async or not EVENTS[hook.event].waited


async def _rehearse(bench: Bench, subject: Subject, scratch: Path) -> Rehearsal:
    by_position = {hook.position: hook for hook in bench.hooks}
    tried: list[Tried] = []

    def keep(run: HookRun, result: HookExecutionResult, verdict: Verdict) -> None:
        tried.append(Tried(by_position[run.position], run, result, verdict))

    manager = HookManager(
        bench.hooks,
        runner=bench.runner or ProcessRunner(),
        session=_session(bench.judge.places, scratch),
        environment=bench.environment,
        settings_env=bench.settings_env,
        max_stop_blocks=bench.max_stop_blocks,
        why_refused=bench.why_refused,
        own_environment=bench.own_environment,
        async_grace=max((hook.timeout + 1 for hook in bench.hooks if _runs_alone(hook)), default=0),
        on_run=keep,
    )
    judge = bench.judge if subject.mode is None else replace(bench.judge, mode=subject.mode)
    tool = bench.tools.get(subject.tool or "")
    start = judge.places.start or judge.places.project
    facts = normalised(subject, tool, start)
    about = ToolFacts() if tool is None else tool_facts(tool, start, judge.effects(tool))
    dialects = heard_by(subject.event, failed=has_failed(facts))
    try:
        outcome = await manager.run(
            subject.event,
            facts,
            permission_mode=judge.mode.value,
            tool=about,
            dialects=dialects,
        )
    finally:
        await manager.close()
    permission = None
    if outcome.flow in (Flow.JUDGE, Flow.CONFIRM):
        permission = judge.judge(tool, subject.tool or "", outcome.tool_input or {}, outcome)
    return Rehearsal(
        subject=replace(subject, facts=facts),
        runs=tuple(sorted(tried, key=lambda one: (one.run.look, one.hook.position))),
        left_out=_left_out(bench, subject, facts, about, tried),
        outcome=outcome,
        permission=permission,
        account=account_of(outcome, permission),
        effects=about.effects(dict(outcome.tool_input or facts["tool_input"])) if subject.row.shows_effects else None,
    )


def normalised(subject: Subject, tool: Tool | None, start: str) -> dict[str, Any]:
    """The facts as hooks see them: paths in a tool's input are absolute."""
    facts = dict(subject.facts)
    if tool is not None and "tool_input" in facts:
        facts["tool_input"] = tool.normalise(facts["tool_input"], start)
    return facts


def _session(places: Places, scratch: Path) -> SessionFacts:
    session_id = str(uuid.uuid4())
    transcript = scratch / f"{session_id}.jsonl"
    store = FileSessionStore(transcript)
    Recorder(store, session_id=session_id, project_dir=places.project, start=places.start).start()
    store.close()
    return SessionFacts(
        session_id=session_id,
        transcript_path=str(transcript),
        project_dir=places.project,
        home=places.home,
        start=places.start,
    )


def _left_out(
    bench: Bench, subject: Subject, facts: Mapping[str, Any], about: ToolFacts, tried: Sequence[Tried]
) -> tuple[LeftOut, ...]:
    def effects() -> Effects:
        return about.effects(facts["tool_input"])

    ran, places = {one.hook.position for one in tried}, bench.judge.places
    heard = heard_by(subject.event, failed=has_failed(facts))
    return tuple(
        LeftOut(hook, hook.why_not(facts, places, effects) or (NOT_REACHED if hook.dialect in heard else DEAF))
        for hook in bench.hooks
        if hook.event is subject.event and hook.position not in ran
    )


def nothing_said(subject: Subject) -> Outcome:
    """The outcome if no hook has an opinion."""
    flows = EVENTS[subject.event].flow
    return Outcome(event=subject.event, flow=flows[min(flows)], tool_input=subject.facts.get("tool_input"))
