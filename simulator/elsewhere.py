"""Runs of a session beside other processes, by a clock that leaps, with settings drawn at random.

Other processes post messages to the session's mailbox. Who has the session open reads them: the program,
or, while that is dead, another process that changes only the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pykka import ActorDeadError, Timeout

from ..actors.environment import Environment
from ..journal import entries as e
from ..journal.memory import SimulatedCrash
from ..journal.store import Lease
from ..machines import protocol as m
from ..machines.disposition import Intent
from ..machines.errors import UnknownSession
from ..machines.policy import Price, ResultLimits
from ..machines.progress import ProgressPolicy
from .choices import Choices, Seed
from .happening import Uttered
from .ports import finish
from .program import ROOT, SimulatedProgram
from .promises import durable_entries
from .scenario import Scenario
from .schedule import Dice
from .session import World

DAY = 86_400.0
LEAPS = (-60 * DAY, -3_600.0, -1.0, 1.0, 3_600.0, 60 * DAY)
"""Seconds by which a clock is set, back or forth."""
ENDING = ("leaving", "suspended")
"""States of a session that leaves what is unread for its next owner."""


class Delivery(Struct, kw_only=True):
    """A message of the mailbox that is with the session, and what it answers."""

    lease: Lease
    answer: Any


class SimulatedMail:
    """The mailbox of the first session: `posted` are the messages in the order in which they came."""

    def __init__(self, program: SimulatedProgram, dice: Dice) -> None:
        self.posted: list[Any] = []
        self._program, self._dice = program, dice
        self._delivered: dict[int, Delivery] = {}

    def post(self, message: Any) -> None:
        """Post a message as another process does: it is durable at once."""
        number = len(self.posted)
        self.posted.append(message)
        lane = m.Lane.CONTROL if isinstance(message, m.Interrupt) else m.Lane.DATA
        self._program.store.post(ROOT, lane, {"number": number}, f"p{number}")

    def forget(self) -> None:
        """Read anew what is unread: who was reading it has died."""
        self._delivered.clear()

    def read(self, world: World) -> None:
        """Hand the session what is unread, and answer what it has dealt with."""
        live = world.open.get(ROOT)
        if live is None or live.ref is None or not live.ref.is_alive():
            return
        for posted in world.store.unconsumed(ROOT):
            lease = world.commits.hand_out(ROOT, posted.id)
            if lease is not None and posted.id not in self._delivered:
                said = self.posted[posted.message["number"]]
                self._program.chronicle.note(ROOT, Uttered(message=said))
                message = m.mailed(said, posted.id)
                answer = live.ref.ask(message, block=False)
                self._delivered[posted.id] = Delivery(lease=lease, answer=answer)
        for name, delivery in list(self._delivered.items()):
            self._answer(world, name, delivery, is_ending=live.record.state in ENDING)

    def visit(self) -> None:
        """Have another process decide what waits, while no program has the session open."""
        world = self._program.visitor()
        try:
            world.start(ROOT, is_known=True, is_offline=True)
        except UnknownSession:  # it had never begun
            return
        while self.unread(world) or world.dispatcher.ready or world.writer.waiting():
            self.read(world)
            world.settle()
        finish(world.sessions.let_go(world.open[ROOT]))

    def unread(self, world: World) -> bool:
        """Whether a message waits for a session that lives on."""
        live = world.open.get(ROOT)
        is_open = live is not None and live.record.state not in ENDING and not live.ledger.broken
        return is_open and bool(world.store.unconsumed(ROOT))

    def _answer(self, world: World, name: int, delivery: Delivery, *, is_ending: bool) -> None:
        """Answer a message that the session has dealt with, once that is durable."""
        with suppress(ActorDeadError):
            try:
                delivery.answer.get(timeout=0)
            except Timeout:
                return
        world.commits.take_back(ROOT, name)
        world.dispatcher.end_pass()
        world.writer.flush()
        del self._delivered[name]
        is_unread = any(posted.id == name for posted in world.store.unconsumed(ROOT))
        if not (is_unread and (is_ending or world.open[ROOT].ledger.broken)):
            world.store.answer(delivery.lease, name, {})


class ElsewhereScenario(Scenario):
    """A session's run with a mailbox, a clock that leaps, and settings that other runs leave alone."""

    def __init__(
        self, seed: Seed, tables: Callable[[Environment], None] | None = None, **changes: Any
    ) -> None:
        number = seed.number if isinstance(seed, Choices) else seed
        super().__init__(seed, tables=partial(_settle, Random(number).random(), tables), **changes)
        dice, timeline = self.dice, self.program.timeline
        self.mail = SimulatedMail(self.program, dice)
        self._is_visited = dice.random() < 0.5
        for number in range(1, 1 + dice.choice((1, 3, 8))):
            post = partial(self._post, number)
            timeline.after(dice.random() * 40.0, post, "user")
        for _ in range(dice.choice((0, 1, 3))):
            leap = partial(timeline.leap, dice.choice(LEAPS))
            timeline.after(dice.random() * 40.0, leap, "clock")

    def run(self) -> SimulatedProgram:
        """Play it to its end, and check every promise."""
        program = super().run()
        what_is_posted_is_decided_once(self.mail.posted, program)
        return program

    def _post(self, number: int) -> None:
        """Post something to say, to queue or to stop."""
        said = m.Said(text=f"posted {number}", user="eve", client_id=f"p{number}")
        kind = self.dice.choice(("normal", "normal", "steer", "stop"))
        if kind == "stop" and not self.user.only_talks:
            order = m.StopOrder(cause="stop", said=m.Said(text="", client_id=f"p{number}"))
            self.mail.post(m.Interrupt(order=order))
            return
        message = m.UserMessage(
            type="normal", said=said, intent=Intent.EXPLICIT_QUEUE, then=said.text
        )
        if kind == "steer":
            message = replace(message, type="steer", intent=Intent.EXPLICIT_STEER)
        self.mail.post(message)

    def _disturb(self, step: int) -> None:
        if self.dice.random() < 0.2:
            self._read()
        super()._disturb(step)

    def _go_on(self) -> bool:
        if super()._go_on():
            return True
        if not self.mail.unread(self.program.world):
            return False
        self._read()
        return True

    def _read(self) -> None:
        """Read the mailbox; the store may crash while it is asked."""
        if self.program.is_running:
            try:
                self.mail.read(self.program.world)
            except SimulatedCrash:
                self.program.crash()

    def _restart_if_dead(self) -> None:
        if not self.program.is_running:
            self.mail.forget()
            if self._is_visited:
                self.mail.visit()
        super()._restart_if_dead()


def _settle(chance: float, tables: Callable[[Environment], None] | None, own: Environment) -> None:
    """Draw the settings of a session's environment; `chance` is the same for all of a run."""
    dice = Random(chance)
    end = dice.randrange(4, 9)
    period = dice.choice((1, 8))
    own.progress = ProgressPolicy(tell=end - 2, ask=end - 1, end=end, period=period)
    own.price = dice.choice((None, Price(input=1.0, output=2.0)))
    own.result_limits = ResultLimits(usual=dice.choice((1, 12 << 10)))
    own.account.limits = replace(own.account.limits, max_minutes=dice.choice((0.0, 0.0, 1.0)))
    if tables is not None:
        tables(own)


def what_is_posted_is_decided_once(posted: Sequence[Any], program: SimulatedProgram) -> None:
    """A message of the mailbox is decided once, whoever reads it and whoever dies meanwhile."""
    journal = durable_entries(program.history)
    accepted = (entry for entry in journal if isinstance(entry, e.Queued | e.Offered))
    keys = [entry.said.client_id for entry in accepted]
    for message in posted:
        key = message.said.client_id if isinstance(message, m.UserMessage) else ""
        assert keys.count(key) <= 1 or not key, f"{key} was decided {keys.count(key)} times"
    if program.is_running and program.record.state == "idle" and not program.root.ledger.broken:
        left = [message.id for message in program.store.unconsumed(ROOT)]
        assert not left, f"the messages {left} of the mailbox were never decided"
