"""Runs all hooks of one event: the order they run in, and the input each of them sees.

    rewrite phase   groups with `"phase": "rewrite"`, one hook after another
    parallel step   all others at once; a sequential group is one strand among them
    second look     hooks that judged an input other than the final one run again

So every guard sees the input that is actually used, in at most two rounds. Shadow hooks never change what other hooks
see, and async hooks are started without being awaited.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.hooks.background import BackgroundHooks
from wave_agent.hooks.definitions import HookDefinition, Phase
from wave_agent.hooks.events import Decision
from wave_agent.hooks.executor import HookExecutor
from wave_agent.hooks.semantics import NOT_CONVERGING, changed, changes, failure_blocks, merge
from wave_agent.hooks.semantics import same_json as _same
from wave_agent.hooks.stage import Occurrence, Stage, ToolInput
from wave_agent.hooks.verdicts import Block, Outcome, RankedVerdict, Role, Verdict
from wave_agent.system.waiting import together_or_none


class Done(Struct, frozen=True):
    """A finished run, with the input it judged and the input it left."""

    hook: HookDefinition
    verdict: Verdict
    look: int
    judged: ToolInput
    left: ToolInput
    can_allow: bool = True
    """Its condition names the call. If it applies only for what the call does, the hook can restrict, not allow."""

    @property
    def changed(self) -> dict[str, Any]:
        """The fields it changed. A hook that returns the whole input has no opinion on the fields it left alone."""
        return changes(self.judged, self.left)


def reading_of(hook: HookDefinition, verdict: Verdict, look: int, *, allow_counts: bool = True) -> RankedVerdict:
    return RankedVerdict(
        position=hook.position,
        name=hook.name,
        verdict=verdict,
        look=look,
        role=hook.role,
        strand=hook.group if hook.sequential else None,
        allow_counts=allow_counts,
    )


class EventRun:
    """One occurrence of one event."""

    def __init__(
        self,
        occurrence: Occurrence,
        executor: HookExecutor,
        background: BackgroundHooks,
        *,
        spent: Collection[int] = (),
    ) -> None:
        """`spent`: positions of broken hooks that can no longer block."""
        self.occurrence = occurrence
        self.row = occurrence.row
        self.executor = executor
        self.background = background
        self.spent = spent
        self.done: list[Done] = []
        self.started: set[int] = set()
        self.original: ToolInput = {}
        self.unconverged: list[RankedVerdict] = []

    async def run(self, hooks: Sequence[HookDefinition], payload: Mapping[str, Any]) -> Outcome:
        first = [hook for hook in hooks if hook.phase is Phase.REWRITE]
        rest = [hook for hook in hooks if hook.phase is not Phase.REWRITE]
        stage = Stage(self.occurrence, payload)
        self.original = stage.tool_input
        if first:
            stage = await self.strand(first, stage, look=1)
        final = stage.tool_input if self.ended else await self.parallel(rest, stage)
        return self.outcome(final)

    # --------------------------------------------------------------------------------------------------------- rounds

    async def parallel(self, hooks: Sequence[HookDefinition], stage: Stage) -> ToolInput:
        """Run all hooks in parallel, combine their changes, and take the second look. Returns the final input."""
        earlier = len(self.done)
        await self.round(hooks, stage, look=1)
        seen = self.done[earlier:]
        if not any(self.changes(done) for done in seen):
            return stage.tool_input
        final = self.compose(stage.tool_input, seen)
        if not self.ended:
            await self.second_look(hooks, seen, stage.showing(tool_input=final, original_tool_input=self.original))
        return final

    async def second_look(self, hooks: Sequence[HookDefinition], seen: Sequence[Done], stage: Stage) -> None:
        before = {done.hook.position: done for done in seen}
        earlier = len(self.done)
        again = [hook for hook in hooks if self.looks_again(hook, before.get(hook.position), stage.tool_input)]
        await self.round(again, stage, look=2)
        repeated = self.done[earlier:]
        if not _same(self.compose(stage.tool_input, repeated), stage.tool_input):
            names = ", ".join(done.hook.name for done in repeated if self.changes(done))
            verdict = Verdict((Block(NOT_CONVERGING.format(names=names)),))
            self.unconverged = [RankedVerdict(position=repeated[-1].hook.position, name=names, verdict=verdict, look=3)]

    def looks_again(self, hook: HookDefinition, seen: Done | None, final: ToolInput) -> bool:
        if seen is None:  # its matcher or condition excluded it from the first round
            return hook.position not in self.started
        return hook.role is Role.ENFORCE and not _same(seen.judged, final) and not _same(seen.left, final)

    async def round(self, hooks: Iterable[HookDefinition], stage: Stage, *, look: int) -> None:
        strands = [list(strand) for _, strand in groupby(hooks, key=strand_key)]
        # If cancelled, this returns only once every process has ended.
        await together_or_none([self.strand(strand, stage, look=look) for strand in strands])

    async def strand(self, hooks: Sequence[HookDefinition], stage: Stage, *, look: int) -> Stage:
        """Run hooks one after another, each seeing what the previous ones changed, until one denies."""
        for hook in hooks:
            if not self.executor.claims(hook, stage):
                continue
            if hook.is_async:
                self.started.add(hook.position)
                self.background.start(self.late(hook, stage, look), self.occurrence.number)
                continue
            verdict = await self.executor.execute(hook, stage, look)
            left = stage.after(hook, verdict)
            can_allow = self.executor.can_allow(hook, stage)
            done = Done(hook, verdict, look, judged=stage.tool_input, left=left.tool_input, can_allow=can_allow)
            self.done.append(done)
            if self.ends(done):
                break
            if hook.role is Role.ENFORCE:
                stage = left
        return stage

    async def late(self, hook: HookDefinition, stage: Stage, look: int) -> Outcome:
        """The outcome of an async hook alone."""
        return merge(hook.event, [reading_of(hook, await self.executor.execute(hook, stage, look), look)])

    # --------------------------------------------------------------------------------------------------------- results

    @property
    def ended(self) -> bool:
        return any(self.ends(done) for done in self.done)

    def ends(self, done: Done) -> bool:
        """Whether this run ends its strand: a deny, a stop, or a failure that blocks."""
        failure = done.verdict.failure
        spent = done.hook.position in self.spent
        denies = failure is not None and failure_blocks(self.row, failure, spent=spent)
        return done.hook.role is Role.ENFORCE and (denies or done.verdict.decision >= Decision.BLOCK)

    def changes(self, done: Done) -> bool:
        return self.row.has_rewrites and done.hook.role is Role.ENFORCE and bool(done.changed)

    def compose(self, tool_input: ToolInput, done: Iterable[Done]) -> ToolInput:
        """The input with the changes of these runs applied in configuration order."""
        for one in _in_order(done):
            if self.changes(one):
                tool_input = self.occurrence.tool.normalise(changed(tool_input, one.changed))
        return tool_input

    def allow_counts(self, done: Done, final: ToolInput) -> bool:
        return done.can_allow and (not self.row.has_rewrites or _same(done.left, final))

    def outcome(self, final: ToolInput) -> Outcome:
        readings = [
            reading_of(done.hook, done.verdict, done.look, allow_counts=self.allow_counts(done, final))
            for done in self.done
        ]
        outcome = merge(self.row.event, [*readings, *self.unconverged], spent=self.spent)
        if not self.row.has_rewrites:
            return outcome
        setters = {
            field: done.hook.name for done in _in_order(self.done) if self.changes(done) for field in done.changed
        }
        return replace(outcome, tool_input=final, rewritten_by=setters)


def _in_order(done: Iterable[Done]) -> list[Done]:
    return sorted(done, key=lambda one: (one.hook.position, one.look))


def strand_key(hook: HookDefinition) -> tuple[str, int]:
    """Adjacent hooks with the same key run one after another."""
    return ("group", hook.group) if hook.sequential else ("alone", hook.position)
