"""What guards say about a call: hooks, protected paths, rules and the mode. Nobody is asked, and nothing runs."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.authority import Authority
from wave_agent.agent.call_facts import CallExaminer, seen_by, tool_facts
from wave_agent.agent.call_results import RequestedCall
from wave_agent.hooks.events import HookEvent
from wave_agent.hooks.manager import HookManager
from wave_agent.hooks.verdicts import Outcome
from wave_agent.permissions.decision import INSTEAD, JudgedCall, Permission, Ruling, decide
from wave_agent.system.real_files import Seen
from wave_agent.tools.base import Tool


class Reviewed(Struct, frozen=True):
    """A call with everything known about it, and the permission it has."""

    subject: JudgedCall
    permission: Permission
    seen: Mapping[str, Seen] = {}
    """What its paths pointed to."""


class CallReview:
    """Reviews calls for whoever decides what to do about them: this agent, or another one."""

    def __init__(
        self,
        hooks: HookManager,
        authority: Authority,
        examiner: CallExaminer,
        start: str,
        *,
        shown_mode: str | None = None,
    ) -> None:
        """`start` is where relative paths start. `shown_mode` is the mode that hooks see, if not the authority's."""
        self._hooks = hooks
        self._authority = authority
        self._examiner = examiner
        self._start = start
        self._shown_mode = shown_mode

    async def ask_hooks(self, call: RequestedCall, tool: Tool, tool_input: Mapping[str, Any]) -> Outcome:
        """What PreToolUse hooks say, and the input as they leave it."""
        return await self._hooks.run(
            HookEvent.PRE_TOOL_USE,
            call.facts(tool_input),
            permission_mode=self._shown_mode or self._authority.mode.value,
            tool=tool_facts(tool, self._start, call.effects),
        )

    async def permission(
        self, tool: Tool, judged: Outcome, before: Mapping[str, Seen], *, secret: bool = False
    ) -> Reviewed:
        """The permission of a call that hooks have judged.

        `before`: what the paths pointed to when hooks started. `secret`: a hook may have inserted something that the
        model must not see.
        """
        tool_input: Mapping[str, Any] = judged.tool_input or {}
        seen = seen_by(tool, tool_input)
        if swapped := next((path for path, one in seen.items() if before.get(path, one).real != one.real), None):
            why = f"{swapped} was replaced while hooks judged this call. {INSTEAD}"
            denied = Permission(answer=Ruling.DENY, by="a replaced path", for_model=why)
            return Reviewed(JudgedCall(tool=tool.name, tool_input=tool_input), denied, seen)
        subject = await self._examiner.examine(tool, tool_input, seen)
        if secret:
            subject = replace(subject, outside=None, secret=True)
        authority = self._authority
        return Reviewed(subject, decide(subject, authority.mode, authority.rules, judged, authority.places), seen)
