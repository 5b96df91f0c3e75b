"""The question with which an untrusted project opens."""

from collections.abc import Mapping, Sequence

from textual.content import Content

from wave_agent.screen.plain import plain
from wave_agent.screen.question import Choice, Question

TRUST, KEEP, WITHOUT, LEAVE = "trust", "keep", "without", "leave"
CHOICES = (
    Choice(WITHOUT, "Open without them: nothing of the project's own hooks and commands runs", "o"),
    Choice(TRUST, "I have looked at them: trust this project for this run", "t"),
    Choice(KEEP, "I have looked at them: trust them as they are now, until one of them changes", "k"),
    Choice(LEAVE, "Leave", "l"),
)


class TrustQuestion(Question):
    """Answers one of the four; None is to leave."""

    def __init__(self, project: str, hooks: Sequence[str], commands: Sequence[str], alarms: Sequence[str] = ()) -> None:
        lines = [plain(project, "bold"), plain("")]
        if alarms:
            lines.append(plain("What you trusted in it is not as you left it:"))
            lines += [plain(f"  {alarm}") for alarm in alarms]
        if hooks:
            lines.append(plain("It brings hooks: commands that run on your machine, as you, while the agent works."))
            lines += [plain(f"  {hook}") for hook in hooks]
        if commands:
            lines.append(plain("It brings commands: prompts that somebody else wrote."))
            lines += [plain(f"  /{command}") for command in commands]
        super().__init__("Do you trust this project?", Content("\n").join(lines), CHOICES)


ACCEPT, REFUSE = "accept", "refuse"


class ChangedFiles(Question):
    """Asked in the middle of a session when a hook did not run because its files have changed. None is to refuse."""

    def __init__(self, project: str, changes: Mapping[str, str | None]) -> None:
        told = "A hook did not run, and what it guards was denied, since these files are not what you trusted:"
        lines = [plain(project, "bold"), plain(""), plain(told)]
        lines += [plain(f"  {name}: {'gone' if digest is None else 'changed'}") for name, digest in changes.items()]
        choices = (
            Choice(REFUSE, "I did not change them: hooks that need them stay off, and what they guard is denied", "n"),
            Choice(ACCEPT, "I have looked at them: use them as they are now, in this session", "y"),
        )
        super().__init__("A hook has changed", Content("\n").join(lines), choices)
