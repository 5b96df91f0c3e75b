"""`python -m wave_agent` is the same as `wave`, for when scripts are not on PATH."""

import sys

from wave_agent.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
