"""`python -m wave_agent` is `wave`, for where no scripts are on the PATH."""

import sys

from wave_agent.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
