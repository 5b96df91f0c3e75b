"""Trees of files to search, and sessions with and without rg."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

RG = shutil.which("rg")
needs_rg = pytest.mark.skipif(RG is None, reason="rg is not on PATH")


def write(directory: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
