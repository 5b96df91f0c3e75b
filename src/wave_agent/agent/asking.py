"""Asking whether a call may run: first PermissionRequest hooks, then the user."""

import os
import shlex
from collections.abc import Callable

from wave_agent.agent.authority import Authority
from wave_agent.agent.call_facts import tool_facts
from wave_agent.agent.call_results import RequestedCall
from wave_agent.events import Event, PermissionRequested
from wave_agent.hooks.dialects import heard_by
from wave_agent.hooks.events import HookEvent
from wave_agent.hooks.manager import HookManager
from wave_agent.hooks.verdicts import Outcome
from wave_agent.messages import MessageManager
from wave_agent.permissions.decision import (
    Allow,
    Approver,
    Deny,
    JudgedCall,
    Permission,
    PermissionRequest,
    is_lasting,
    suggested_together,
    suggestions,
    unanswered,
)
from wave_agent.tools.base import Tool, ToolContext


class PermissionAsker:
    """Asks hooks and the user. If there is no user to ask, the answer is no."""

    def __init__(
        self,
        *,
        hooks: HookManager,
        authority: Authority,
        messages: MessageManager,
        context: ToolContext,
        approver: Approver | None,
        emit: Callable[[Event], None],
    ) -> None:
        self._hooks = hooks
        self._authority = authority
        self._messages = messages
        self._context = context
        self._approver = approver
        self._emit = emit

    @property
    def is_attended(self) -> bool:
        return self._approver is not None

    async def ask_hooks(self, call: RequestedCall, tool: Tool, subject: JudgedCall) -> Outcome:
        suggested = suggestions(subject, self._authority.places)
        return await self._hooks.run(
            HookEvent.PERMISSION_REQUEST,
            {**call.facts(subject.tool_input), "permission_suggestions": suggested},
            permission_mode=self._authority.mode.value,
            tool=tool_facts(tool, str(self._context.cwd), call.effects),
            dialects=heard_by(HookEvent.PERMISSION_REQUEST, attended=self._approver is not None),
        )

    async def ask_user(self, call: RequestedCall, subject: JudgedCall, question: Permission) -> Allow | Deny:
        from wave_agent.effects.shown import call_summary, to_json  # lazy: only if there is a question

        effects = call.effects(subject.tool_input)
        does = call_summary(subject.tool, effects, str(self._context.project_dir), os.path.lexists)
        self._emit(
            PermissionRequested(
                id=call.id,
                tool_name=subject.tool,
                tool_input=subject.tool_input,
                reason=question.for_user,
                does=does,
                effects=to_json(effects),
            )
        )
        if self._approver is None:
            return self._unattended(call, subject, question)
        await self._hooks.run(
            HookEvent.NOTIFICATION,
            {
                "message": f"Your permission is needed to use {subject.tool}{self._asker}: {question.for_user}",
                "title": "Permission needed",
                "notification_type": "permission_prompt",
            },
            permission_mode=self._authority.mode.value,
        )
        request = PermissionRequest(
            tool_name=subject.tool,
            tool_input=subject.tool_input,
            reason=question.for_user,
            suggestions=suggestions(subject, self._authority.places),
            together=suggested_together(subject, self._authority.places),
            tool_use_id=call.id,
            by=question.by,
            does=does,
            effects=effects,
            agent_type="" if self._hooks.agent is None else self._hooks.agent.agent_type,
            question=call.question,
        )
        from wave_agent.agent.approval import answer_of  # lazy: only if someone can be asked

        return await answer_of(self._approver, request, self._messages.add_error_block, self._context.door)

    @property
    def is_subagent(self) -> bool:
        return self._hooks.agent is not None

    @property
    def _asker(self) -> str:
        return "" if self._hooks.agent is None else f" in the subagent {self._hooks.agent.agent_type}"

    def _unattended(self, call: RequestedCall, subject: JudgedCall, question: Permission) -> Deny:
        """Denies the call, and says which rule would allow it if only the mode is against it. Of a call that the user's
        own command makes, the user reads the result itself."""
        by_mode = is_lasting(question.by) and not subject.outside
        rule = next(iter(suggestions(subject, self._authority.places)), "") if by_mode else ""
        allowing = f". To allow it: --allowed-tools {shlex.quote(rule)}" if rule else ""
        if call.question:
            return Deny(f"nobody could be asked: {question.for_user}{allowing}")
        self._messages.add_notice_block(
            f"{subject.tool} was not run, as this run is not interactive: {question.for_user}{allowing}"
        )
        return Deny(unanswered(question).for_model)
