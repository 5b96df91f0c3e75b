"""The skills that a subagent has from the start. Each is loaded by a call of Skill, which hooks and rules judge."""

from collections.abc import Sequence
from uuid import uuid4

from wave_agent.agent.call_results import CallEnd, RequestedCall
from wave_agent.agent.skills import Skill, model_skills
from wave_agent.agent.tool_calls import CallRunner
from wave_agent.messages import NOT_RUN, MessageManager, ToolBlock
from wave_agent.settings.agent_definitions import AgentDefinition
from wave_agent.settings.extensions import Extensions


class SubagentSkills:
    """Loads the skills of one subagent."""

    def __init__(
        self, definition: AgentDefinition, extensions: Extensions | None, calls: CallRunner, messages: MessageManager
    ) -> None:
        """`calls` and `messages` are those of the subagent."""
        self._definition, self._calls, self._messages = definition, calls, messages
        self._known = model_skills(extensions)
        self._tool = Skill(self._known, permits=False)

    async def load(self) -> tuple[dict[str, str], Sequence[CallEnd]]:
        """The texts of those that may be used, and how the calls ended. The user is notified of others."""
        texts: dict[str, str] = {}
        ends: list[CallEnd] = []
        for name in self._definition.skills:
            if name not in self._known:
                self._notify(name, "there is no such skill that the model may load")
                continue
            block = ToolBlock(f"skill-{uuid4().hex[:12]}", self._tool.name, {"skill": name})
            self._messages.add_aside(block)
            call = RequestedCall(block.id, block.name, block.parameters)
            ends.append(await self._calls.run_unoffered(call, self._tool))
            done = self._messages.aside(block.id)
            assert done is not None, "every call gets a result"
            if done.success:
                texts[name] = (done.result or "").strip()
            else:
                self._notify(name, (done.result or "").removeprefix(NOT_RUN).strip())
            if ends[-1].ends_turn:
                break
        return texts, ends

    def _notify(self, name: str, why: str) -> None:
        self._messages.add_notice_block(f"{self._definition.source}: skills: {name} is not used: {why.rstrip('.')}.")
