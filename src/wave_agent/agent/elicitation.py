"""What MCP servers ask the user during a call: hooks may answer first, and see the answer before the server does."""

from collections.abc import Mapping
from typing import Any

from wave_agent.agent.authority import Authority
from wave_agent.agent.consequences import consequences, perform
from wave_agent.hooks.events import HookEvent
from wave_agent.hooks.manager import HookManager
from wave_agent.mcp.values import Elicit, Elicitation, ElicitationAnswer
from wave_agent.messages import MessageManager


class HookedElicitation:
    """Asks hooks and the user. If there is no user to ask and no hook answers, the answer is no."""

    def __init__(
        self, *, hooks: HookManager, authority: Authority, messages: MessageManager, user: Elicit | None
    ) -> None:
        self._hooks = hooks
        self._authority = authority
        self._messages = messages
        self._user = user

    async def answer(self, question: Elicitation) -> ElicitationAnswer:
        """The answer for the server."""
        facts = _facts(question)
        answer = await self._of_hooks(HookEvent.ELICITATION, facts)
        if answer is None:
            answer = ElicitationAnswer() if self._user is None else await self._user(question)
        given = {"action": answer.action, "content": answer.content}
        return await self._of_hooks(HookEvent.ELICITATION_RESULT, {**facts, **given}) or answer

    async def _of_hooks(self, event: HookEvent, facts: Mapping[str, Any]) -> ElicitationAnswer | None:
        outcome = await self._hooks.run(event, facts, permission_mode=self._authority.mode.value)
        perform(consequences(outcome), self._messages)
        said = outcome.answer
        return None if said is None else ElicitationAnswer(action=said.action, content=said.content)


def _facts(question: Elicitation) -> dict[str, Any]:
    """The stdin fields of events about this question."""
    wanted = {"url": question.url} if question.mode == "url" else {"requested_schema": question.schema}
    return {"mcp_server_name": question.server, "message": question.message, "mode": question.mode, **wanted}
