"""Large pastes: the prompt shows a placeholder, the full text is sent."""

import re

from wave_agent.screen.sizes import clean

MANY_LINES = 8
MANY_CHARACTERS = 1000
_PLACEHOLDER = re.compile(r"\[Pasted text #(\d+), \d[\d,]* (?:lines?|characters)\]")


class Pastes:
    """Texts pasted into the prompts of one session."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def fold(self, text: str) -> str:
        """What to insert into the prompt: the text itself or, if it is large, a placeholder."""
        text = clean(text.replace("\r\n", "\n").replace("\r", "\n"))
        lines = text.count("\n") + 1
        if lines < MANY_LINES and len(text) < MANY_CHARACTERS:
            return text
        self._texts.append(text)
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        return f"[Pasted text #{len(self._texts)}, {size}]"

    def unfold(self, prompt: str) -> str:
        """The prompt with full texts. A placeholder typed by hand stays."""

        def whole(found: re.Match[str]) -> str:
            number = int(found[1])
            return self._texts[number - 1] if 0 < number <= len(self._texts) else found[0]

        return _PLACEHOLDER.sub(whole, prompt)
