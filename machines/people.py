"""What a person may do with a session that several people share: the third table.

A person has rights (`Right`); what they do is a `Deed`, and it concerns a turn or message that is their
own or another person's (`Whose`). The first row that matches says whether it is allowed, and what happens
where it is not. The rights are given by `[people]` in the configuration; the person at the machine has
all of them, and is never looked up here.
"""

from collections.abc import Collection
from enum import StrEnum
from typing import Final

from msgspec.structs import replace

from . import protocol as m
from .disposition import NOT_YOURS_ACK, Action, DispositionRow, Intent
from .routing import Row, Table, when
from .value import Value


class Right(StrEnum):
    """What a person may be allowed."""

    SPEAK = "speak"  # say things, change and take back one's own messages, steer one's own turn
    STEER = "steer"  # steer anybody's turn, set goals, reorder the queue
    STOP_OWN = "stop_own"  # stop a turn that one's own message began
    STOP = "stop"  # stop anybody's turn, revert files, take back anybody's message
    APPROVE = "approve"  # answer questions, change settings, and whatever else there is


class Deed(StrEnum):
    """What a person does."""

    SPEAK = "speak"
    STEER = "steer"
    STOP = "stop"
    APPROVE = "approve"


class Whose(StrEnum):
    """Whose turn or message it is about."""

    OWN = "own"
    OTHERS = "others"
    NOBODYS = "nobodys"  # nothing runs, or no person began what runs


DEFAULT_RIGHTS: Final = (Right.SPEAK, Right.STOP_OWN)
"""The rights of a person whose line gives none: with them no work of other people can be lost."""

_YES, _NO = "yes", "no"
_DEEDS: Final = {Action.STEER: Deed.STEER, Action.INTERRUPT: Deed.STOP}
_SAYS_NO_MORE: Final = (Intent.INTERRUPT_BARE, Intent.REVERT)


class Person(Value):
    """A person who talks to a session: their name, and their rights (`Right`)."""

    name: str
    may: tuple[str, ...] = DEFAULT_RIGHTS


class PeopleRow(Row):
    """One rule: whether it is allowed, and why, or why not."""

    action: str
    doc: str


ALLOW, REFUSE = "allow", "refuse"

# fmt: off
PEOPLE: Final = Table(
    "people",
    {
        "deed": tuple(Deed),
        "whose": tuple(Whose),
        **dict.fromkeys(Right, (_YES, _NO)),
    },
    (
        PeopleRow(name="speak",
            when=when(deed=Deed.SPEAK, speak=_YES), action=ALLOW,
            doc="A person with `speak` may send messages."),
        PeopleRow(name="steer-own",
            when=when(deed=Deed.STEER, whose=Whose.OWN, speak=_YES), action=ALLOW,
            doc="A person who may speak may add to what they asked for."),
        PeopleRow(name="steer",
            when=when(deed=Deed.STEER, steer=_YES), action=ALLOW,
            doc="`steer` is for anybody's turn."),
        PeopleRow(name="stop-own",
            when=when(deed=Deed.STOP, whose=Whose.OWN, stop_own=_YES), action=ALLOW,
            doc="`stop_own` is for the turn that one's own message began."),
        PeopleRow(name="stop",
            when=when(deed=Deed.STOP, stop=_YES), action=ALLOW,
            doc="`stop` is for anybody's turn."),
        PeopleRow(name="approve",
            when=when(deed=Deed.APPROVE, approve=_YES), action=ALLOW,
            doc="`approve` is for questions, settings, and whatever no other right is about."),
        PeopleRow(name="not-theirs",
            when=when(deed=(Deed.STEER, Deed.STOP), whose=Whose.OTHERS), action=REFUSE,
            doc="it is {owner}'s, and you do not have the right `{deed}`"),
        PeopleRow(name="no-right",
            when={}, action=REFUSE,
            doc="you do not have the right `{deed}`"),
    ),
)
# fmt: on


class FromPerson(m.Message):
    """A message of a person with limited rights: `may` are these rights."""

    message: m.Message
    user: str
    may: tuple[str, ...]

    @property
    def lane(self) -> m.Lane:  # type: ignore[override]
        """That of the message."""
        return self.message.lane

    @property
    def is_external(self) -> bool:  # type: ignore[override]
        """As the message is."""
        return self.message.is_external


def may(rights: Collection[str], deed: str, whose: str) -> PeopleRow:
    """Return the row that decides whether a person with these rights may do something."""
    return PEOPLE.decide((deed, whose, *(_YES if right in rights else _NO for right in Right)))


def whose(user: str, owner: str) -> Whose:
    """Say whose something is, for `user`: `owner` is who began it, empty if no person did."""
    if not owner:
        return Whose.NOBODYS
    return Whose.OWN if owner == user else Whose.OTHERS


class Weighed(Value):
    """What becomes of a message by the rights of its sender: its row, and the row about people.

    `why` says why not; with `is_refused` it is given back, else it waits.
    """

    row: DispositionRow
    rule: str = ""
    why: str = ""
    is_refused: bool = False


def weigh(
    row: DispositionRow, intent: str, user: str, rights: Collection[str], owner: str
) -> Weighed:
    """Weigh a message that a row of the first table decides, while `owner`'s turn runs.

    One that would steer or stop another person's turn waits, unless all that it says is to stop.
    """
    speaks = may(rights, Deed.SPEAK, Whose.NOBODYS)
    deed = _DEEDS.get(row.action)
    done = may(rights, deed, whose(user, owner)) if deed is not None else speaks
    if speaks.action == REFUSE:
        why = speaks.doc.format(owner=owner, deed=Deed.SPEAK)
        return Weighed(row=row, rule=speaks.name, why=why, is_refused=True)
    if done.action == ALLOW:
        return Weighed(row=row, rule=done.name)
    why = done.doc.format(owner=owner, deed=deed)
    if row.action is Action.INTERRUPT and intent in _SAYS_NO_MORE:
        return Weighed(row=row, rule=done.name, why=why, is_refused=True)
    instead = replace(row, action=Action.QUEUE, cause="", ack=NOT_YOURS_ACK)
    return Weighed(row=instead, rule=done.name, why=why)


def objection(rights: Collection[str], deed: str, user: str, owner: str) -> str:
    """Say why `user` may not do something with what is `owner`'s; empty if they may."""
    row = may(rights, deed, whose(user, owner))
    return row.doc.format(owner=owner, deed=deed) if row.action == REFUSE else ""
