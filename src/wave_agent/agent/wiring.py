"""Connects the parts of an agent: each is created here from what it depends on, and none of them knows the agent."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.authority import Authority
from wave_agent.agent.briefing import Briefing
from wave_agent.agent.compaction import Compactor
from wave_agent.agent.instructions import instructions
from wave_agent.agent.options import Foundation, Options, WindowFinder
from wave_agent.agent.outgoing import Draft, Images, RequestForm
from wave_agent.agent.surroundings import Surroundings, look_around
from wave_agent.agent.system_prompt import PromptFacts, mode_words, system_prompt
from wave_agent.agent.tool_calls import CallRunner
from wave_agent.agent.turn import Parts
from wave_agent.errors import ModelError
from wave_agent.events import Event
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.execution import HookRunner
from wave_agent.hooks.manager import Deferred, HookManager, LiveSession, SessionFacts
from wave_agent.hooks.variables import SessionVariables
from wave_agent.hooks.verdicts import Said
from wave_agent.messages import MessageManager
from wave_agent.models.base import Model, ToolSpec
from wave_agent.models.limits import limits_in
from wave_agent.permissions.decision import Approver, PermissionMode, ToolKind
from wave_agent.permissions.hard_links import why_unread
from wave_agent.permissions.sandbox import Sandbox
from wave_agent.rules.rule import Places
from wave_agent.sessions.transcript import Resumed
from wave_agent.system.credentials import without_credentials
from wave_agent.system.orphans import Leftovers
from wave_agent.system.reentrancy import Door, no_door
from wave_agent.tools.base import Tool, ToolContext
from wave_agent.tools.bash import default_shell
from wave_agent.tools.changes import FileChanges


class Ground(Struct, frozen=True, kw_only=True):
    """What the parts of one agent share."""

    foundation: Foundation
    session_id: str
    transcript: Path
    messages: MessageManager
    model: Model
    emit: Callable[[Event], None]
    door: Door = no_door
    """Entered around code of the embedding program."""

    @property
    def outputs(self) -> Path:
        """The directory for outputs that are too long for the conversation."""
        return self.transcript.with_suffix("")


def make_variables(ground: Ground) -> SessionVariables:
    foundation = ground.foundation
    handed_down = foundation.handed_down
    # By the session id, the next agent recognises what this one left running if it is killed.
    fixed = {**(handed_down.variable() if handed_down else {}), "WAVE_SESSION_ID": ground.session_id}
    return SessionVariables({**without_credentials(foundation.environment), **foundation.settings.env}, fixed=fixed)


def make_hooks(
    ground: Ground,
    runner: HookRunner,
    variables: SessionVariables,
    before: Resumed,
    *,
    tools: Sequence[Tool] = (),
    attended: bool = True,
) -> HookManager:
    """`tools` are the session's; one of them may change its directory. `attended`: a user can be asked."""
    foundation, settings = ground.foundation, ground.foundation.settings
    refused, given = foundation.trust.problem, _nothing_more
    if settings.hooks.hooks:
        from wave_agent.hooks.python_guard import PythonGuard  # lazy: most projects have no hooks

        python = PythonGuard(foundation.project, foundation.home, foundation.hook_environment)
        refused, given = python.after(refused), python.environment
    return HookManager(
        settings.hooks.hooks,
        runner=runner,
        session=SessionFacts(
            session_id=ground.session_id,
            transcript_path=str(ground.transcript),
            project_dir=foundation.project,
            home=os.path.expanduser("~"),
            start=foundation.place.start,
        ),
        environment=foundation.hook_environment,
        settings_env=settings.env,
        max_stop_blocks=settings.max_stop_blocks,
        on_event=ground.emit,
        outputs=ground.outputs,
        why_refused=refused,
        own_environment=given,
        live=LiveSession(
            variables=variables,
            directory=lambda: next(filter(None, (tool.directory() for tool in tools)), ""),
            door=ground.door,
            attended=attended,
            journal=before.hooks,
            deferred=[Deferred(event, Said(hook, text)) for event, hook, text in before.deferred],
        ),
    )


def _nothing_more(_: HookDefinition) -> Mapping[str, str]:
    return {}


def make_briefing(
    foundation: Foundation, options: Options, sandbox: Sandbox | None, tell: Callable[[str], None] = lambda _: None
) -> Briefing:
    """A caller's own system prompt replaces ours. Plan mode and the sandbox are always mentioned. `tell` is called with
    instructions that are omitted."""
    start = foundation.place.start
    session = PromptFacts(
        project_dir=foundation.project,
        working_dir="" if start == foundation.project else f"{start} (commands and relative paths start here)",
        shell=default_shell(),
        interactive=options.interactive,
        asks=options.can_use_tool is not None,
        allowed=tuple(dict.fromkeys(rule.text for rule in foundation.settings.rules.allow)),
    )
    own = options.system_prompt
    place, home = foundation.place, foundation.home
    denied = partial(why_unread, foundation.settings.rules, Places(foundation.project, os.path.expanduser("~")))
    ours = [] if own is not None else instructions(place, home, foundation.claude_home, denied=denied, tell=tell)

    def compose(mode: PermissionMode, around: Surroundings) -> str:
        first = system_prompt(session, mode, around) if own is None else own
        plan = mode_words(session, mode) if own is not None and mode is PermissionMode.PLAN else ""
        parts = (first, *ours, options.append_system_prompt, plan, sandbox.description if sandbox else "")
        return "\n\n".join(filter(None, parts))

    return Briefing(
        compose,
        news=partial(mode_words, session, changed=True),
        look=partial(look_around, foundation.project, foundation.environment) if own is None else None,
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
    window: Callable[[], WindowFinder],
    changes: FileChanges,
) -> CallRunner:
    """`sync` writes the call to disk before a tool that changes something runs. `window` is a function, since each
    model has its own."""
    foundation, settings = ground.foundation, ground.foundation.settings
    # The model is shown where the full text of a long output is, so it may read there.
    return CallRunner(
        messages=ground.messages,
        hooks=hooks,
        tools=tools,
        context=ToolContext(
            project_dir=Path(foundation.project),
            start=Path(foundation.place.start),
            environment=variables,
            outputs=ground.outputs,
            ledger=leftovers.entry,
            sandbox=sandbox,
            door=ground.door,
            window=lambda: window().known,
            takes_images=lambda: window().takes_images(),
        ),
        authority=Authority(
            mode=foundation.mode,
            rules=settings.rules,
            places=Places(foundation.project, hooks.session.home, hooks.session.start),
            directories=(*foundation.directories, os.path.realpath(ground.outputs)),
            protected=foundation.protected,
            border=sandbox.refusal if sandbox else lambda _: None,
        ),
        approver=approver,
        emit=ground.emit,
        sync=sync,
        changes=changes,
    )


def make_parts(
    ground: Ground,
    hooks: HookManager,
    calls: CallRunner,
    window: WindowFinder,
    *,
    model_name: str,
    tools: Sequence[Tool],
    briefing: Briefing,
) -> Parts:
    specs = [ToolSpec(tool.name, tool.description, tool.schema()) for tool in tools]
    draft = _draft(ground, model_name, lambda: briefing.text, specs, window)
    return Parts(
        messages=ground.messages,
        hooks=hooks,
        calls=calls,
        model=ground.model,
        model_name=model_name,
        tools=specs,
        briefing=briefing,
        max_turns=ground.foundation.max_turns,
        emit=ground.emit,
        reports=lambda: [report for tool in tools for report in tool.reports()],
        draft=draft,
        limits=limits_in(ground.foundation.settings.models.get(model_name, {})),
        compactor=Compactor(
            messages=ground.messages,
            hooks=hooks,
            model=ground.model,
            draft=draft,
            window=window,
            edits=[tool.name for tool in tools if tool.kind is ToolKind.EDITS],
            standing=lambda: [line for tool in tools for line in tool.standing()],
            permission_mode=lambda: calls.mode.value,
        ),
        window=window,
    )


def with_model(ground: Ground, parts: Parts, window: WindowFinder, model_name: str) -> Parts:
    """The same parts, for another model."""
    form = parts.draft.form
    draft = _draft(ground, model_name, form.system, form.tools, window)
    return replace(
        parts,
        model_name=model_name,
        window=window,
        draft=draft,
        limits=limits_in(ground.foundation.settings.models.get(model_name, {})),
        compactor=parts.compactor.with_draft(draft, window),
    )


def _draft(
    ground: Ground, model: str, system: Callable[[], str], tools: Sequence[ToolSpec], window: WindowFinder
) -> Draft:
    def refuse_images(error: ModelError) -> None:
        window.refuse_images()
        told = f"The server refused a request with images; no more images will be sent. {error}"
        ground.messages.add_notice_block(told)

    form = RequestForm(
        model=model,
        system=system,
        tools=tools,
        fold=bool(ground.foundation.settings.models.get(model, {}).get("foldUserMessages")),
        images=Images(window.takes_images, refuse_images),
    )
    return Draft(form, lambda: ground.messages.for_model)
