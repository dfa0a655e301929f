"""What is told but not journalled: it passes, and nothing is lost when it is not heard."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextStreamed:
    """A piece of the model's answer."""

    turn: str
    delta: str


@dataclass(frozen=True, slots=True)
class ThoughtStreamed:
    """A piece of what the model thinks before it answers; no part of the conversation."""

    turn: str
    delta: str


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something worth a line; `seconds` until what it tells of is over, 0 where that is not known."""

    text: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class OutputShown:
    """The last lines that a command has printed so far; its result tells the whole."""

    turn: str
    call: str
    text: str


@dataclass(frozen=True, slots=True)
class MessageRejected:
    """A message was not taken in; its text goes back to whoever sent it."""

    reason: str
    text: str
    client_id: str = ""


@dataclass(frozen=True, slots=True)
class MessageKnown:
    """A message with this key came before: `id` is the item or receipt it got then."""

    id: str
    said_as: str
    number: int | None
    client_id: str
    matched: str = ""
    rule: str = ""
    ack: str = ""


@dataclass(frozen=True, slots=True)
class StoreLost:
    """The journal cannot be written any more: nothing is accepted from here on."""

    code: str
    text: str
    hint: str


Fact = (
    TextStreamed
    | ThoughtStreamed
    | Noticed
    | OutputShown
    | MessageRejected
    | MessageKnown
    | StoreLost
)
