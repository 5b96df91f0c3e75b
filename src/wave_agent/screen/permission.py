"""The questions about a call: whether it may run, and whether its changes may stay."""

from textual.app import ComposeResult
from textual.widgets import Input, OptionList

from wave_agent.permissions.decision import PermissionRequest, RestoreRequest
from wave_agent.screen.dialogs import TELL, Choice, permission_dialog, restore_dialog
from wave_agent.screen.question import Question, content_of


class RestoreDialog(Question):
    """Answers `restore` or `keep`; None, if the user turned away, restores as well."""

    def __init__(self, request: RestoreRequest, project: str) -> None:
        dialog = restore_dialog(request, project)
        super().__init__(dialog.title, content_of(dialog), dialog.choices)


class PermissionDialog(Question):
    """Answers `yes`, `always:RULES`, `no` or `tell:WORDS`; None interrupts."""

    def __init__(self, request: PermissionRequest, diff: str, project: str) -> None:
        dialog = permission_dialog(request, diff, project)
        super().__init__(dialog.title, content_of(dialog), dialog.choices)

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
