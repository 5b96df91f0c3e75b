"""`python -m benchmarks`: every claim, its floor and its limit. Exit status 1 if one does not hold."""

import sys

from benchmarks import reading, replaying, running, screen, scripts


def main() -> int:
    claims = [*reading.claims(), *running.claims(), *scripts.claims(), *replaying.claims(), *screen.claims()]
    for claim in claims:
        print(claim)
    return 0 if all(claim.holds for claim in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
