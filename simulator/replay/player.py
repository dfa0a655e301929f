"""Plays a recorded session again: the program's own actors, on one thread, with no world around them.

The actors are those of `actors/`; what they are handed differs. Models, tools, restored files and judges
answer from the record, and each answer is released when all entries before it have come. What people
said and chose is given in the same way. Nothing waits: when no actor has anything to do, everything is
durable, and the record has nothing to give, the replay is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import field
from pykka import ActorRef

from ...actors.decisions import goals, resuming
from ...actors.decisions.decision import NOTHING, Decision
from ...actors.decisions.handlers import handler_of
from ...actors.decisions.routing import route, take_back
from ...actors.environment import Environment
from ...actors.kernel.supervisor import ChildSpec, Root
from ...actors.kernel.system import ActorSystem
from ...actors.ledger import Ledger
from ...actors.session import Session
from ...journal import entries as e
from ...journal.codec import decode_entry, encode_entry
from ...journal.record import SessionRecord
from ...journal.store import StoredEntry
from ...machines import protocol as m
from ...machines.classification import Classification
from ...machines.errors import SteersmanError
from ...machines.value import Value
from ..schedule import SimulatedDispatcher
from .inputs import Inputs
from .ports import RecordedPorts
from .script import NOTED, Recorded, Script, comparable

_CLOSED = ("suspended", "finalized")


class Difference(Value):
    """Where a replay left its record: at entry `seq`, in `turn`.

    `recorded` is what the record has next, none at its end; `came` what the runtime decided, none where
    it did nothing more. `why` says more than the two show.
    """

    seq: int
    turn: str
    recorded: e.Entry | None
    came: e.Entry | None
    why: str = ""


class Changes(Value):
    """What is other than in the record, from entry `since` on; a model is asked from `asks_from` on.

    `answers` are those of questions, by their ids; `said` is said when the record is over. `amend`
    exchanges tables, agent and rules of the surroundings.
    """

    since: int = 1
    asks_from: int = 1
    answers: Mapping[str, str] = field(default_factory=dict[str, str])
    said: str = ""
    amend: Callable[[Environment], None] | None = None


Asker = Callable[[m.CallModel, SessionRecord], Any]
"""Asks a model in the place of the record, and returns the message with its answer; blocks."""


class Player:
    """One replay. `kept` are the entries that came; `at` is how many of the record have come.

    `environment_of` makes the surroundings of the session, given its journal and ports; `classify` says
    what a typed text is.
    """

    def __init__(
        self,
        script: Script,
        environment_of: Callable[[Player, SessionRecord], Environment],
        changes: Changes,
        opened: e.SessionOpened,
        classify: Callable[[str], Classification],
        asker: Asker | None = None,
    ) -> None:
        self.script, self.changes, self.classify = script, changes, classify
        self.kept: list[StoredEntry] = []
        self.at = 0
        self.difference: Difference | None = None
        self.record = SessionRecord(id=script.opened.session)
        self.ports = RecordedPorts(self)
        self.asker = asker
        self._environment_of, self._opened = environment_of, opened
        self._inputs = Inputs(self)
        self._given = -1
        self._is_dead = self.is_free = self._is_amended = self._has_said = False
        self._told = 0
        self._left: list[m.Said] = []
        self._skipped = {0} if opened != script.opened else set[int]()
        self._start({})

    # What the record has --------------------------------------------------------------------------

    @property
    def next(self) -> Recorded | None:
        """The recorded entry that has to come next; none at the end."""
        entries = self.script.entries
        return entries[self.at] if self.at < len(entries) else None

    def ahead(self) -> Iterable[e.Entry]:
        """Give the recorded entries from the next one on."""
        entries = self.script.entries
        return (entries[at].entry for at in range(self.at, len(entries)))

    def now(self) -> float:
        """Return the time of the next entry in the record."""
        entries = self.script.entries
        return entries[min(self.at, len(entries) - 1)].time

    @property
    def _asks(self) -> bool:
        """Whether a model is asked from here on."""
        return self.asker is not None and self.at + 1 >= self.changes.asks_from

    @property
    def is_over(self) -> bool:
        """Whether it has left the record."""
        return self.difference is not None

    # One incarnation ------------------------------------------------------------------------------

    def _start(self, outcomes: dict[str, str]) -> None:
        self.dispatcher = SimulatedDispatcher()
        self.system = ActorSystem(self.dispatcher, self.now)
        self.environment = self._environment_of(self, self.record)
        self.environment.outcomes = outcomes
        if self._is_amended and self.changes.amend is not None:
            self.changes.amend(self.environment)
        self.ledger = Ledger(self.record, self.environment, self.now)
        self.ref: ActorRef[Any] | None = None
        self._root: ActorRef[Any] = Root.start(self.system)
        self._root.tell(ChildSpec(name=self.record.id, start=self._begun, restart="temporary"))

    def _begun(self) -> ActorRef[Any]:
        self.ref = Session.start(self.system, self.ledger)
        if not self.record.seq:
            self.ref.tell(m.OpenSession(entry=self._opened))
        return self.ref

    def _restart(self, outcomes: dict[str, str]) -> None:
        """End all actors, as a program that ends or dies, and begin again from the journal."""
        self.close()
        self.ports.forget()
        self._is_dead = False
        self._start(outcomes)

    def close(self) -> None:
        """Let go of the actors."""
        for actor in self.system.living():
            self.system.retire(actor)

    # The journal ----------------------------------------------------------------------------------

    def append(self, entry: StoredEntry, record: SessionRecord, posted: int = 0) -> None:
        """Take an entry that was decided, and compare it with the record."""
        if self.is_over or self._is_dead:
            return
        expected = self.next
        if not self.is_free and self.at not in self._skipped:
            if expected is None or comparable(entry.data) != expected.data:
                self.differ(decode_entry(entry.data))
                self.kept.append(entry)
                self.record = record
                return
        self.kept.append(entry)
        self.record = record
        self.at += not self.is_free
        if self.at + 1 >= self.changes.since and not self._is_amended:
            self._is_amended = True
            if self.changes.amend is not None:
                self.changes.amend(self.environment)
        following = self.next
        if following is not None and isinstance(following.entry, e.Recovered):
            self._is_dead = not self.is_free

    def differ(self, came: e.Entry | None, why: str = "") -> None:
        """Note where the record was left."""
        expected = self.next
        entry = expected.entry if expected is not None else None
        about = came if entry is None else entry
        seq = expected.seq if expected is not None else len(self.script.entries) + 1
        turn = getattr(about, "turn", "") or self.record.turn
        if isinstance(entry, e.ToolIntended) and isinstance(came, e.QuestionAsked):
            why = "if it was run with `--yes`, replay it with `--yes`"
        self.difference = Difference(seq=seq, turn=turn, recorded=entry, came=came, why=why)

    # Playing --------------------------------------------------------------------------------------

    def play(self) -> Difference | None:
        """Play to the end of the record, or to the first difference, which is returned."""
        while not self.is_over:
            self._settle()
            if self.is_over:
                break
            if (self.is_free or self.next is None) and not self._goes_on():
                break
            if not self._step():
                self.differ(None, "the runtime has nothing more to do")
        return self.difference

    def _settle(self) -> None:
        """Let every actor deal with what it has, and make durable what they decide."""
        while not (self.is_over or self._is_dead):
            if self._told < len(self.kept):
                self._told = len(self.kept)
                self.tell(m.Committed(seq=self._told))
            elif self._hasten():
                continue
            elif self.dispatcher.ready:
                self.dispatcher.run(self._likeliest(), 1)
            else:
                return

    def _likeliest(self) -> int:
        """Return which of the ready actors may decide what the record has next."""
        is_of_goal = self.next is not None and isinstance(self.next.entry, e.GoalEntry)
        roles = [getattr(mailbox.owner, "role", "") for mailbox in self.dispatcher.ready]
        fit = [number for number, role in enumerate(roles) if (role == "goal") == is_of_goal]
        return fit[0] if fit else 0

    def _hasten(self) -> bool:
        """Give what the record has next, if it can be before the runtime has nothing more to do."""
        recorded = self.next
        if self.is_free or recorded is None or self._given == self.at or self._asks:
            return False
        entry = recorded.entry
        if self.record.state in _CLOSED or isinstance(entry, e.SessionResumed | e.Recovered):
            return False
        self._given = self.at
        if self._inputs.give(entry, is_early=True):
            return True
        self._given = -1
        return False

    def _goes_on(self) -> bool:
        """Whether something is left to be said, or waits for an answer, where the record is over."""
        if self.is_free and self.ports.is_waiting:
            return True
        if self._left:
            self.tell(self._inputs.said_now(self._left.pop(0)))
            return True
        if not self.changes.said or self._has_said:
            if self.is_free and self.record.asking:
                self.differ(None, "a question is open, and the record has no answer")
            return False
        self._has_said = self.is_free = True
        if self.record.state in _CLOSED:
            self._restart({})
            self._settle()
        self.tell(self._inputs.said_now(m.Said(text=self.changes.said)))
        return True

    def _step(self) -> bool:
        """Give what comes next in the record; whether there was something."""
        if self.is_free:
            return self._ask() if self.ports.is_waiting else True
        if self._given == self.at:
            return self.ports.fire()
        self._given = self.at
        recorded = self.next
        assert recorded is not None
        if self._asks and self.ports.is_asking:
            self.is_free, self._left = True, list(self._inputs.said_later())
            return True
        match entry := recorded.entry:
            case e.SessionResumed() | e.Recovered():
                self._restart(self._inputs.outcomes(entry))
                return True
            case _ if self.record.state in _CLOSED and not isinstance(entry, e.SessionFinalizing):
                self.ledger.decide("session", Decision(entries=(entry,)))
                return True
            case _ if self.ports.give(entry):
                return True
            case _:
                return self._inputs.give(entry) or self.ports.fire()

    def _ask(self) -> bool:
        """Answer what the actors wait for where the record is over."""
        what = self.ports.unanswered()
        if isinstance(what, m.CallModel) and self.asker is not None:
            self.ports.answered(what, self.asker(what, self.record))
            return True
        if isinstance(what, m.RunTool) and self.ports.give_same(what):
            return True
        name = f"the tool `{what.tool}`" if isinstance(what, m.RunTool) else "the model"
        self.differ(None, f"{name} is called, and the record has no answer")
        return True

    # For inputs and ports -------------------------------------------------------------------------

    def tell(self, message: m.Message) -> None:
        """Let the session handle a message now."""
        self.hand(self.ref, message)

    def hand(self, ref: ActorRef[Any] | None, message: m.Message) -> None:
        """Let an actor handle a message now, before all that waits for it."""
        self.dispatcher.hand(ref, message)

    def again(self) -> None:
        """Let the next entry be given once more: more than one outcome leads to it."""
        self._given = -1

    def skip(self) -> None:
        """Let the next entry be another one than in the record."""
        self._skipped.add(self.at)

    def fit(self, message: m.Message) -> int:
        """Return how many entries of the record a message leads to, by what would be decided now."""
        if isinstance(message, m.NoteEntry):
            return int(isinstance(message.entry, NOTED))
        if isinstance(message, m.Answer):
            return 1
        try:
            decision = self._decided(message)
        except SteersmanError:
            return 0
        count = 0
        for entry, recorded in zip(decision.entries, self.script.entries[self.at :], strict=False):
            if comparable(encode_entry(entry)) != recorded.data:
                break
            count += 1
        return count if count == len(decision.entries) else 0

    def _decided(self, message: m.Message) -> Decision:
        record, environment = self.record, self.environment
        match message:
            case m.UserMessage():
                return route(record, message, environment)
            case m.ResumeQueue():
                return resuming.resume(record, message)
            case m.TakeBack():
                return take_back(record, self.now(), environment)
            case m.SetGoal() | m.ChangeGoal():
                obstacle = goals.obstacle(record, message)
                return (
                    goals.order(record, message, environment.goals)
                    if obstacle is None
                    else obstacle
                )
            case _:
                handler = handler_of(message)
                if handler is None or handler.decide is None:
                    return NOTHING
                return handler.decide(record, message, environment)
