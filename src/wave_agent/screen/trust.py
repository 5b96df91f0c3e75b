"""The trust question, shown when an untrusted project is opened."""

from collections.abc import Mapping, Sequence

from textual.content import Content

from wave_agent.screen.plain import plain
from wave_agent.screen.question import Choice, Question

TRUST, KEEP, WITHOUT, LEAVE = "trust", "keep", "without", "leave"
CHOICES = (
    Choice(WITHOUT, "Open without them: none of these hooks, servers, agents, skills and commands are used", "o"),
    Choice(TRUST, "I have reviewed them: trust this project for this run", "t"),
    Choice(KEEP, "I have reviewed them: trust them as they are now, until one of them changes", "k"),
    Choice(LEAVE, "Leave", "l"),
)


class TrustQuestion(Question):
    """Answers one of the four; None quits."""

    def __init__(
        self,
        project: str,
        hooks: Sequence[str],
        extensions: Sequence[str],
        alarms: Sequence[str] = (),
        servers: Sequence[str] = (),
    ) -> None:
        lines = [plain(project, "bold"), plain("")]
        if alarms:
            lines.append(plain("Something you trusted in it has changed:"))
            lines += [plain(f"  {alarm}") for alarm in alarms]
        if hooks:
            lines.append(
                plain("It has hooks: commands that run on your machine with your permissions while the agent works.")
            )
            lines += [plain(f"  {hook}") for hook in hooks]
        if servers:
            lines.append(
                plain(
                    "It has MCP servers: programs on your machine, or services elsewhere, whose tools the model uses."
                )
            )
            lines += [plain(f"  {server}") for server in servers]
            lines.append(
                plain(
                    "Their tools are not known yet: they are accepted as they are when a server is first connected, "
                    "and you are asked about later changes. To see them before, leave, and run wave mcp trust."
                )
            )
        if extensions:
            lines.append(
                plain("It has agents, skills or commands: instructions for the model, which may run commands.")
            )
            lines += [plain(f"  {one}") for one in extensions]
        super().__init__("Do you trust this project?", Content("\n").join(lines), CHOICES)


ACCEPT, REFUSE = "accept", "refuse"


class ChangedFiles(Question):
    """Asked during a session when a hook did not run because its files changed, or when the user has changed one in an
    editor. None refuses."""

    def __init__(self, project: str, changes: Mapping[str, str | None], *, by_user: bool = False) -> None:
        heading = "A hook did not run, and the action it guards was denied, because these trusted files have changed:"
        if by_user:
            heading = "These files of a hook are no longer what you trusted. Until you agree, the hook does not run:"
        lines = [plain(project, "bold"), plain(""), plain(heading)]
        lines += [plain(f"  {name}: {'deleted' if digest is None else 'changed'}") for name, digest in changes.items()]
        choices = (
            Choice(
                REFUSE,
                "No: hooks that need them stay off, and the actions they guard are denied"
                if by_user
                else "I did not change them: hooks that need them stay off, and the actions they guard are denied",
                "n",
            ),
            Choice(ACCEPT, "I have reviewed them: use them as they are now, in this session", "y"),
        )
        super().__init__("A hook has changed", Content("\n").join(lines), choices)
