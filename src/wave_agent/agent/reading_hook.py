"""The model of an `agent` hook: a turn of its own, with tools that only read and without hooks.

Deny rules, protected paths and the sandbox apply as for the session, and what would ask is denied.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.authority import Authority
from wave_agent.agent.briefing import Briefing
from wave_agent.agent.compaction import Compactor
from wave_agent.agent.hook_questions import VERDICT, AskedModel, ReadableProject, ReadingPlace, required_opinion
from wave_agent.agent.outgoing import Draft, RequestForm
from wave_agent.agent.spending import RequestCount
from wave_agent.agent.system_prompt import SystemPrompt
from wave_agent.agent.tool_calls import CallRunner
from wave_agent.agent.turn import Parts, Turn, TurnStatus
from wave_agent.errors import WaveError
from wave_agent.events import InnerCall
from wave_agent.hooks.execution import Opinion, Runners
from wave_agent.hooks.manager import HookManager, SessionFacts
from wave_agent.hooks.opinions import OPINION_SCHEMA, OpinionError, objects_in, opinion_in, opinion_of
from wave_agent.hooks.questions import VERDICT_TOOL, PolicyQuestion, repair
from wave_agent.hooks.runners.thinking import ThoughtNotes
from wave_agent.messages import DENIED, MessageManager, ToolBlock
from wave_agent.models.base import Delta, Model, ModelRequest, Retry, Text, ToolCall, ToolSpec
from wave_agent.permissions.decision import PermissionMode, ToolKind
from wave_agent.rules.rule import Places
from wave_agent.system.project import Project
from wave_agent.system.real_files import resolve_or_keep
from wave_agent.text import one_line
from wave_agent.tools.base import Tool, ToolContext, ToolInputError, ToolResult
from wave_agent.tools.files import KnownFiles
from wave_agent.tools.glob import Glob
from wave_agent.tools.grep import Grep
from wave_agent.tools.read import Read

MOST_REQUESTS = 50
_INPUT = 300
"""Characters of a call's input in the journal."""
_TOO_EARLY = "Not taken: you had not seen the results of your other calls. Give your verdict alone, after them."
_TOO_LONG = "the event and what was read are too long for the model"


class VerdictInput(Struct, frozen=True):
    """Not used: `opinion_of` reads the input, more strictly."""

    ok: bool


class VerdictTool(Tool):
    """Takes the verdict and ends the turn, which is cancelled while this call waits.

    A verdict that has no objection, in an answer that reads something as well, is not taken: it was given before the
    results were seen."""

    name: ClassVar[str] = VERDICT_TOOL
    description: ClassVar[str] = VERDICT.description
    kind: ClassVar[ToolKind] = ToolKind.READS
    own: ClassVar[bool] = True
    Input: ClassVar[type[Struct]] = VerdictInput

    def __init__(self, given: "asyncio.Future[Opinion]", notes: ThoughtNotes, is_reading: Callable[[], bool]) -> None:
        """`is_reading`: the answer that the verdict is part of has other calls as well."""
        self._given = given
        self._notes = notes
        self._is_reading = is_reading

    def schema(self) -> dict[str, Any]:
        return dict(OPINION_SCHEMA)

    def parse(self, tool_input: Mapping[str, Any]) -> Opinion:
        try:
            return opinion_of(tool_input)
        except OpinionError as error:
            self._notes.objects = self._notes.objects or error.objects
            raise ToolInputError(repair(str(error))) from None

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        if arguments.ok and self._is_reading():
            raise ToolInputError(_TOO_EARLY)
        if not self._given.done():
            self._given.set_result(arguments)
        await asyncio.Event().wait()  # until the turn is cancelled: there is nothing left to ask the model
        raise AssertionError("the turn goes on after the verdict")


class OverheardModel:
    """A model whose verdicts are listened to: an objection counts, also one in a call that cannot be read, or in the
    text beside a call."""

    def __init__(self, model: Model, notes: ThoughtNotes) -> None:
        self._model = model
        self._notes = notes

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        written: list[str] = []
        verdicts: list[str] = []
        is_reading = False
        try:
            async for delta in self._model.stream(request):
                match delta:
                    case Text():
                        written.append(delta.text)
                    case ToolCall(name=name, arguments=arguments):
                        is_reading = is_reading or name != VERDICT_TOOL
                        verdicts += [arguments] if name == VERDICT_TOOL else []
                    case Retry():
                        written, verdicts, is_reading = [], [], False
                    case _:
                        pass
                yield delta
        finally:
            said = verdicts if is_reading else [*verdicts, "".join(written)]
            self._notes.objects = self._notes.objects or any(map(objects_in, said))

    async def close(self) -> None:
        await self._model.close()


async def read_and_judge(
    asked: AskedModel, question: PolicyQuestion, readable: ReadableProject, place: ReadingPlace, notes: ThoughtNotes
) -> Opinion:
    """Lets the model read, and returns its verdict. `notes` get its calls. Raises a `WaveError` if it gives none."""
    given: asyncio.Future[Opinion] = asyncio.get_running_loop().create_future()
    messages = MessageManager()
    verdict = VerdictTool(given, notes, lambda: _is_reading(messages))
    model = OverheardModel(asked.client, notes)
    parts = _parts(asked, model, question, readable, place, verdict=verdict, messages=messages)
    turn = Turn(parts)
    work = asyncio.ensure_future(turn.run(question.user))
    try:
        await asyncio.wait({work, given}, return_when=asyncio.FIRST_COMPLETED)
        opinion = given.result() if given.done() else await _said(asked, turn, work.result(), notes)
    finally:
        given.cancel()
        work.cancel()
        await asyncio.wait({work})
        notes.called(*_calls(parts.messages))
    if parts.draft.cuts or parts.messages.compacted_upto:
        raise WaveError(_TOO_LONG)  # it may not have seen all of the event
    return opinion


def _is_reading(messages: MessageManager) -> bool:
    """Whether the last answer with calls has others than verdicts."""
    answers = ([one.name for one in message.blocks if isinstance(one, ToolBlock)] for message in messages.messages)
    return {*[names for names in answers if names][-1]} != {VERDICT_TOOL}


def _calls(messages: MessageManager) -> Iterator[InnerCall]:
    """What the model read, or wanted to, for the journal: no hook saw it."""
    for block in (block for message in messages.messages for block in message.blocks):
        if isinstance(block, ToolBlock) and block.name != VERDICT_TOOL:
            written = one_line(json.dumps(block.parameters, ensure_ascii=False), _INPUT)
            yield InnerCall(block.name, written, _decision(block))


def _decision(block: ToolBlock) -> str:
    if block.result is None:
        return "unfinished"
    return "denied" if block.error == DENIED else "ran" if block.success else "failed"


async def _said(asked: AskedModel, turn: Turn, status: TurnStatus, notes: ThoughtNotes) -> Opinion:
    """The verdict in the text that the turn ended with; or, if it is none, in the answer to one more request."""
    if status is TurnStatus.MAX_TURNS:
        raise WaveError(f"the model gave no verdict in {MOST_REQUESTS} requests")
    if status is not TurnStatus.COMPLETED:
        raise WaveError(turn.error or asked.spending.why_used_up)
    try:
        return opinion_in(turn.text or "")
    except OpinionError as error:
        notes.objects = notes.objects or error.objects
        parts = turn.parts
        again = await parts.draft.part(parts.messages.for_model, repair(str(error))).request()
        return required_opinion(await asked.answer(replace(again, must_call=VERDICT_TOOL)), notes)


def _session(place: Project) -> SessionFacts:
    home = os.path.expanduser("~")
    return SessionFacts(session_id="", transcript_path="", project_dir=place.directory, home=home, start=place.start)


def _authority(
    readable: ReadableProject, facts: SessionFacts, place: ReadingPlace, question: PolicyQuestion
) -> Authority:
    """The session's rules, in the mode that asks about everything but reading in the project. Transcripts of
    the session count as part of it: they hold what its model knows, and no other file beside them is open."""
    transcripts = tuple(map(resolve_or_keep, question.transcripts))
    return Authority(
        mode=PermissionMode.DEFAULT,
        rules=readable.rules,
        places=Places(facts.project_dir, facts.home, facts.start),
        directories=(*readable.directories, *transcripts),
        find_protected=readable.find_protected,
        border=place.sandbox.refusal if place.sandbox else lambda _: None,
    )


def _context(project: Project, place: ReadingPlace) -> ToolContext:
    return ToolContext(
        project_dir=Path(project.directory),
        start=Path(project.start),
        environment=place.environment,
        outputs=place.outputs,
        ledger=place.ledger,
        sandbox=place.sandbox,
    )


def _parts(
    asked: AskedModel,
    model: Model,
    question: PolicyQuestion,
    readable: ReadableProject,
    place: ReadingPlace,
    *,
    verdict: VerdictTool,
    messages: MessageManager,
) -> Parts:
    facts = _session(readable.place)
    tools: dict[str, Tool] = {tool.name: tool for tool in (Read(KnownFiles()), Glob(), Grep(), verdict)}
    specs = tuple(ToolSpec(tool.name, tool.description, tool.schema()) for tool in tools.values())
    hooks = HookManager((), runner=Runners({}), session=facts, environment=place.environment)
    calls = CallRunner(
        messages=messages,
        hooks=hooks,
        tools=tools,
        context=_context(readable.place, place),
        authority=_authority(readable, facts, place, question),
        approver=None,
        emit=lambda _: None,
    )
    briefing = Briefing(
        lambda _mode, _around: SystemPrompt(question.system, {}),
        lambda _mode, _before: "",
        messages=messages,
        tools=lambda: specs,
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
        model=model,
        model_name=asked.name,
        briefing=briefing,
        count=RequestCount(MOST_REQUESTS),
        emit=lambda _: None,
        draft=draft,
        limits=asked.limits,
        compactor=Compactor(
            messages=messages,
            hooks=hooks,
            model=model,
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
