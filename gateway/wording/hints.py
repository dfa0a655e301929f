"""Commands that people are told to type: none where it would not work."""

from __future__ import annotations

import os

from ...workflows.paths import Paths


def typed(paths: Paths, command: str) -> str:
    """Return a command that is about something of a home; empty if a shell would look in another one.

    Such a home is that of the tour, which is deleted, or one that a program was given by its caller.
    """
    return command if Paths.of(os.environ) == paths else ""
