"""The question after a turn in plan mode: whether to accept the plan, and in which mode to carry it out."""

from wave_agent.screen.dialogs import PLAN_DIALOG
from wave_agent.screen.question import Question, content_of


class PlanQuestion(Question):
    """Answers with a mode or `keep planning`; None also keeps planning."""

    def __init__(self) -> None:
        super().__init__(PLAN_DIALOG.title, content_of(PLAN_DIALOG), PLAN_DIALOG.choices)
