"""The question after a turn in plan mode: whether to accept the plan, and in which mode to carry it out."""

from collections.abc import Mapping

from wave_agent.permissions.decision import PermissionMode
from wave_agent.screen.plain import plain
from wave_agent.screen.question import Choice, Question

GO_ON = "I accept this plan. Carry it out."
"""The prompt sent once the user accepts."""
KEEP_PLANNING = "keep planning"

_ANSWERS: Mapping[str, PermissionMode] = {
    "default": PermissionMode.DEFAULT,
    "acceptEdits": PermissionMode.ACCEPT_EDITS,
}


class PlanQuestion(Question):
    """Answers with a mode or `keep planning`; None also keeps planning."""

    def __init__(self) -> None:
        super().__init__(
            "Accept this plan?",
            plain("If you accept, the permission mode changes and the agent carries it out."),
            [
                Choice("default", "Yes, and ask me before each change (mode default)", "y"),
                Choice("acceptEdits", "Yes, and edit files without asking (mode acceptEdits)", "a"),
                Choice(KEEP_PLANNING, "No, keep planning: say in the prompt what should be different", "n"),
            ],
        )


def mode_in(answer: str | None) -> PermissionMode | None:
    """The mode in which an accepted plan is carried out."""
    return None if answer is None else _ANSWERS.get(answer)
