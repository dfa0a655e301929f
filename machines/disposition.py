"""The disposition of a message: the first routing table.

A message's `Intent`, what the session does (`Situation`) and its settings for messages (`BusyMode`,
`Strategy`, `AutoQueue`) decide the message's `Action`. The rows stand in the order
of precedence: an explicit choice, a slash command, the strategy `always`, an interrupt word (unless
the strategy is `never`), auto-queue, the busy mode. An action that stops or steers names a `Cause`;
whom that reaches is the second table's business (`delivery.py`).

Two rules carry the rest. Talk never stops a child: while a child works in the foreground, talk
does not even stop the turn that waits for it. And a message that wants work to stop stops it, whatever
the mode.
"""

from enum import StrEnum
from typing import Final

from .delivery import Cause
from .routing import Row, Table, when


class Intent(StrEnum):
    """The intent of a message, by its words or by the sender's explicit choice."""

    CONVERSE = "converse"  # no word of any list
    ACKNOWLEDGEMENT = "acknowledgement"  # nothing but words like "ok" and "thanks"
    STEER_WORD = "steer_word"  # a steer word, no interrupt word
    INTERRUPT_BARE = "interrupt_bare"  # nothing but interrupt words and filler
    INTERRUPT_MORE = "interrupt_more"  # an interrupt word, and more
    REVERT = "revert"  # asks beyond doubt to stop and to restore files
    EXPLICIT_QUEUE = "explicit_queue"
    EXPLICIT_TURN = "explicit_turn"  # its own turn, after what runs
    EXPLICIT_STEER = "explicit_steer"
    EXPLICIT_INTERRUPT = "explicit_interrupt"
    COMMAND = "command"  # a slash command


class Situation(StrEnum):
    """The activity of the session; where several apply, the last one listed."""

    IDLE = "idle"  # nothing runs, nothing is held
    HELD = "held"  # nothing runs, what waits is held
    UNATTENDED = "unattended"  # no turn runs, held or not, but children, side talks or a goal go on
    BUSY = "busy"  # a turn runs, no child does
    ACCOMPANIED = "accompanied"  # a turn runs, and children in the background only
    DELEGATING = "delegating"  # a turn waits for a child in the foreground
    INTERRUPTING = "interrupting"  # a turn is being stopped
    OVERTAKEN = "overtaken"  # said before a stop that was served first, whatever runs now
    FINALIZING = "finalizing"  # the session ends permanently


class BusyMode(StrEnum):
    """`busy_input_mode`: what an ordinary message does to a running turn."""

    INTERRUPT = "interrupt"
    STEER = "steer"
    QUEUE = "queue"


class Strategy(StrEnum):
    """`interrupt_strategy`: which messages interrupt."""

    KEYWORD = "keyword"
    ALWAYS = "always"
    NEVER = "never"


class AutoQueue(StrEnum):
    """`auto_queue.enabled`: whether messages wait while a turn runs."""

    ON = "on"
    OFF = "off"


class Action(StrEnum):
    """The action on a message."""

    RUN = "run"  # as a turn, at once; what is held stays held
    QUEUE = "queue"  # behind what waits; while interrupting: next, once the turn has stopped
    STEER = "steer"  # into whatever the cause reaches
    INTERRUPT = "interrupt"  # stop, then run the message if it says more than that
    REFUSE = "refuse"  # the text goes back to the sender
    COMMAND = "command"  # carried out by the command registry


class DispositionRow(Row):
    """One rule; `ack` names the text that the sender is shown (see `ACKS`), empty for none."""

    action: Action
    cause: str = ""
    ack: str = ""
    doc: str = ""


ACKS: Final[dict[str, str]] = {
    "already_stopping": "the turn is being stopped already",
    "finalizing": "the session is ending, the message was not accepted; here is the text",
    "interrupt_detected": "the word that interrupts",
    "interrupting": "the turn stops, this runs next",
    "next_after_stop": "it runs once the turn has stopped",
    "not_yours": "it would have steered or stopped another person's turn; it waits, nothing stopped",
    "next_turn": "the turn ended before the steer came: it is the next turn",
    "queued": "its number in the queue",
    "refused": "the message was not accepted; here is the text",
    "revert_hint": "nothing runs, so this is an ordinary message; `/revert` restores files",
    "steered": "it enters at the next boundary",
    "steered_child": "the children to which it will be delivered",
    "stopped": "a stop came before it; it waits until a person resumes the queue",
    "subagent_working": "a subagent is at work; the message waits until it finishes",
    "word_interrupts": "the word; the turn stops, children continue; `/stop` also stops them",
    "word_queued": "the word; it waits, nothing stopped; `/stop` stops everything",
    "word_steered": "the word; it steers, nothing stopped; `/stop` stops everything",
}
"""The content of each acknowledgement."""

LATE_ACK: Final = "next_turn"
"""Instead of a row's own: what the row said had become impossible when the message arrived."""

NOT_YOURS_ACK: Final = "not_yours"
"""Instead of a row's own: its action would have been about another person's turn (`people.py`)."""

_TALK: Final = (Intent.CONVERSE, Intent.STEER_WORD)
_CANCEL: Final = (Intent.INTERRUPT_BARE, Intent.REVERT)
WORDS: Final = (*_CANCEL, Intent.INTERRUPT_MORE)


OVERTAKEN_INTENTS: Final = (
    Intent.CONVERSE,
    Intent.ACKNOWLEDGEMENT,
    Intent.STEER_WORD,
    Intent.EXPLICIT_QUEUE,
    Intent.EXPLICIT_TURN,
)
"""Intents that a stop can overtake; those that steer or interrupt are decided at their arrival."""

_ALONE: Final = (Situation.BUSY, Situation.ACCOMPANIED)
_RUNNING: Final = (*_ALONE, Situation.DELEGATING)
_WORDS_COUNT: Final = (Strategy.KEYWORD, Strategy.ALWAYS)

# fmt: off
DEFAULT_DISPOSITIONS: Final = Table(
    "dispositions",
    {
        "intent": tuple(Intent),
        "situation": tuple(Situation),
        "busy": tuple(BusyMode),
        "strategy": tuple(Strategy),
        "auto_queue": tuple(AutoQueue),
    },
    (
        DispositionRow(name="command",
            when=when(intent=Intent.COMMAND),
            action=Action.COMMAND,
            doc="Slash commands are executed at once, also during a turn."),
        DispositionRow(name="finalizing",
            when=when(situation=Situation.FINALIZING),
            action=Action.REFUSE, ack="finalizing",
            doc="A session that is ending accepts no messages."),
        DispositionRow(name="overtaken",
            when=when(situation=Situation.OVERTAKEN),
            action=Action.QUEUE, ack="stopped",
            doc="A later stop was handled first, so the message is held like the others."),

        # Nothing runs, or only children in the background.
        DispositionRow(name="queue-behind-held",
            when=when(intent=Intent.EXPLICIT_QUEUE, situation=(Situation.HELD, Situation.UNATTENDED)),
            action=Action.QUEUE, ack="queued",
            doc="The sender chose the queue, held or not."),
        DispositionRow(name="revert-nothing",
            when=when(intent=Intent.REVERT, situation=(Situation.IDLE, Situation.HELD)),
            action=Action.RUN, ack="revert_hint",
            doc="When nothing runs, an interrupt is an ordinary message."),
        DispositionRow(name="run",
            when=when(situation=(Situation.IDLE, Situation.HELD)),
            action=Action.RUN,
            doc="When nothing runs, a message runs at once, before the held ones."),

        # An explicit choice beats every word and mode.
        DispositionRow(name="explicit-interrupt",
            when=when(intent=Intent.EXPLICIT_INTERRUPT, situation=(*_RUNNING, Situation.UNATTENDED)),
            action=Action.INTERRUPT, cause=Cause.STOP, ack="interrupting",
            doc="Chosen by the sender: the same as /stop, then the message."),
        DispositionRow(name="explicit-interrupt-again",
            when=when(intent=Intent.EXPLICIT_INTERRUPT, situation=Situation.INTERRUPTING),
            action=Action.INTERRUPT, cause=Cause.STOP, ack="already_stopping",
            doc="A second stop matters only if the first did not reach the children."),
        DispositionRow(name="explicit-queue",
            when=when(intent=(Intent.EXPLICIT_QUEUE, Intent.EXPLICIT_TURN), situation=_RUNNING),
            action=Action.QUEUE, ack="queued",
            doc="Chosen by the sender."),
        DispositionRow(name="explicit-steer-through",
            when=when(intent=Intent.EXPLICIT_STEER, situation=Situation.DELEGATING),
            action=Action.STEER, cause=Cause.STEER_THROUGH, ack="steered_child",
            doc="Chosen by the sender; it is delivered to the working child."),
        DispositionRow(name="explicit-steer",
            when=when(intent=Intent.EXPLICIT_STEER, situation=_ALONE),
            action=Action.STEER, cause=Cause.STEER, ack="steered",
            doc="Chosen by the sender."),

        # Nothing but interrupt words: a cancel, in every mode, unless words never interrupt.
        DispositionRow(name="stop-word",
            when=when(intent=_CANCEL, situation=(*_RUNNING, Situation.UNATTENDED),
                 strategy=_WORDS_COUNT),
            action=Action.INTERRUPT, cause=Cause.BARE_WORD, ack="interrupt_detected",
            doc="Only interrupt words, or an unambiguous revert: everything stops."),
        DispositionRow(name="stop-word-again",
            when=when(intent=_CANCEL, situation=Situation.INTERRUPTING, strategy=_WORDS_COUNT),
            action=Action.INTERRUPT, cause=Cause.BARE_WORD, ack="already_stopping",
            doc="A second stop matters only if the first did not reach the children."),
        DispositionRow(name="after-stop",
            when=when(situation=Situation.INTERRUPTING),
            action=Action.QUEUE, ack="next_after_stop",
            doc="Sent while the turn is being stopped: it runs next, before the held messages."),
        DispositionRow(name="run-unattended",
            when=when(situation=Situation.UNATTENDED),
            action=Action.RUN,
            doc="A message does not wait for background children."),

        DispositionRow(name="acknowledgement",
            when=when(intent=Intent.ACKNOWLEDGEMENT),
            action=Action.QUEUE, ack="queued",
            doc="A message that asks for nothing waits, in every mode."),

        # Strategy `always`: any message interrupts, but talk never gets between turn and child.
        DispositionRow(name="always-word-delegating",
            when=when(intent=Intent.INTERRUPT_MORE, situation=Situation.DELEGATING,
                 strategy=Strategy.ALWAYS),
            action=Action.QUEUE, ack="word_queued",
            doc="While a child works, an interrupt word in a longer message does not interrupt."),
        DispositionRow(name="always-delegating",
            when=when(intent=_TALK, situation=Situation.DELEGATING, strategy=Strategy.ALWAYS),
            action=Action.QUEUE, ack="subagent_working",
            doc="Messages wait for the child."),
        DispositionRow(name="always",
            when=when(intent=_TALK, situation=_ALONE, strategy=Strategy.ALWAYS),
            action=Action.INTERRUPT, cause=Cause.MESSAGE, ack="interrupting",
            doc="Any message stops the turn, but no child."),

        # An interrupt word in a message that says more.
        DispositionRow(name="word-alone",
            when=when(intent=Intent.INTERRUPT_MORE, situation=Situation.BUSY, strategy=_WORDS_COUNT),
            action=Action.INTERRUPT, cause=Cause.MORE_WORD, ack="interrupt_detected",
            doc="With no child at work, the word stops the turn, and the message runs next."),
        DispositionRow(name="always-word-accompanied",
            when=when(intent=Intent.INTERRUPT_MORE, situation=Situation.ACCOMPANIED,
                 strategy=Strategy.ALWAYS),
            action=Action.INTERRUPT, cause=Cause.MORE_WORD, ack="word_interrupts",
            doc="Any message stops the turn, but no child."),

        # From here on a word that is still undecided is talk: a child works, or words never
        # interrupt. The answer names the word and /stop, in case a stop was meant.
        DispositionRow(name="word-auto-queued",
            when=when(intent=WORDS, auto_queue=AutoQueue.ON),
            action=Action.QUEUE, ack="word_queued",
            doc="It waits like any other message."),
        DispositionRow(name="word-queued",
            when=when(intent=WORDS, busy=BusyMode.QUEUE),
            action=Action.QUEUE, ack="word_queued",
            doc="It waits like any other message."),
        DispositionRow(name="word-delegating",
            when=when(intent=Intent.INTERRUPT_MORE, situation=Situation.DELEGATING,
                 busy=BusyMode.INTERRUPT, strategy=Strategy.KEYWORD),
            action=Action.QUEUE, ack="word_queued",
            doc="Messages wait for the child."),
        DispositionRow(name="word-accompanied",
            when=when(intent=Intent.INTERRUPT_MORE, situation=Situation.ACCOMPANIED,
                 busy=BusyMode.INTERRUPT, strategy=Strategy.KEYWORD),
            action=Action.INTERRUPT, cause=Cause.MORE_WORD, ack="word_interrupts",
            doc="Stops the turn; background children continue."),
        DispositionRow(name="word-steers-child",
            when=when(intent=WORDS, situation=Situation.DELEGATING),
            action=Action.STEER, cause=Cause.STEER_THROUGH, ack="word_steered",
            doc="Mode steer, or mode interrupt where no message may interrupt."),
        DispositionRow(name="word-steers",
            when=when(intent=WORDS),
            action=Action.STEER, cause=Cause.STEER, ack="word_steered",
            doc="Mode steer, or mode interrupt where no message may interrupt."),

        # Talk: auto-queue, then the busy mode. A steer word steers whatever would wait.
        DispositionRow(name="auto-queue",
            when=when(intent=Intent.CONVERSE, auto_queue=AutoQueue.ON),
            action=Action.QUEUE, ack="queued",
            doc="Auto-queue is on."),
        DispositionRow(name="busy-queue",
            when=when(intent=Intent.CONVERSE, busy=BusyMode.QUEUE),
            action=Action.QUEUE, ack="queued",
            doc="Mode queue."),
        DispositionRow(name="subagent-working",
            when=when(intent=Intent.CONVERSE, situation=Situation.DELEGATING,
                 busy=BusyMode.INTERRUPT, strategy=Strategy.KEYWORD),
            action=Action.QUEUE, ack="subagent_working",
            doc="Messages wait for the child."),
        DispositionRow(name="busy-interrupt",
            when=when(intent=_TALK, situation=_ALONE,
                 busy=BusyMode.INTERRUPT, strategy=Strategy.KEYWORD, auto_queue=AutoQueue.OFF),
            action=Action.INTERRUPT, cause=Cause.MESSAGE, ack="interrupting",
            doc="Mode interrupt: stops the turn, but no child, and runs next."),
        DispositionRow(name="steer-through",
            when=when(intent=_TALK, situation=Situation.DELEGATING),
            action=Action.STEER, cause=Cause.STEER_THROUGH, ack="steered_child",
            doc="A steer is delivered to the working child."),
        DispositionRow(name="steer",
            when=when(intent=_TALK),
            action=Action.STEER, cause=Cause.STEER, ack="steered",
            doc="Mode steer, a steer word, or mode interrupt where no message may interrupt."),
    ),
)
# fmt: on


def dispose(
    table: Table[DispositionRow],
    intent: str,
    situation: str,
    busy: str,
    strategy: str,
    auto_queue: str,
) -> DispositionRow:
    """Return the row that decides a message; the arguments are values of the enums above.

    Raises `MachineError` for a value that none of them has.
    """
    return table.decide((intent, situation, busy, strategy, auto_queue))
