"""A recorded session of the screen: `wave demo --screen` plays it, and the picture in README.md is made from it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files

from msgspec import Struct
from msgspec import json as fast_json

Piece = tuple[int, str]
"""A part of a row: the number of its style, and its text."""
Row = Sequence[Piece]


class Frame(Struct, frozen=True):
    """What the screen shows from one moment on."""

    at: float
    """Seconds since the beginning."""
    rows: Mapping[int, Row]
    """The rows that differ from the frame before, from 0."""


class RecordedScene(Struct, frozen=True):
    """A part of the recording."""

    title: str
    last: int
    """The number of its last frame."""


class ScreenRecording(Struct, frozen=True):
    width: int
    height: int
    styles: Sequence[str]
    """In the notation of rich, such as `bold #d8dee9 on #15191f`."""
    frames: Sequence[Frame]
    scenes: Sequence[RecordedScene]

    @property
    def seconds(self) -> float:
        return self.frames[-1].at

    def screens(self) -> Iterator[tuple[Row, ...]]:
        """All rows of the screen, for each frame."""
        rows: list[Row] = [()] * self.height
        for frame in self.frames:
            for number, row in frame.rows.items():
                rows[number] = row
            yield tuple(rows)

    def to_json(self) -> str:
        """One line for each frame, so that versions can be compared."""
        head = {"width": self.width, "height": self.height, "styles": self.styles}
        parts = [f'"{name}": {json.dumps(value, ensure_ascii=False)}' for name, value in head.items()]
        for name, items in (("scenes", self.scenes), ("frames", self.frames)):
            lines = ",\n".join(fast_json.encode(one).decode() for one in items)
            parts.append(f'"{name}": [\n{lines}\n]')
        return "{" + ",\n".join(parts) + "}\n"


def plain(row: Row) -> str:
    """The row without its styles."""
    return "".join(text for _, text in row).rstrip()


def demo_recording() -> ScreenRecording:
    """The session that ships with the package; `make pictures` records it."""
    return fast_json.decode((files(__package__ or "") / "recording.json").read_bytes(), type=ScreenRecording)
