"""The card of a Task call: what the subagent is doing, and its report at the end."""

from textual.content import Content

from wave_agent.screen.plain import plain
from wave_agent.screen.sizes import clean
from wave_agent.screen.tool_card import State, ToolCard
from wave_agent.text import one_line


class TaskCard(ToolCard):
    """Closed, it shows the subagent's latest call; open, its task, all of its calls, and the report."""

    def _subject(self) -> str:
        given = self.block.parameters
        return one_line(f"{given.get('subagent_type', '')}: {given.get('description', '')}", 120)

    def _input(self) -> list[Content]:
        return [plain(str(self.block.parameters.get("prompt", "")), "$text-primary")]

    def _result(self) -> list[Content]:
        calls = clean(self._tail).strip("\n")
        done = [plain("\n".join(f"  {line}" for line in calls.split("\n")), "$muted")] if calls else []
        return done if self.state is State.RUNNING else [*done, *super()._result()]
