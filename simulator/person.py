"""A simulated person, or several, who say anything at any time."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from ..journal.child_record import at_work
from ..machines import protocol as m
from ..machines.disposition import Intent
from .program import SimulatedProgram
from .schedule import Dice

INTERRUPTS = (
    Intent.INTERRUPT_BARE,
    Intent.INTERRUPT_MORE,
    Intent.REVERT,
    Intent.EXPLICIT_INTERRUPT,
)
STEERS = (Intent.STEER_WORD, Intent.EXPLICIT_STEER)
BARE = (Intent.INTERRUPT_BARE, Intent.REVERT)
TALK = (*STEERS, Intent.CONVERSE, Intent.INTERRUPT_MORE, Intent.EXPLICIT_QUEUE)


class SimulatedPerson:
    """Says `words` things to a program, at random moments, and answers its questions.

    One who `only_talks` never asks anybody to stop; `texts` are what is said in turn, if any are given.
    """

    def __init__(
        self, program: SimulatedProgram, dice: Dice, words: int, only_talks: bool = False
    ) -> None:
        self.program = program
        self.left = words
        self.only_talks = only_talks
        self.texts: tuple[str, ...] = ()
        self._dice = dice
        self._patience = dice.choice((3.0, 10.0, 40.0))  # seconds
        self._said: list[m.UserMessage] = []
        self._asked = 0
        self._is_numbering = dice.random() < 0.5  # as one program does that says everything
        self._number = 0
        self._edits = dice.random() < 0.4
        self._plan()

    def _plan(self) -> None:
        pause = self._dice.choice((0.0, 1.0, self._patience, self._patience)) * self._dice.random()
        self.program.timeline.after(pause, self._act, "user")

    def _act(self) -> None:
        if self.left <= 0:
            return
        self.left -= 1
        self.program.utter(self._numbered(self._thing()))
        self._plan()

    def _numbered(self, message: Any) -> Any:
        """Number what is said in the order in which it is, so that a stop overtakes what came before.

        Now and then it arrives late: another surface was quicker.
        """
        if not self._is_numbering or not isinstance(message, m.UserMessage | m.Interrupt):
            return message
        self._number += 1
        late = self._dice.randrange(0, 3) if self._dice.random() < 0.2 else 0
        number = max(1, self._number - late)
        if isinstance(message, m.Interrupt):
            return replace(message, order=replace(message.order, utterance=number))
        return replace(message, utterance=number)

    def _thing(self) -> Any:
        dice = self._dice.random()
        if self._edits and self._dice.random() < 0.7 and self.program.record.queue.pending():
            return self._editing()
        if dice < 0.5 or (self.only_talks and dice >= 0.75):
            return self._message()
        if dice < 0.55:
            return self._beside()
        if dice < 0.63 and not self.only_talks:
            return self._stop()
        if dice < 0.75:
            return self._change()
        if dice < 0.82:
            return m.ResumeQueue(number=self._dice.choice((None, None, 1, 2)))
        if dice < 0.94:
            return self.answer()
        if dice < 0.97:
            scope: Any = self._dice.choice(("turn", "last", "undo"))
            return m.Revert(scope=scope, is_dry_run=self._dice.random() < 0.3)
        if dice < 0.985:
            return m.Suspend(cause=self._dice.choice(("exit", "signal")))
        return self._farewell()

    def _stop(self) -> Any:
        if self._dice.random() < 0.25:
            return m.EndChild(
                child=self._child() or "nobody", is_gentle=self._dice.random() < 0.5, user="ann"
            )
        turn = self._dice.choice(("", "", "t1", "t2", "t99"))
        return m.Interrupt(order=self._order(self._dice.choice(("", "k1"))), turn=turn)

    def _order(self, key: str = "") -> m.StopOrder:
        return m.StopOrder(cause="stop", said=m.Said(text="", client_id=key))

    def _beside(self) -> Any:
        """Ask something beside the work, or decide about an answer."""
        if self._dice.random() < 0.5 and self.program.world.has_room():
            self._asked += 1
            return m.SideTalk(
                said=m.Said(text=f"question {self._asked}", user="ann", client_id=f"s{self._asked}")
            )
        return self._offer()

    def _offer(self) -> Any:
        op: Any = self._dice.choice(("steer", "keep"))
        offered = [
            item.number for item in self.program.record.queue.live() if item.state == "offered"
        ]
        return m.QueueChange(op=op, number=offered[0] if offered else None)

    def _child(self) -> str:
        """Name a child at work, if there is one."""
        names = [one.name for one in at_work(self.program.record.children)]
        return self._dice.choice(names) if names else ""

    def _change(self) -> Any:
        """Change the queue, or how messages are taken; or take the last one back."""
        dice = self._dice
        ops = ("hold", "release", "edit", "move", "steer", "steer", "", "undo", "withdraw", "clear")
        op: Any = dice.choice(ops[:-2] if self.only_talks else ops)
        if op == "undo" and not self.only_talks:
            return m.TakeBack()
        if op in ("", "undo"):
            mode: Any = dice.choice(("", "interrupt", "steer", "queue"))
            return m.PolicyChange(
                busy_mode=mode,
                is_auto_queue=dice.choice((None, True, False)),
                holds=dice.choice((None, (("read", "*"),), (("write", "*"), ("read", "*")), ())),
            )
        queue = self.program.record.queue
        live = [item.number for item in (*queue.live(), *queue.superseded())]
        number, place = dice.choice((1, 2, 3, *live, *live)), dice.choice((1, 2, 9))
        to = dice.choice(("", "", "parent", self._child() or "all"))
        is_last = op == "withdraw" and dice.random() < 0.5
        return m.QueueChange(
            op=op,
            number=None if is_last else number,
            said=m.Said(text="said anew"),
            position=place,
            to=to,
        )

    def _editing(self) -> Any:
        """Begin to edit a waiting message, or leave the edit; another client may do so, too."""
        editor = self._dice.choice(("here", "here", "there"))
        pending = [item.number for item in self.program.record.queue.pending()]
        number = self._dice.choice((1, *pending))
        op: Any = self._dice.choice(("begin_edit", "begin_edit", "edit", "end_edit"))
        if op == "end_edit" and self._dice.random() < 0.5:
            return m.QueueChange(op=op, editor=editor)
        return m.QueueChange(op=op, number=number, said=m.Said(text="said anew"), editor=editor)

    def _farewell(self) -> Any:
        if self._dice.random() < 0.7:
            return m.Finalize(cause=self._dice.choice(("user", "new")))
        return m.Interrupt(order=self._order())

    def answer(self) -> m.Answer:
        """Answer a question, if one is open."""
        questions = list(open_questions(self.program))
        question, is_hold = self._dice.choice(questions) if questions else ("q-none", False)
        choice = self._dice.choice(m.CHOICES_OF_HOLD if is_hold else m.CHOICES)
        return m.Answer(question=question, choice=choice, reason='{"instead": true}' * is_hold)

    def _message(self) -> m.UserMessage:
        if self._said and self._dice.random() < 0.1:
            return self._dice.choice(self._said)  # sent again, with the key it had
        intents = tuple(Intent)[: -1 if self._dice.random() < 0.5 else None]
        intent = self._dice.choice(TALK if self.only_talks else intents)
        number = len(self._said) + 1
        kind: Any = (
            "interrupt" if intent in INTERRUPTS else "steer" if intent in STEERS else "normal"
        )
        to = ""
        if intent == Intent.EXPLICIT_STEER and self._dice.random() < 0.5:
            to = self._dice.choice(("parent", "all", "nobody", self._child()))
        text = self.texts[(number - 1) % len(self.texts)] if self.texts else f"words {number}"
        message = m.UserMessage(
            type=kind,
            intent=intent,
            then="" if intent in BARE or self._dice.random() < 0.2 else text,
            queue_position=self._dice.choice((None, None, None, 1)),
            said=m.Said(text=text, user=self._dice.choice(("ann", "bob")), client_id=f"c{number}"),
            revert=self._dice.choice(("turn", "last")) if intent is Intent.REVERT else "",
            to=to,
        )
        self._said.append(message)
        return message


def open_questions(program: SimulatedProgram) -> Iterator[tuple[str, bool]]:
    """List what the running turns ask, of every session, each with whether a call is held."""
    for session in list(program.world.open):
        record = program.record_of(session)
        turn = record.turns.get(record.turn) if record is not None else None
        if turn is not None and turn.state == "paused" and turn.question:
            yield turn.question, False
        for call in turn.calls.values() if turn else ():
            if call.state == "asking":
                yield call.question, call.is_hold
