"""Every key of the screen. Bindings, `/help` and the documentation are generated from this table."""

from enum import StrEnum
from typing import NamedTuple

from textual.binding import Binding, BindingType


class Where(StrEnum):
    """What has the focus."""

    PROMPT = "in the prompt"
    ANYWHERE = "anywhere"
    CARDS = "on a card of the conversation"
    QUESTION = "in a question"
    TRUST = "in the trust question"


class Key(NamedTuple):
    keys: str
    """Textual's names, separated by commas."""
    where: Where
    meaning: str
    action: str = ""
    """The bound action; empty if the library's widget handles the key."""
    shown: str = ""
    """How to display it, if not as `keys`."""

    first: bool = False
    """Takes priority over the focused widget."""

    @property
    def label(self) -> str:
        return self.shown or " ".join("-".join(map(_pretty, key.split("+"))) for key in self.keys.split(","))


_NAMES = {"pageup": "Page-Up", "pagedown": "Page-Down", "escape": "Esc"}


def _pretty(part: str) -> str:
    return _NAMES.get(part, part.upper() if len(part) == 1 else part.capitalize())


KEYS = (
    Key("enter", Where.PROMPT, "send the prompt; queued while the agent works", "send"),
    Key("shift+enter,ctrl+j,alt+enter", Where.PROMPT, "insert a new line; `\\` and Enter works too", "newline"),
    Key("up", Where.PROMPT, "line up; in the first line: take back a queued prompt, or the previous prompt", "up"),
    Key("down", Where.PROMPT, "line down; in the last line: the next prompt", "down"),
    Key("tab", Where.PROMPT, "accept the completion; without one: go to the conversation's cards", "tab"),
    Key("ctrl+r", Where.PROMPT, "search this project's prompts", "search"),
    Key("ctrl+d", Where.PROMPT, "quit if the prompt is empty; else delete a character", "delete_or_leave"),
    Key("escape", Where.ANYWHERE, "close the open view; else interrupt the agent: model, hooks and tools", "escape"),
    Key("ctrl+c", Where.ANYWHERE, "clear the prompt, interrupt; twice: quit", "quit_soon", first=True),
    Key("ctrl+q", Where.ANYWHERE, "quit immediately"),
    Key("shift+tab", Where.ANYWHERE, "next permission mode: default, acceptEdits, plan", "next_mode", first=True),
    Key("ctrl+o", Where.ANYWHERE, "open or close the focused card, or else the latest", "open_card"),
    Key("pageup", Where.ANYWHERE, "scroll the conversation up", "scroll_up"),
    Key("pagedown", Where.ANYWHERE, "scroll the conversation down", "scroll_down"),
    Key("ctrl+home", Where.ANYWHERE, "go to the start of the conversation", "scroll_start"),
    Key("ctrl+end", Where.ANYWHERE, "go to the end and follow new entries", "scroll_end"),
    Key("up", Where.CARDS, "go to the card above", "card(-1)"),
    Key("down", Where.CARDS, "go to the card below", "card(1)"),
    Key("enter", Where.CARDS, "open or close it", "open_card"),
    Key("ctrl+y", Where.CARDS, "copy its text: the output, the change, the prompt", "copy_card"),
    Key("tab", Where.CARDS, "back to the prompt; Esc and typing do the same", "to_prompt"),
    Key("up,down,enter", Where.QUESTION, "choose"),
    Key("y", Where.QUESTION, "yes"),
    Key("a", Where.QUESTION, "yes, always: the first rule offered"),
    Key("n", Where.QUESTION, "no"),
    Key("t", Where.QUESTION, "no, and tell the model why"),
    Key("escape", Where.QUESTION, "no, and interrupt"),
    Key("pageup,pagedown", Where.QUESTION, "scroll the question's details"),
    Key("o", Where.TRUST, "open without the project's own hooks, servers, agents, skills and commands"),
    Key("t", Where.TRUST, "trust them for this run"),
    Key("k", Where.TRUST, "trust them as they are now, until one of them changes"),
    Key("l", Where.TRUST, "leave; Esc does the same"),
)


def bindings(where: Where, namespace: str = "") -> list[BindingType]:
    """`namespace` is the owner of the actions, if not the widget itself."""
    prefix = f"{namespace}." if namespace else ""
    found = [key for key in KEYS if key.where is where and key.action]
    return [Binding(key.keys, f"{prefix}{key.action}", key.meaning, show=False, priority=key.first) for key in found]


def actions(where: Where) -> dict[str, str]:
    """Key name → action."""
    return {name: key.action for key in KEYS if key.where is where and key.action for name in key.keys.split(",")}
