"""Play one seed again: `python -m simulation.play session 12345`, with `tests` on the path."""

import logging
import sys

from simulation.seeds import KINDS


def main(kind: str, seed: str) -> None:
    """Play it; what breaks a promise is raised."""
    logging.disable(logging.CRITICAL)
    KINDS[kind](int(seed)).run()
    print(f"{kind} seed {seed} keeps every promise")


if __name__ == "__main__":
    main(*sys.argv[1:])
