"""Files that a command writes for its user alone."""

import os
from pathlib import Path

import click

from wave_agent.system.private_files import open_private


def write_private_page(file: str, text: str) -> None:
    """Write the file readable only by its owner, like the transcript."""
    try:
        descriptor = open_private(Path(file), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    except OSError as error:
        raise click.UsageError(f"{file} cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)
