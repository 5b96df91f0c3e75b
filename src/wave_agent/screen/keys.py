"""Every key of the screen: what it does and where. Bindings, `/help` and the documentation are made from this table."""

from enum import StrEnum
from typing import NamedTuple

from textual.binding import Binding, BindingType


class Where(StrEnum):
    """Where the keyboard is."""

    PROMPT = "in the prompt"
    ANYWHERE = "anywhere"
    CARDS = "on a card of the conversation"
    QUESTION = "in a question"
    TRUST = "in the question of trust"


class Key(NamedTuple):
    keys: str
    """Textual's names, separated by commas."""
    where: Where
    meaning: str
    action: str = ""
    """What it is bound to; empty where a widget of the library does it by itself."""
    shown: str = ""
    """How people write it, if not as `keys`."""

    first: bool = False
    """It comes before whatever the widget at hand would do with it."""

    @property
    def label(self) -> str:
        return self.shown or " ".join("-".join(map(_pretty, key.split("+"))) for key in self.keys.split(","))


_NAMES = {"pageup": "Page-Up", "pagedown": "Page-Down", "escape": "Esc"}


def _pretty(part: str) -> str:
    return _NAMES.get(part, part.upper() if len(part) == 1 else part.capitalize())


KEYS = (
    Key("enter", Where.PROMPT, "send the prompt; queued while the agent works", "send"),
    Key("shift+enter,ctrl+j,alt+enter", Where.PROMPT, "a new line; `\\` and Enter does it too", "newline"),
    Key("up", Where.PROMPT, "line up; in the first line: take back a queued prompt, or the prompt before", "up"),
    Key("down", Where.PROMPT, "line down; in the last line: the prompt after", "down"),
    Key("tab", Where.PROMPT, "take the completion; without one: to the cards of the conversation", "tab"),
    Key("ctrl+r", Where.PROMPT, "search the prompts of this project", "search"),
    Key("ctrl+d", Where.PROMPT, "leave, if the prompt is empty; else delete a character", "delete_or_leave"),
    Key("escape", Where.ANYWHERE, "close what is open; else interrupt the agent: model, hooks and tools end", "escape"),
    Key("ctrl+c", Where.ANYWHERE, "empty the prompt, interrupt; twice: leave", "quit_soon", first=True),
    Key("ctrl+q", Where.ANYWHERE, "leave at once"),
    Key("shift+tab", Where.ANYWHERE, "the next permission mode: default, acceptEdits, plan", "next_mode", first=True),
    Key("ctrl+o", Where.ANYWHERE, "open or close the card at hand, or else the latest", "open_card"),
    Key("pageup", Where.ANYWHERE, "scroll the conversation up", "scroll_up"),
    Key("pagedown", Where.ANYWHERE, "scroll the conversation down", "scroll_down"),
    Key("ctrl+home", Where.ANYWHERE, "to the beginning of the conversation", "scroll_start"),
    Key("ctrl+end", Where.ANYWHERE, "to its end, and along with what comes", "scroll_end"),
    Key("up", Where.CARDS, "to the card above", "card(-1)"),
    Key("down", Where.CARDS, "to the card below", "card(1)"),
    Key("enter", Where.CARDS, "open or close it", "open_card"),
    Key("tab", Where.CARDS, "back to the prompt; so does Esc, and so does typing", "to_prompt"),
    Key("up,down,enter", Where.QUESTION, "choose"),
    Key("y", Where.QUESTION, "yes"),
    Key("a", Where.QUESTION, "yes, and always: the first rule offered"),
    Key("n", Where.QUESTION, "no"),
    Key("t", Where.QUESTION, "no, and tell the model why"),
    Key("escape", Where.QUESTION, "no, and interrupt"),
    Key("pageup,pagedown", Where.QUESTION, "scroll what is asked about"),
    Key("o", Where.TRUST, "open without the project's own hooks and commands"),
    Key("t", Where.TRUST, "trust them for this run"),
    Key("k", Where.TRUST, "trust them as they are now, until one of them changes"),
    Key("l", Where.TRUST, "leave; so does Esc"),
)


def bindings(where: Where, namespace: str = "") -> list[BindingType]:
    """`namespace` is who has the actions, if not the widget itself."""
    prefix = f"{namespace}." if namespace else ""
    found = [key for key in KEYS if key.where is where and key.action]
    return [Binding(key.keys, f"{prefix}{key.action}", key.meaning, show=False, priority=key.first) for key in found]


def actions(where: Where) -> dict[str, str]:
    """Key name → action."""
    return {name: key.action for key in KEYS if key.where is where and key.action for name in key.keys.split(",")}
