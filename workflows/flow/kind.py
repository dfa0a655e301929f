"""What a step can do, and what templates of others can say about it afterwards."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

__all__ = ["FIELDS", "ITEM_FIELDS", "OUTCOME_FIELDS", "STATUSES", "VERDICTS", "Kind"]


class Kind(StrEnum):
    """What a step does."""

    RUN = "run"
    SHELL = "shell"
    AGENT = "agent"
    JUDGE = "judge"
    ASK = "ask"
    WORKFLOW = "workflow"


STATUSES: Final = ("done", "failed", "skipped", "blocked")
"""How a step can have ended."""
VERDICTS: Final = ("done", "continue", "impossible")
"""What a judge can have said."""

_ALL: Final = {
    "status": "`done`, `failed`, `skipped` (its own `when` was false) or `blocked` (a need failed)",
    "output": "what it said: a text, a list of lines, or what its JSON says; of `for_each` a list",
    "error": "why it failed, in a sentence; empty if it did not",
}
_COMMAND: Final = {
    **_ALL,
    "exit_code": "the exit code, minus the signal that ended it, or none if nobody knows",
    "stderr": "what it wrote to standard error",
}

FIELDS: Final[Mapping[Kind, Mapping[str, str]]] = {
    Kind.RUN: _COMMAND,
    Kind.SHELL: _COMMAND,
    Kind.AGENT: {
        **_ALL,
        "goal": "the goal's last state, such as `achieved`; empty without one",
        "reason": "what the judge said of the goal",
        "turns": "turns that it took",
    },
    Kind.JUDGE: {**_ALL, "verdict": "`done`, `continue` or `impossible`", "reason": "why"},
    Kind.ASK: {**_ALL, "by": "who answered: `user`, or `default`"},
    Kind.WORKFLOW: {**_ALL, "run": "the id of its run"},
}
"""Fields of `steps.ID`, by kind, each with its meaning."""

ITEM_FIELDS: Final = {
    "items": "one record an item, in order, with `item`, `index` and the fields of its kind",
    "done": "how many items are done",
    "failed": "how many items failed",
    "total": "how many items there are",
}
"""Fields that a step with `for_each` has besides; its `exit_code` is the first that is no success."""

OUTCOME_FIELDS: Final = frozenset({"status", "error", "exit_code", "failed"})
"""Fields by which a condition looks at how a step ended, and so takes its failure upon itself."""
