"""What becomes of a message: the first routing table.

What was said (`Intent`) meets what the session does (`Situation`) and what it was told to do with
messages (`BusyMode`, `Strategy`, `AutoQueue`), and becomes an `Action`. The rows stand in the order
of precedence: an explicit choice, a slash command, the strategy `always`, an interrupt word (unless
the strategy is `never`), auto-queue, the busy mode. An action that stops or steers names a `Cause`;
whom that reaches is the second table's business (`delivery.py`).

Two rules carry the rest. Talk never stops a child: while a child works in the foreground, talk
does not even stop the turn that waits for it. And whoever wants work to stop is heard, whatever
the mode.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from .delivery import Cause
from .routing import Row, Table, when


class Intent(StrEnum):
    """What a message is, by its words or by the sender's explicit choice."""

    CONVERSE = "converse"  # no word of any list
    STEER_WORD = "steer_word"  # a steer word, no interrupt word
    INTERRUPT_BARE = "interrupt_bare"  # nothing but interrupt words and filler
    INTERRUPT_MORE = "interrupt_more"  # an interrupt word, and more
    REVERT = "revert"  # asks beyond doubt to stop and to restore files
    EXPLICIT_QUEUE = "explicit_queue"
    EXPLICIT_STEER = "explicit_steer"
    EXPLICIT_INTERRUPT = "explicit_interrupt"
    COMMAND = "command"  # a slash command


class Situation(StrEnum):
    """What the session does; where several apply, the last one listed."""

    IDLE = "idle"  # nothing runs, nothing is held
    HELD = "held"  # nothing runs, what waits is held
    UNATTENDED = "unattended"  # no turn runs, held or not, but children, side talks or a goal go on
    BUSY = "busy"  # a turn runs, no child does
    ACCOMPANIED = "accompanied"  # a turn runs, and children in the background only
    DELEGATING = "delegating"  # a turn waits for a child in the foreground
    INTERRUPTING = "interrupting"  # a turn is being stopped
    OVERTAKEN = "overtaken"  # said before a stop that was served first, whatever runs now
    FINALIZING = "finalizing"  # the session ends for good


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
    """What is done with a message."""

    RUN = "run"  # as a turn, at once; what is held stays held
    QUEUE = "queue"  # behind what waits; while interrupting: next, once the turn has stopped
    STEER = "steer"  # into whatever the cause reaches
    INTERRUPT = "interrupt"  # stop, then run the message if it says more than that
    REFUSE = "refuse"  # the text goes back to the sender
    COMMAND = "command"  # carried out by the command registry


@dataclass(frozen=True, slots=True)
class DispositionRow(Row):
    """One rule; `ack` names the text that the sender is shown (see `ACKS`), empty for none."""

    action: Action
    cause: str = ""
    ack: str = ""
    doc: str = ""


ACKS: Final[dict[str, str]] = {
    "already_stopping": "it is being stopped already",
    "finalizing": "the session ends, nothing was taken; here is your text",
    "interrupt_detected": "the word by which it interrupts",
    "interrupting": "the turn stops, this runs next",
    "next_after_stop": "it runs once the turn has stopped",
    "next_turn": "the turn ended before the steer came: it is the next turn",
    "queued": "its number in the queue",
    "refused": "it was not taken in; here is your text",
    "revert_hint": "nothing runs, so this is a message; `/revert` restores files",
    "steered": "it enters at the next boundary",
    "steered_child": "which children take it in, at their next boundary",
    "subagent_working": "a subagent works, the message waits for it to finish",
    "word_interrupts": "the word; the turn stops, children go on; `/stop` stops them, too",
    "word_queued": "the word; it waits, nothing stopped; `/stop` stops everything",
    "word_steered": "the word; it steers, nothing stopped; `/stop` stops everything",
}
"""What each acknowledgement has to say."""

LATE_ACK: Final = "next_turn"
"""Instead of a row's own: what the row said had become impossible when the message arrived."""

ACKNOWLEDGED: Final = (Action.QUEUE, Action.STEER, Action.INTERRUPT, Action.REFUSE)
"""Actions after which the sender is told something; a turn that starts and a command show themselves."""

_TALK: Final = (Intent.CONVERSE, Intent.STEER_WORD)
_CANCEL: Final = (Intent.INTERRUPT_BARE, Intent.REVERT)
_WORDS: Final = (*_CANCEL, Intent.INTERRUPT_MORE)


@dataclass(frozen=True, slots=True)
class AckUse:
    """Where an acknowledgement is true; an empty field allows every value.

    `is_for_turn`, `is_for_children`: the cause of the steer is given to the turn, or to some child.
    `spares_children`: the cause ends no child.
    """

    actions: tuple[Action, ...]
    intents: tuple[Intent, ...] = ()
    situations: tuple[Situation, ...] = ()
    is_for_turn: bool = False
    is_for_children: bool = False
    spares_children: bool = False


ACK_USES: Final[Mapping[str, AckUse]] = {
    "already_stopping": AckUse((Action.INTERRUPT,), situations=(Situation.INTERRUPTING,)),
    "finalizing": AckUse((Action.REFUSE,), situations=(Situation.FINALIZING,)),
    "interrupt_detected": AckUse((Action.INTERRUPT,), _WORDS),
    "interrupting": AckUse((Action.INTERRUPT,)),
    "next_after_stop": AckUse((Action.QUEUE,), situations=(Situation.INTERRUPTING,)),
    "next_turn": AckUse(()),  # instead of a row's own: no row names it
    "queued": AckUse((Action.QUEUE,)),
    "refused": AckUse((Action.REFUSE,)),
    "revert_hint": AckUse((Action.RUN,), (Intent.REVERT,), (Situation.IDLE, Situation.HELD)),
    "steered": AckUse((Action.STEER,), is_for_turn=True),
    "steered_child": AckUse((Action.STEER,), is_for_children=True),
    "subagent_working": AckUse((Action.QUEUE,), situations=(Situation.DELEGATING,)),
    "word_interrupts": AckUse((Action.INTERRUPT,), _WORDS, spares_children=True),
    "word_queued": AckUse((Action.QUEUE,), _WORDS),
    "word_steered": AckUse((Action.STEER,), _WORDS),
}
"""What each acknowledgement may accompany: anywhere else it contradicts what is done."""

OVERTAKEN_INTENTS: Final = (Intent.CONVERSE, Intent.STEER_WORD, Intent.EXPLICIT_QUEUE)
"""What a stop can overtake: what steers or interrupts is decided by what the session does then."""

NEVER_SAID: Final[Mapping[tuple[Intent, Situation], str]] = {
    (intent, Situation.OVERTAKEN): "A stop overtakes only what waits or runs by itself."
    for intent in Intent
    if intent not in (*OVERTAKEN_INTENTS, Intent.COMMAND)
}
"""Combinations of intent and situation that never arise, and why."""

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
        DispositionRow("command",
            when(intent=Intent.COMMAND),
            Action.COMMAND,
            doc="Slash commands are carried out at once, also in the middle of a turn."),
        DispositionRow("finalizing",
            when(situation=Situation.FINALIZING),
            Action.REFUSE, ack="finalizing",
            doc="A session that ends takes nothing more; nothing of it runs any longer."),
        DispositionRow("overtaken",
            when(situation=Situation.OVERTAKEN),
            Action.QUEUE, ack="queued",
            doc="A stop that was said later was served first: it waits, held like the others."),

        # Nothing runs, or only children in the background.
        DispositionRow("queue-behind-held",
            when(intent=Intent.EXPLICIT_QUEUE, situation=(Situation.HELD, Situation.UNATTENDED)),
            Action.QUEUE, ack="queued",
            doc="Who asks for the queue gets its end, held or not."),
        DispositionRow("revert-nothing",
            when(intent=Intent.REVERT, situation=(Situation.IDLE, Situation.HELD)),
            Action.RUN, ack="revert_hint",
            doc="With nothing running an interrupt is a message like any other."),
        DispositionRow("run",
            when(situation=(Situation.IDLE, Situation.HELD)),
            Action.RUN,
            doc="With nothing running a message runs at once, past what is held."),

        # An explicit choice beats every word and mode.
        DispositionRow("explicit-interrupt",
            when(intent=Intent.EXPLICIT_INTERRUPT, situation=(*_RUNNING, Situation.UNATTENDED)),
            Action.INTERRUPT, Cause.STOP, "interrupting",
            "Chosen by the sender: the same as /stop, then the message."),
        DispositionRow("explicit-interrupt-again",
            when(intent=Intent.EXPLICIT_INTERRUPT, situation=Situation.INTERRUPTING),
            Action.INTERRUPT, Cause.STOP, "already_stopping",
            "Adds nothing to a stop, unless that one spared the children."),
        DispositionRow("explicit-queue",
            when(intent=Intent.EXPLICIT_QUEUE, situation=_RUNNING),
            Action.QUEUE, ack="queued",
            doc="Chosen by the sender."),
        DispositionRow("explicit-steer-through",
            when(intent=Intent.EXPLICIT_STEER, situation=Situation.DELEGATING),
            Action.STEER, Cause.STEER_THROUGH, "steered_child",
            "Chosen by the sender; goes to whoever works, which is the child."),
        DispositionRow("explicit-steer",
            when(intent=Intent.EXPLICIT_STEER, situation=_ALONE),
            Action.STEER, Cause.STEER, "steered",
            "Chosen by the sender."),

        # Nothing but interrupt words: a cancel, in every mode, unless words never interrupt.
        DispositionRow("stop-word",
            when(intent=_CANCEL, situation=(*_RUNNING, Situation.UNATTENDED),
                 strategy=_WORDS_COUNT),
            Action.INTERRUPT, Cause.BARE_WORD, "interrupt_detected",
            "Nothing but interrupt words, or a revert beyond doubt: everything stops."),
        DispositionRow("stop-word-again",
            when(intent=_CANCEL, situation=Situation.INTERRUPTING, strategy=_WORDS_COUNT),
            Action.INTERRUPT, Cause.BARE_WORD, "already_stopping",
            "Adds nothing to a stop, unless that one spared the children."),
        DispositionRow("after-stop",
            when(situation=Situation.INTERRUPTING),
            Action.QUEUE, ack="next_after_stop",
            doc="Said while the turn is being stopped: runs next, past what is held."),
        DispositionRow("run-unattended",
            when(situation=Situation.UNATTENDED),
            Action.RUN,
            doc="Children in the background are no reason to wait."),

        # Strategy `always`: any message interrupts, but talk never gets between turn and child.
        DispositionRow("always-word-delegating",
            when(intent=Intent.INTERRUPT_MORE, situation=Situation.DELEGATING,
                 strategy=Strategy.ALWAYS),
            Action.QUEUE, ack="word_queued",
            doc="A word in a message that says more is talk while a child works."),
        DispositionRow("always-delegating",
            when(intent=_TALK, situation=Situation.DELEGATING, strategy=Strategy.ALWAYS),
            Action.QUEUE, ack="subagent_working",
            doc="Talk waits for the child."),
        DispositionRow("always",
            when(intent=_TALK, situation=_ALONE, strategy=Strategy.ALWAYS),
            Action.INTERRUPT, Cause.MESSAGE, "interrupting",
            "Any message stops the turn, and the turn alone."),

        # An interrupt word in a message that says more.
        DispositionRow("word-alone",
            when(intent=Intent.INTERRUPT_MORE, situation=Situation.BUSY, strategy=_WORDS_COUNT),
            Action.INTERRUPT, Cause.MORE_WORD, "interrupt_detected",
            "With no child at work the word stops the turn, and the message runs next."),
        DispositionRow("always-word-accompanied",
            when(intent=Intent.INTERRUPT_MORE, situation=Situation.ACCOMPANIED,
                 strategy=Strategy.ALWAYS),
            Action.INTERRUPT, Cause.MORE_WORD, "word_interrupts",
            "Any message stops the turn, and the turn alone."),

        # From here on a word that is still undecided is talk: a child works, or words never
        # interrupt. The answer names the word and /stop, in case a stop was meant.
        DispositionRow("word-auto-queued",
            when(intent=_WORDS, auto_queue=AutoQueue.ON),
            Action.QUEUE, ack="word_queued",
            doc="Talk, so it waits like any other message."),
        DispositionRow("word-queued",
            when(intent=_WORDS, busy=BusyMode.QUEUE),
            Action.QUEUE, ack="word_queued",
            doc="Talk, so it waits like any other message."),
        DispositionRow("word-delegating",
            when(intent=Intent.INTERRUPT_MORE, situation=Situation.DELEGATING,
                 busy=BusyMode.INTERRUPT, strategy=Strategy.KEYWORD),
            Action.QUEUE, ack="word_queued",
            doc="Talk waits for the child."),
        DispositionRow("word-accompanied",
            when(intent=Intent.INTERRUPT_MORE, situation=Situation.ACCOMPANIED,
                 busy=BusyMode.INTERRUPT, strategy=Strategy.KEYWORD),
            Action.INTERRUPT, Cause.MORE_WORD, "word_interrupts",
            "Stops the turn alone; the children in the background go on."),
        DispositionRow("word-steers-child",
            when(intent=_WORDS, situation=Situation.DELEGATING),
            Action.STEER, Cause.STEER_THROUGH, "word_steered",
            "Mode steer, or mode interrupt where nothing may interrupt."),
        DispositionRow("word-steers",
            when(intent=_WORDS),
            Action.STEER, Cause.STEER, "word_steered",
            "Mode steer, or mode interrupt where nothing may interrupt."),

        # Talk: auto-queue, then the busy mode. A steer word steers whatever would wait.
        DispositionRow("auto-queue",
            when(intent=Intent.CONVERSE, auto_queue=AutoQueue.ON),
            Action.QUEUE, ack="queued",
            doc="Auto-queue is on."),
        DispositionRow("busy-queue",
            when(intent=Intent.CONVERSE, busy=BusyMode.QUEUE),
            Action.QUEUE, ack="queued",
            doc="Mode queue."),
        DispositionRow("subagent-working",
            when(intent=Intent.CONVERSE, situation=Situation.DELEGATING,
                 busy=BusyMode.INTERRUPT, strategy=Strategy.KEYWORD),
            Action.QUEUE, ack="subagent_working",
            doc="Talk waits for the child."),
        DispositionRow("busy-interrupt",
            when(intent=_TALK, situation=_ALONE,
                 busy=BusyMode.INTERRUPT, strategy=Strategy.KEYWORD, auto_queue=AutoQueue.OFF),
            Action.INTERRUPT, Cause.MESSAGE, "interrupting",
            "Mode interrupt: stops the turn alone, and runs next."),
        DispositionRow("steer-through",
            when(intent=_TALK, situation=Situation.DELEGATING),
            Action.STEER, Cause.STEER_THROUGH, "steered_child",
            "A steer goes to whoever works, which is the child."),
        DispositionRow("steer",
            when(intent=_TALK),
            Action.STEER, Cause.STEER, "steered",
            "Mode steer, a steer word, or mode interrupt where nothing may interrupt."),
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
    """Return what becomes of a message; the arguments are values of the enums above.

    Raises `MachineError` for a value that none of them has.
    """
    return table.decide((intent, situation, busy, strategy, auto_queue))
