"""The model of an `agent` hook: a turn of its own, with tools that only read and without hooks.

Deny rules, protected paths and the sandbox apply as for the session, and nobody can be asked.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.authority import Authority
from wave_agent.agent.briefing import Briefing
from wave_agent.agent.compaction import Compactor
from wave_agent.agent.hook_questions import VERDICT, AskedModel, ReadingPlace, required_opinion
from wave_agent.agent.options import Foundation
from wave_agent.agent.outgoing import Draft, RequestForm
from wave_agent.agent.spending import RequestCount
from wave_agent.agent.system_prompt import SystemPrompt
from wave_agent.agent.tool_calls import CallRunner
from wave_agent.agent.turn import Parts, Turn, TurnStatus
from wave_agent.errors import WaveError
from wave_agent.hooks.execution import Opinion, Runners
from wave_agent.hooks.manager import HookManager, SessionFacts
from wave_agent.hooks.opinions import OPINION_SCHEMA, OpinionError, opinion_in, opinion_of
from wave_agent.hooks.questions import VERDICT_TOOL, PolicyQuestion, repair
from wave_agent.messages import MessageManager
from wave_agent.models.base import ToolSpec
from wave_agent.permissions.decision import PermissionMode, ToolKind
from wave_agent.rules.rule import Places
from wave_agent.tools.base import Tool, ToolContext, ToolInputError, ToolResult
from wave_agent.tools.files import KnownFiles
from wave_agent.tools.glob import Glob
from wave_agent.tools.grep import Grep
from wave_agent.tools.read import Read

MOST_REQUESTS = 50
_TOO_LONG = "the event and what was read are too long for the model"


class VerdictInput(Struct, frozen=True):
    """Not used: `opinion_of` reads the input, more strictly."""

    ok: bool


class VerdictTool(Tool):
    """Takes the verdict and ends the turn, which is cancelled while this call waits."""

    name: ClassVar[str] = VERDICT_TOOL
    description: ClassVar[str] = VERDICT.description
    kind: ClassVar[ToolKind] = ToolKind.READS
    own: ClassVar[bool] = True
    Input: ClassVar[type[Struct]] = VerdictInput

    def __init__(self, given: "asyncio.Future[Opinion]") -> None:
        self._given = given

    def schema(self) -> dict[str, Any]:
        return dict(OPINION_SCHEMA)

    def parse(self, tool_input: Mapping[str, Any]) -> Opinion:
        try:
            return opinion_of(tool_input)
        except OpinionError as error:
            raise ToolInputError(repair(str(error))) from None

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        if not self._given.done():
            self._given.set_result(arguments)
        await asyncio.Event().wait()  # until the turn is cancelled: there is nothing left to ask the model
        raise AssertionError("the turn goes on after the verdict")


async def read_and_judge(
    asked: AskedModel, question: PolicyQuestion, foundation: Foundation, place: ReadingPlace
) -> Opinion:
    """Lets the model read, and returns its verdict. Raises a `WaveError` if it gives none."""
    given: asyncio.Future[Opinion] = asyncio.get_running_loop().create_future()
    parts = _parts(asked, question, foundation, place, given)
    turn = Turn(parts)
    work = asyncio.ensure_future(turn.run(question.user))
    try:
        await asyncio.wait({work, given}, return_when=asyncio.FIRST_COMPLETED)
        opinion = given.result() if given.done() else await _said(asked, turn, work.result())
    finally:
        given.cancel()
        work.cancel()
        await asyncio.wait({work})
    if parts.draft.cuts or parts.messages.compacted_upto:
        raise WaveError(_TOO_LONG)  # it may not have seen all of the event
    return opinion


async def _said(asked: AskedModel, turn: Turn, status: TurnStatus) -> Opinion:
    """The verdict in the text that the turn ended with; or, if it is none, in the answer to one more request."""
    if status is TurnStatus.MAX_TURNS:
        raise WaveError(f"the model gave no verdict in {MOST_REQUESTS} requests")
    if status is not TurnStatus.COMPLETED:
        raise WaveError(turn.error or asked.spending.why_used_up)
    try:
        return opinion_in(turn.text or "")
    except OpinionError as error:
        parts = turn.parts
        again = await parts.draft.part(parts.messages.for_model, repair(str(error))).request()
        return required_opinion(await asked.answer(replace(again, must_call=VERDICT_TOOL)))


def _session(foundation: Foundation) -> SessionFacts:
    place = foundation.place
    home = os.path.expanduser("~")
    return SessionFacts(session_id="", transcript_path="", project_dir=place.directory, home=home, start=place.start)


def _authority(foundation: Foundation, facts: SessionFacts, place: ReadingPlace) -> Authority:
    """The session's rules, in the mode that asks about everything but reading in the project."""
    return Authority(
        mode=PermissionMode.DEFAULT,
        rules=foundation.settings.rules,
        places=Places(foundation.project, facts.home, facts.start),
        directories=foundation.directories,
        find_protected=lambda: foundation.protected,
        border=place.sandbox.refusal if place.sandbox else lambda _: None,
    )


def _context(foundation: Foundation, place: ReadingPlace) -> ToolContext:
    return ToolContext(
        project_dir=Path(foundation.project),
        start=Path(foundation.place.start),
        environment=place.environment,
        outputs=place.outputs,
        ledger=place.ledger,
        sandbox=place.sandbox,
    )


def _parts(
    asked: AskedModel,
    question: PolicyQuestion,
    foundation: Foundation,
    place: ReadingPlace,
    given: "asyncio.Future[Opinion]",
) -> Parts:
    messages, facts = MessageManager(), _session(foundation)
    tools: dict[str, Tool] = {tool.name: tool for tool in (Read(KnownFiles()), Glob(), Grep(), VerdictTool(given))}
    specs = tuple(ToolSpec(tool.name, tool.description, tool.schema()) for tool in tools.values())
    hooks = HookManager((), runner=Runners({}), session=facts, environment=place.environment)
    calls = CallRunner(
        messages=messages,
        hooks=hooks,
        tools=tools,
        context=_context(foundation, place),
        authority=_authority(foundation, facts, place),
        approver=None,
        emit=lambda _: None,
    )
    briefing = Briefing(
        lambda _mode, _around: SystemPrompt(question.system, {}), lambda _: "", messages=messages, tools=lambda: specs
    )
    form = RequestForm(
        model=asked.name,
        system=lambda: briefing.text,
        tools=lambda: briefing.tools,
        max_output_tokens=asked.max_output_tokens,
    )
    draft = Draft(form, lambda: messages.for_model)
    return Parts(
        messages=messages,
        hooks=hooks,
        calls=calls,
        model=asked.client,
        model_name=asked.name,
        briefing=briefing,
        count=RequestCount(MOST_REQUESTS),
        emit=lambda _: None,
        draft=draft,
        limits=asked.limits,
        compactor=Compactor(
            messages=messages,
            hooks=hooks,
            model=asked.client,
            draft=draft,
            window=lambda: None,
            edits=(),
            permission_mode=lambda: calls.mode.value,
            renew=lambda: briefing.renew(calls.mode),
            spend=asked.spending.add,
        ),
        window=lambda: None,
        spending=asked.spending,
    )
