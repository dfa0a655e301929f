"""A home, a project, a model server, as the black-box tests have them."""

import sys
from pathlib import Path

TESTS = str(Path(__file__).resolve().parent.parent)
if TESTS not in sys.path:
    sys.path.insert(0, TESTS)

from blackbox.conftest import gate, place, serve  # noqa: E402

__all__ = ["gate", "place", "serve"]
