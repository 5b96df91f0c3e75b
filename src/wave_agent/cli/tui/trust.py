"""The question with which an untrusted project opens."""

from collections.abc import Sequence

from textual.content import Content

from wave_agent.cli.tui.choice import Choice, Question
from wave_agent.cli.tui.plain import plain

TRUST, KEEP, WITHOUT, LEAVE = "trust", "keep", "without", "leave"
CHOICES = (
    Choice(WITHOUT, "Open without them: nothing of the project's own hooks and commands runs", "o"),
    Choice(TRUST, "I have looked at them: trust this project for this run", "t"),
    Choice(KEEP, "I have looked at them: trust them as they are now, until one of them changes", "k"),
    Choice(LEAVE, "Leave", "l"),
)


class TrustQuestion(Question):
    """Answers one of the four; None is to leave."""

    def __init__(self, project: str, hooks: Sequence[str], commands: Sequence[str]) -> None:
        lines = [plain(project, "bold"), plain("")]
        if hooks:
            lines.append(plain("It brings hooks: commands that run on your machine, as you, while the agent works."))
            lines += [plain(f"  {hook}") for hook in hooks]
        if commands:
            lines.append(plain("It brings commands: prompts that somebody else wrote."))
            lines += [plain(f"  /{command}") for command in commands]
        super().__init__("Do you trust this project?", Content("\n").join(lines), CHOICES)
