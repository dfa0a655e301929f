"""The permission modes of a session: the fourth table, which comes after the permission rules.

A person chooses the mode of a session: `ask` goes by the rules, `edits` also allows changes of files in
the folder, `plan` runs nothing but tools that only look, and `all` allows what no rule denies. A rule
that denies wins in every mode. The table is pure, finite and checked like the routing tables.
"""

from enum import StrEnum
from typing import Final, Literal

from .errors import UsageError
from .routing import Row, Table, when

Mode = Literal["ask", "edits", "plan", "all"]
MODES: Final[tuple[Mode, ...]] = ("ask", "edits", "plan", "all")
CYCLE: Final[tuple[Mode, ...]] = ("ask", "edits", "plan")
"""The modes that a key steps through; a key pressed once too often never leads to `all`."""


class Reach(StrEnum):
    """What a tool call can do."""

    LOOK = "look"  # read, search, or change nothing but the session's own work
    EDIT = "edit"  # change one file inside the folder
    ACT = "act"  # everything else: run a command, change a file elsewhere, call a server


class RuleVerdict(StrEnum):
    """The decision of the permission rules, which the mode may change."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class ModeAction(StrEnum):
    """What the mode makes of the decision of the rules."""

    KEEP = "keep"
    ALLOW = "allow"
    REFUSE = "refuse"


class ModeRow(Row):
    """One rule, and why it is so."""

    action: ModeAction
    why: str


PERMISSION_MODES: Final = Table(
    "permission modes",
    {"mode": MODES, "reach": tuple(Reach), "verdict": tuple(RuleVerdict)},
    (
        ModeRow(
            name="denied",
            when=when(verdict=RuleVerdict.DENY),
            action=ModeAction.KEEP,
            why="No mode allows what a rule denies.",
        ),
        ModeRow(
            name="plan-looks",
            when=when(mode="plan", reach=Reach.LOOK),
            action=ModeAction.KEEP,
            why="A plan is made by looking, as the rules allow.",
        ),
        ModeRow(
            name="plan-acts",
            when=when(mode="plan"),
            action=ModeAction.REFUSE,
            why="Nothing changes while a plan is made.",
        ),
        ModeRow(
            name="all",
            when=when(mode="all"),
            action=ModeAction.ALLOW,
            why="The person allowed everything that no rule denies.",
        ),
        ModeRow(
            name="edits",
            when=when(mode="edits", reach=Reach.EDIT),
            action=ModeAction.ALLOW,
            why="The person accepts changes of files in the folder, which `/revert` takes back.",
        ),
        ModeRow(
            name="by-rules",
            when=when(),
            action=ModeAction.KEEP,
            why="The permission rules decide.",
        ),
    ),
)

REFUSAL: Final = (
    "the session is in plan mode, in which only tools that read and search run; say what you would do, "
    "and the person can leave the mode with `/mode ask`"
)
"""The result of a call that the mode refuses, for the model."""


def mode_row(mode: str, reach: Reach, verdict: str) -> ModeRow:
    """Return the row that decides a call; raises `MachineError` for an unknown value."""
    return PERMISSION_MODES.decide((mode, reach, verdict))


def mode_named(name: str) -> Mode:
    """Return the mode of this name. Raises `UsageError` for an unknown one."""
    for mode in MODES:
        if mode == name:
            return mode
    raise UsageError(f"there is no mode `{name}`", f"modes: {', '.join(MODES)}")


def next_mode(mode: str) -> Mode:
    """Return the mode that the key goes to from this one."""
    known: tuple[str, ...] = CYCLE
    return CYCLE[(known.index(mode) + 1) % len(CYCLE)] if mode in known else CYCLE[0]
