"""The trust question, shown when an untrusted project is opened, and the one about hooks that change later."""

from collections.abc import Mapping

from wave_agent.screen.dialogs import Dialog, changed_files_dialog
from wave_agent.screen.question import Question, content_of


class TrustQuestion(Question):
    """Answers one of the four; None quits."""

    def __init__(self, dialog: Dialog) -> None:
        super().__init__(dialog.title, content_of(dialog), dialog.choices)


class ChangedFiles(Question):
    """Asked during a session when a hook did not run because its files changed, or when the user has changed one in an
    editor. None refuses."""

    def __init__(self, project: str, changes: Mapping[str, str | None], *, by_user: bool = False) -> None:
        dialog = changed_files_dialog(project, changes, by_user=by_user)
        super().__init__(dialog.title, content_of(dialog), dialog.choices)
