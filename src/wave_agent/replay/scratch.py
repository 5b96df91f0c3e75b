"""Copies a project, up to a size limit, for hooks to run in."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from wave_agent.tools.search.walk import Walk

_FILES = 20_000
_TOTAL = 256 << 20
_ONE_FILE = 32 << 20
_NEVER = frozenset(
    {"node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
)
_ALWAYS = (".wave", ".claude", ".codex")
"""Settings and hook scripts, copied even if `.gitignore` lists them."""


class Scratch(Struct, frozen=True):
    """What was copied, and what was not."""

    files: int
    left_out: tuple[str, ...]


class _Budget:
    def __init__(self, files: int, total: int) -> None:
        self.files = files
        self.total = total
        self.copied = 0

    def takes(self, size: int) -> bool:
        if self.copied >= self.files or size > self.total:
            return False
        self.copied += 1
        self.total -= size
        return True


def copy_project(
    project: Path, target: Path, needed: Iterable[str] = (), *, files: int = _FILES, total: int = _TOTAL
) -> Scratch:
    """Copy files that git does not ignore, and the repository if it fits. `needed` are files that must be copied."""
    target.mkdir(mode=0o700)
    budget, left_out = _Budget(files, total), dict[str, None]()
    for name in _named_first(project, needed):
        _copy(project, target, name, budget, left_out)
    if (project / ".git").is_dir():
        _copy_repository(project, target, budget, left_out)
    elif (project / ".git").exists():
        left_out[".git (it only points to another repository)"] = None
    for name, _ in Walk(str(project), str(project)).files():
        unwanted = next((part for part in Path(name).parts[:-1] if part in _NEVER), None)
        if unwanted is not None:
            left_out[f"{name[: name.index(unwanted) + len(unwanted)]}/ (can be regenerated)"] = None
        elif not os.path.lexists(target / name) and target not in (project / name).parents:
            _copy(project, target, name, budget, left_out)
    left_out.update(dict.fromkeys(f"{name} (ignored)" for name in _ignored(project, target)))
    return Scratch(budget.copied, tuple(left_out))


def _named_first(project: Path, needed: Iterable[str]) -> list[str]:
    """Files that hooks need, copied before anything else uses up the budget."""
    found = [os.path.relpath(path, project) for path in needed if os.path.isfile(path)]
    for directory in _ALWAYS:
        found += [str(path.relative_to(project)) for path in sorted((project / directory).rglob("*")) if path.is_file()]
    return [name for name in dict.fromkeys(found) if not name.startswith("..")]


def _copy_repository(project: Path, target: Path, budget: _Budget, left_out: dict[str, None]) -> None:
    own = [path for path in (project / ".git").rglob("*") if path.is_file() and not path.is_symlink()]
    size = sum(path.stat().st_size for path in own)
    if len(own) > budget.files - budget.copied or size > budget.total // 2:
        left_out[f".git ({size >> 20} MiB in {len(own)} files: too much)"] = None
        return
    try:
        shutil.copytree(project / ".git", target / ".git", symlinks=True)
    except OSError as error:  # git is using it, or parts of it belong to another user
        shutil.rmtree(target / ".git", ignore_errors=True)
        left_out[f".git ({error.strerror or 'it cannot be copied completely'})"] = None
        return
    budget.copied += len(own)
    budget.total -= size


def _copy(project: Path, target: Path, name: str, budget: _Budget, left_out: dict[str, None]) -> None:
    source, copy = project / name, target / name
    try:
        size = source.lstat().st_size
        if size > _ONE_FILE:
            left_out[f"{name} ({size >> 20} MiB)"] = None
        elif not budget.takes(size):
            left_out["everything beyond the limit (too many files, or too large)"] = None
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy, follow_symlinks=False)
    except OSError as error:
        left_out[f"{name} ({error.strerror or error})"] = None


def _ignored(project: Path, target: Path) -> list[str]:
    """Top-level entries of the project that are not in the copy."""
    try:
        names = sorted(os.listdir(project))
    except OSError:
        return []
    return [
        f"{name}/" if (project / name).is_dir() else name
        for name in names
        if name != ".git" and name not in _NEVER and _has_files(project / name) and not os.path.lexists(target / name)
    ]


def _has_files(path: Path) -> bool:
    return not path.is_dir() or any(path.iterdir()) if os.access(path, os.R_OK) else True
