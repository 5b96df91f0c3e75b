"""How the parts of an agent are joined: each is made here from what it stands on, and none of them knows an agent."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.assembly import Foundation, WindowFinder, real_directories
from wave_agent.calls import Approver, CallRunner
from wave_agent.compaction import Compactor
from wave_agent.credentials import without_credentials
from wave_agent.events import Event
from wave_agent.hooks.execution import HookRunner
from wave_agent.hooks.manager import Deferred, HookManager, SessionFacts
from wave_agent.hooks.variables import SessionVariables
from wave_agent.hooks.verdicts import Said
from wave_agent.leftovers import Leftovers
from wave_agent.loop import Parts
from wave_agent.messages import MessageManager
from wave_agent.models.base import Model, ToolSpec
from wave_agent.outgoing import Draft, Form
from wave_agent.permissions import Kind
from wave_agent.protected import protected_paths
from wave_agent.sandbox import Sandbox
from wave_agent.tools.base import Tool, ToolContext
from wave_agent.transcript import Resumed


class Ground(Struct, frozen=True, kw_only=True):
    """What the parts of one agent have in common."""

    foundation: Foundation
    session_id: str
    transcript: Path
    messages: MessageManager
    model: Model
    emit: Callable[[Event], None]

    @property
    def outputs(self) -> Path:
        """Where outputs go that are too long for the conversation."""
        return self.transcript.with_suffix("")


def make_variables(ground: Ground) -> SessionVariables:
    foundation = ground.foundation
    handed_down = foundation.handed_down
    # By the session's id the next agent knows what this one has left running, should it be killed.
    fixed = {**(handed_down.variable() if handed_down else {}), "WAVE_SESSION_ID": ground.session_id}
    return SessionVariables({**without_credentials(foundation.environment), **foundation.settings.env}, fixed=fixed)


def make_hooks(ground: Ground, runner: HookRunner, variables: SessionVariables, before: Resumed) -> HookManager:
    foundation, settings = ground.foundation, ground.foundation.settings
    return HookManager(
        settings.hooks.hooks,
        runner=runner,
        session=SessionFacts(
            session_id=ground.session_id,
            transcript_path=str(ground.transcript),
            project_dir=foundation.project,
            home=os.path.expanduser("~"),
        ),
        environment=foundation.environment,
        settings_env=settings.env,
        max_stop_blocks=settings.max_stop_blocks,
        on_event=ground.emit,
        outputs=ground.outputs,
        why_refused=foundation.trust.problem,
        variables=variables,
        journal=before.hooks,
        deferred=[Deferred(event, Said(hook, text)) for event, hook, text in before.deferred],
    )


def make_calls(
    ground: Ground,
    hooks: HookManager,
    variables: SessionVariables,
    *,
    tools: Mapping[str, Tool],
    approver: Approver | None,
    leftovers: Leftovers,
    sandbox: Sandbox | None,
    sync: Callable[[], None],
) -> CallRunner:
    """`sync` brings to the disk what was asked, before a tool that changes something is used."""
    foundation, settings = ground.foundation, ground.foundation.settings
    # The model is told where the whole of a long output stands, so it may read there.
    inside = (foundation.project, *settings.additional_directories, str(ground.outputs))
    return CallRunner(
        messages=ground.messages,
        hooks=hooks,
        tools=tools,
        context=ToolContext(
            project_dir=Path(foundation.project),
            environment=variables,
            outputs=ground.outputs,
            ledger=leftovers.entry,
            sandbox=sandbox,
        ),
        rules=settings.rules,
        mode=foundation.mode,
        directories=real_directories(foundation.project, inside),
        protected=protected_paths(
            foundation.project, foundation.home, settings.hooks.hooks, settings=foundation.snapshot.files
        ),
        approver=approver,
        emit=ground.emit,
        sync=sync,
        border=sandbox.refusal if sandbox else lambda _: None,
    )


def make_parts(
    ground: Ground,
    hooks: HookManager,
    calls: CallRunner,
    window: WindowFinder,
    *,
    model_name: str,
    tools: Sequence[Tool],
    system: str,
) -> Parts:
    specs = [ToolSpec(tool.name, tool.description, tool.schema()) for tool in tools]
    draft = _draft(ground, model_name, system, specs)
    return Parts(
        messages=ground.messages,
        hooks=hooks,
        calls=calls,
        model=ground.model,
        model_name=model_name,
        tools=specs,
        max_turns=ground.foundation.max_turns,
        emit=ground.emit,
        draft=draft,
        compactor=Compactor(
            messages=ground.messages,
            hooks=hooks,
            model=ground.model,
            draft=draft,
            window=window,
            edits=[tool.name for tool in tools if tool.kind is Kind.EDITS],
            permission_mode=lambda: calls.mode.value,
        ),
        window=window,
    )


def with_model(ground: Ground, parts: Parts, window: WindowFinder, model_name: str) -> Parts:
    """The same parts, for another model."""
    form = parts.draft.form
    draft = _draft(ground, model_name, form.system, form.tools)
    return replace(
        parts, model_name=model_name, window=window, draft=draft, compactor=parts.compactor.with_draft(draft, window)
    )


def _draft(ground: Ground, model: str, system: str, tools: Sequence[ToolSpec]) -> Draft:
    fold = bool(ground.foundation.settings.models.get(model, {}).get("foldUserMessages"))
    return Draft(Form(model=model, system=system, tools=tools, fold=fold), lambda: ground.messages.for_model)
