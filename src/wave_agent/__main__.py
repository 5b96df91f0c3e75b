"""`python -m wave_agent` is the same as `wave`, for when scripts are not on PATH."""

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def main(platform: str = sys.platform, version: "tuple[int, ...]" = sys.version_info[:3]) -> int:
    """Run this process's command line; the installed script exits with the returned status.

    Up to the first check, everything here runs on any Python since 3.6, and on Windows.
    """
    if platform == "win32" or version < (3, 11):
        from wave_agent.cli.requirements import missing_requirement  # lazy: few systems lack something

        sys.stderr.write(missing_requirement(platform, version))
        return 1
    gc.disable()  # loading modules creates no garbage, and looking for some takes a twentieth of the time
    words = sys.argv[1:]
    if words[:2] == ["guard", "run"] and "--timeout" in words and "--resident" not in words:
        # As a host calls it: a resident guard may answer before anything else is loaded.
        from wave_agent.guard.client import main as ask

        ask(words[2:])
    from wave_agent.cli.quick import flags_in, text_for, written  # lazy: see above

    if "_WAVE_COMPLETE" not in os.environ:  # otherwise Tab was pressed
        text = text_for(words, os.environ)
        if text is not None:
            return written(0, text)
        flags = flags_in(words)
        if flags is not None:
            return written(_prompt(flags))
    from wave_agent.cli.main import main as run  # lazy: only for lines that need its parser

    _collect_garbage()
    return run()


def _prompt(flags: "Mapping[str, Any]") -> int:
    try:
        _skip_script_directory()
        _load_msgspec()
        from wave_agent.cli.headless import start_prompt  # lazy: takes most of the time of a start

        return start_prompt(**flags)  # collects garbage as soon as there is an agent
    except (Exception, KeyboardInterrupt) as error:
        from wave_agent.cli.main import report  # lazy: few runs fail

        return report(error)


def _skip_script_directory() -> None:
    """There are only programs where `wave` is installed, and every import would look there first."""
    if sys.path[0] == os.path.dirname(os.path.realpath(sys.argv[0])):
        del sys.path[0]


def _load_msgspec() -> None:
    """Without `typing_extensions`, which takes as long to load as ten modules of this package. msgspec takes the same
    names from `typing` if it cannot be imported; `None` is Python's way to say so."""
    modules: dict[str, Any] = sys.modules  # pyright: ignore[reportAssignmentType]
    hidden = modules.setdefault("typing_extensions", None) is None
    __import__("msgspec")  # lazy: `wave --help` does without it
    if hidden:
        del modules["typing_extensions"]


def _collect_garbage() -> None:
    gc.freeze()  # what is loaded by now is never garbage
    gc.enable()


if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):  # Pythons that are too old do not know it
        # With `-m`, the first place for modules is the current directory: a project's `shlex.py` would run.
        del sys.path[0]
    sys.exit(main())
