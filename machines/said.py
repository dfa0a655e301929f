"""What somebody says, declared once: messages, entries and records carry it whole."""

from enum import StrEnum

from .conversation import Attachment
from .value import Value


class Said(Value):
    """Words, and who said them: as they were when they were sent.

    `user` is a person, a child, or empty for the owner of the session. `client_id` is the sender's own
    key: what comes a second time with the same is known. `attached` is what the text names by `@path`.
    """

    text: str
    user: str = ""
    client_id: str = ""
    attached: tuple[Attachment, ...] = ()


NOBODY = Said(text="")
"""What stands where nobody said anything."""


class Routed(Value):
    """How the routing table took what was said: as what, by which row and word, with which answer.

    `said_as` is turn, queue, steer or interrupt, or for what no table has routed goal, result or
    side_talk. `matched` is the word that decided, empty where the row would have been the same without.
    """

    said_as: str = "turn"
    rule: str = ""
    matched: str = ""
    ack: str = ""


class StopOrder(Value):
    """An order to stop, from a person, a limit or a parent; `cause` is a key of the delivery table.

    `utterance` numbers what one client says: a stop overtakes what it said before. `epoch` is the
    parent's, where a stop of the parent reaches its child, else 0. `is_replaced`: another message takes
    the place of the turn that is stopped. `is_revert`: files are to be restored then.
    """

    cause: str
    said: Said = NOBODY
    routed: Routed = Routed()
    utterance: int = 0
    epoch: int = 0
    is_replaced: bool = False
    is_revert: bool = False


class ItemKind(StrEnum):
    """What an item of a queue is; only the first three have words for the model that can be changed."""

    MESSAGE = "message"  # a person's, or of a program in the place of one
    RESULT = "result"  # what a child found
    TALK = "talk"  # a question beside the work, and its answer
    GOAL = "goal"  # the next turn of a goal
    SUMMARY = "summary"  # an order to sum up the conversation; its text is what matters most
    RETRY = "retry"  # a run that has failed is tried again


SPOKEN = (ItemKind.MESSAGE, ItemKind.RESULT, ItemKind.TALK)
"""The kinds whose words somebody said, and which may be edited, steered or kept."""
PURPOSEFUL = (ItemKind.SUMMARY, ItemKind.RETRY)
"""The kinds that say nothing to the model."""


def shown(kind: ItemKind, text: str) -> str:
    """Return an item's text as people read it."""
    return f"/compact {text}".rstrip() if kind is ItemKind.SUMMARY else text
