"""The permission question: what the call would do, who asks and why, and the possible answers."""

import json

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, OptionList

from wave_agent.permissions.decision import Allow, Deny, PermissionRequest, RestoreRequest
from wave_agent.screen.diff import numbered
from wave_agent.screen.plain import plain
from wave_agent.screen.question import Choice, Question
from wave_agent.screen.tool_card import description_of

ASK_INSTEAD = "Do without it, or ask what to do instead."
YES, NO, TELL, ALWAYS = "yes", "no", "tell", "always:"
BETWEEN = "\0"  # separates rules chosen together: no command contains NUL


def body(request: PermissionRequest, diff: str) -> Content:
    """What the call would do, then who asks and why."""
    if diff:
        shown = numbered(diff)
    elif isinstance(command := request.tool_input.get("command"), str):
        purpose = description_of(request.tool_input)
        said = plain(f"\nThe model says: {purpose}" if purpose else "", "$muted")
        shown = Content.assemble(plain(f"$ {command}"), said)
    else:
        shown = plain(json.dumps(request.tool_input, indent=2, ensure_ascii=False, default=str))
    does = plain(f"\n\nIt {request.does}." if request.does and not diff else "", "$muted")
    asks = [plain(f"\n\nAsked by {request.by}" if request.by else "\n\nAsked", "$muted")]
    if request.reason:
        asks.append(plain(f": {request.reason}", "$text-warning"))
    return Content.assemble(shown, does, *asks)


def choices(request: PermissionRequest) -> list[Choice]:
    """`always` is offered only if rules can answer the question."""
    offered = [(rule,) for rule in request.suggestions] + ([request.together] if request.together else [])
    rules = [
        Choice(f"{ALWAYS}{BETWEEN.join(texts)}", f"Yes, always in this project: {', '.join(texts)}", "a" * (not at))
        for at, texts in enumerate(offered if request.lasting else ())
    ]
    tell = () if request.question else (Choice(TELL, "No, and tell the model …", "t"),)
    return [Choice(YES, "Yes, once", "y"), *rules, Choice(NO, "No", "n"), *tell]


def rules_in(answer: str | None) -> tuple[str, ...]:
    """The rules the user wants to keep."""
    if answer is None or not answer.startswith(ALWAYS):
        return ()
    return tuple(answer.removeprefix(ALWAYS).split(BETWEEN))


def meaning_of(answer: str | None, *, to_user: bool = False) -> Allow | Deny:
    """The answer for the agent. `to_user`: the user wanted the call, and reads what became of it."""
    if answer == YES or rules_in(answer):
        return Allow()
    reason = (answer or "").removeprefix(NO).removeprefix(TELL).removeprefix(":")
    if answer is None:
        return Deny("the user interrupted.")
    if to_user:
        return Deny("you said no.")
    return Deny(f"the user said no: {reason}" if reason else f"the user said no. {ASK_INSTEAD}")


RESTORE, KEEP_CHANGE = "restore", "keep"
_LISTED = 20
"""Maximum number of files in one question."""


class RestoreDialog(Question):
    """Answers `restore` or `keep`; None, if the user turned away, restores as well: that is what the rules say."""

    def __init__(self, request: RestoreRequest, project: str) -> None:
        changes = request.changes
        lines = [
            f"{one.kind} {one.path.removeprefix(f'{project}/')}" + (f" ({one.rule})" if one.rule else "")
            for one in changes[:_LISTED]
        ]
        if len(changes) > _LISTED:
            lines.append(f"and {len(changes) - _LISTED:,} more")
        files = "a file" if len(changes) == 1 else f"{len(changes):,} files"
        doubt = "\n\nSomething else was running meanwhile, and may have done it." if request.meanwhile else ""
        super().__init__(
            f"{request.tool_name} changed {files} that rules protect. Restore?",
            Content.assemble(plain("\n".join(lines)), plain(doubt, "$text-warning")),
            [
                Choice(RESTORE, "Restore; the changed version is kept elsewhere", "r"),
                Choice(KEEP_CHANGE, "Keep the change", "k"),
            ],
        )


class PermissionDialog(Question):
    """Answers `yes`, `always:RULES`, `no` or `tell:WORDS`; None interrupts."""

    def __init__(self, request: PermissionRequest, diff: str, project: str) -> None:
        """A path outside the project is shown in full."""
        path = request.tool_input.get("file_path")
        shown = path.removeprefix(f"{project}/") if isinstance(path, str) else ""
        what = f"{request.tool_name} {shown}" if shown else request.tool_name
        asker = f" (subagent {request.agent_type})" if request.agent_type else ""
        super().__init__(request.question or f"May {what} run?{asker}", body(request, diff), choices(request))

    def compose(self) -> ComposeResult:
        yield from super().compose()
        words = Input(placeholder="Message for the model; Enter sends it", compact=True)
        words.display = False
        yield words

    def choose(self, choice: Choice) -> None:
        if choice.value != TELL:
            super().choose(choice)
            return
        words = self.query_one(Input)
        words.display = True
        self.query_one(OptionList).display = False
        words.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.give(f"{TELL}:{event.value.strip()}")
