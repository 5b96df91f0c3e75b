"""The card of a Task call."""

from wave_agent.messages import ToolBlock
from wave_agent.screen.task_card import TaskCard
from wave_agent.screen.todo_card import card_of

TASK = {"description": "find it", "prompt": "Where is it?", "subagent_type": "explore"}


def test_the_card_of_a_task_shows_what_the_subagent_does_and_opens_to_all_of_it() -> None:
    card = card_of(ToolBlock("1", "Task", TASK), "/project")
    assert isinstance(card, TaskCard)
    card.output("Glob: *.py\n")
    card.output("Read: sum.py\n")
    closed, opened = card.closed_content().plain, card.open_content().plain
    assert "Task explore: find it" in closed
    assert "Read: sum.py" in closed
    assert "Glob" not in closed
    assert all(text in opened for text in ("Where is it?", "Glob: *.py", "Read: sum.py"))
    card.finish(ToolBlock("1", "Task", TASK, result="In sum.py:2.", success=True))
    assert all(text in card.open_content().plain for text in ("Glob: *.py", "In sum.py:2."))
