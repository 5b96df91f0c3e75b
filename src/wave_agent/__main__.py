"""`python -m wave_agent` is the same as `wave`, for when scripts are not on PATH."""

import sys


def main() -> int:
    """Run this process's command line; the installed script exits with the returned status."""
    words = sys.argv[1:]
    if words[:2] == ["guard", "run"] and "--timeout" in words and "--resident" not in words:
        # As a host calls it: a resident guard may answer before anything else is loaded.
        from wave_agent.guard.client import main as ask

        ask(words[2:])
    from wave_agent.cli.main import main as run  # lazy: see above

    return run()


if __name__ == "__main__":
    sys.exit(main())
