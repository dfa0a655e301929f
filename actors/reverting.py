"""Giving files back: when it may begin, and that nothing else begins meanwhile.

A wish is journalled at once. It is carried out when the turn that it names has ended, everything the
turn started is proven dead, and no child is at work; until then the session goes on as if nobody had
asked. While children are being stopped for it, and from there to the end, whatever is said waits, so
that no turn starts among files that are being given back.
"""

from __future__ import annotations

from typing import Any

from ..journal import entries as e
from ..journal import revert_entries as r
from ..journal.child_record import ChildRecord, at_work
from ..journal.turn_record import TurnRecord
from ..machines.delivery import Delivery, Relation
from ..machines.messages import Interrupt, UserMessage
from ..machines.orders import Decided
from ..machines.results import RestoreCounted, RestoreEnded
from ..machines.revert_order import Revert, RevertOutcome
from .keeper import Keeper
from .revert_answer import answer_of, before_turn, ending_of, order_of

__all__ = ["Reverting"]


class Reverting(Keeper):
    """A session as far as it gives files back. `_restoring` is the revert that is at work."""

    _restoring = ""
    _stopped: tuple[str, ...] = ()
    """The children that were told to stop for a revert while no turn ran."""

    def on_receive(self, message: Any) -> Any:
        """Take in what people ask for, and what they want to know of it."""
        match message:
            case Revert() if self.record.state in ("finalizing", "finalized"):
                return {"ok": False, "reason": "the session has ended for good"}
            case Revert():
                return self._revert(message)
            case RevertOutcome(name):
                known = self.record.reverts.get(name)
                return self.stash() if known is not None and known.is_open else answer_of(known)
            case _:
                return super().on_receive(message)

    def _interrupt(self, message: Interrupt) -> dict[str, Any]:
        """Stop what runs."""
        raise NotImplementedError

    def _reached(self, cause: str, *what: Delivery) -> tuple[str, ...]:
        """Name the children at work that get any of these from a cause."""
        raise NotImplementedError

    def _go_on(self) -> None:
        """Do what comes after a turn."""
        raise NotImplementedError

    def _must_wait(self) -> bool:
        """Whether what is said must wait until it is decided what runs."""
        is_undecided = self.record.state == "starting" or self._cancel is not None
        is_reverting = bool(self._restoring) or self._is_stopping_children
        return is_undecided or not self.record.seq or is_reverting

    @property
    def _workers(self) -> list[ChildRecord]:
        """The children that may change files: all at work but side talks, which only look."""
        found = at_work(self.record.children)
        return [one for one in found if one.relation != Relation.SIDE_TALK]

    @property
    def _is_revert_wanted(self) -> bool:
        """Whether files are to come back as soon as nobody is at work any more."""
        return any(one.is_open and not one.is_dry_run for one in self.record.reverts.values())

    @property
    def _is_stopping_children(self) -> bool:
        """Whether a revert is wanted, and begins when the children have stopped."""
        is_next = self._is_revert_wanted and self._last_turn is None
        return is_next and any(
            one.state == "stopping" or one.name in self._stopped for one in self._workers
        )

    @property
    def _last_turn(self) -> TurnRecord | None:
        """The newest turn, if it or anything that it started may still change files."""
        return self.record.unfinished

    @property
    def _is_free(self) -> bool:
        """Whether a turn may begin."""
        is_reverting = bool(self._restoring) or self._is_stopping_children
        return self.record.state == "idle" and not is_reverting

    def _revert(self, message: Revert) -> dict[str, Any]:
        """Stop what runs, unless it is only asked what would be done; then give files back."""
        turn = None if message.is_dry_run else self._last_turn
        is_running = turn is not None and turn is self.record.running
        is_stop = is_running or bool(self._workers and not message.is_dry_run)
        turns = self._meant() if is_stop and message.scope != "undo" else ()
        if is_stop:
            self._stop_children("stop")
        asked = r.RevertAsked(
            self._next_revert(),
            message.scope,
            turn.id if turn is not None else "",
            turns,
            message.since,
            message.paths,
            message.force,
            message.is_dry_run,
        )
        self._say(asked)
        if is_stop:
            self._interrupt(Interrupt("stop"))
        self._begin_reverts()
        return {"ok": True, "id": asked.id}

    def _wish(self, message: UserMessage, cause: str) -> None:
        """Remember that a message which stops what runs wants its files as they were, too."""
        turn = self._last_turn
        if message.revert and (turn is not None or self._workers):
            name, turns = self._next_revert(), self._meant()
            self._stop_children(cause)
            self._say(r.RevertAsked(name, message.revert, turn.id if turn else "", turns))
            self._begin_reverts()

    def _stop_children(self, cause: str) -> None:
        """Note who is being stopped, until they have: nothing begins meanwhile."""
        ends = (Delivery.CANCEL, Delivery.FINALIZE)
        self._stopped = self._reached(cause, *ends) if self._last_turn is None else ()

    def _meant(self) -> tuple[str, ...]:
        """Return the turns that a stop with a revert is about: what runs, or whose children do."""
        if self._last_turn is not None:
            return self._one_turn()
        turns = [name for one in self._workers for name in self._resumed(one.turn)]
        return tuple(dict.fromkeys(turns))

    def _next_revert(self) -> str:
        return f"r{self.record.reverts_made + 1}"

    def _one_turn(self) -> tuple[str, ...]:
        """Return the newest turn, with those that it goes on from."""
        return self._resumed(self.record.turn)

    def _resumed(self, name: str) -> tuple[str, ...]:
        """Return a turn, with those that it goes on from."""
        names: list[str] = []
        while name in self.record.turns:
            names.append(name)
            name = before_turn(self.record, name)
        return tuple(names)

    def _begin_reverts(self) -> bool:
        """Begin what may begin now; whether anything is at work."""
        if self._restoring or self._broken or self.record.queue.state == "closed":
            return bool(self._restoring)
        for one in self.record.reverts.values():
            is_over = self._last_turn is None and not self._workers
            if one.is_open and (one.is_dry_run or is_over):
                self._restoring = one.id
                effect = order_of(self.record, one)
                self._journal(Decided(self.name, (), effects=(effect,)))
                return True
        return False

    def _restored(self, message: RestoreCounted | RestoreEnded) -> None:
        """Write down what the ports say; after the end of it the session goes on."""
        known = self.record.reverts.get(message.id)
        if known is None or not known.is_open:
            return
        if isinstance(message, RestoreCounted):
            self._say(r.RevertBegun(message.id, message.files))
            return
        self._say(ending_of(known, message))
        self._restoring = ""
        if self._begin_reverts():
            return
        if self._last_turn is None:
            self._go_on()
        else:
            self.unstash()

    def _reverts_of(self, entry: e.Entry) -> bool:
        """Whether the end of a turn is followed by a revert before anything else."""
        return isinstance(entry, e.TurnEnded | e.Stopped) and self._begin_reverts()
