"""Our pykka actor type: no thread of its own, lanes, contained failures, restart in place.

pykka leaves three extension points to implementors of actor types (the inbox, the future, the loop)
and they are all that is used here, with the names pinned by a contract test; `start`, `tell`, `ask`,
`stop` and the registry are pykka's own and work on every one of our actors.

An actor that fails never takes another one down, whatever it raised. Its last act is a `Down` to its
supervisor. Ref and mailbox outlive it: a restart builds a new object behind the same ref.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pykka
from pykka import ActorRef, ActorRegistry, ThreadingFuture

from ..machines.messages import Down, Kill, Watch
from .mailbox import Mailbox

if TYPE_CHECKING:
    from pykka._envelope import Envelope

    from .system import ActorSystem

__all__ = ["Actor", "Flag", "Forward"]


class Flag:
    """A stop flag with the part of `threading.Event` that pykka uses, at a tenth of its size."""

    __slots__ = ("_is_set",)

    def __init__(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        """Whether it was set."""
        return self._is_set

    def set(self) -> None:
        """Set it, for good."""
        self._is_set = True


STASHED = object()


@dataclass(frozen=True, slots=True)
class Forward:
    """A handler's answer that says: ask this one; it replies to whoever asked."""

    ref: ActorRef[Any]


class Actor(pykka.Actor):
    """Base of all actors. Handlers run on the dispatcher's thread and never block.

    `name` is what dumps and `Down` call it; `supervisor` hears of its end.
    """

    def __init__(self, system: ActorSystem) -> None:
        birth = system.birth()
        self.system = system
        self.name = birth.name
        self.supervisor = birth.supervisor
        self.watchers: tuple[ActorRef[Any], ...] = ()
        self.last_message = ""
        self._current: Envelope[Any] | None = None
        self._stashed: tuple[Envelope[Any], ...] = ()
        self._must_unstash = False
        ref = birth.ref
        if ref is None:
            self.actor_urn = system.next_urn()
            self.actor_inbox = Mailbox(system.dispatcher.schedule)
            self.actor_stopped = Flag()  # type: ignore[assignment]
            self._actor_ref = ActorRef(self)
        else:
            self.actor_urn = ref.actor_urn
            self.actor_inbox = ref.actor_inbox
            self.actor_stopped = ref.actor_stopped
            self._actor_ref = ref
            ref._actor_weakref = weakref.ref(self)

    @staticmethod
    def _create_actor_inbox() -> Mailbox:
        raise NotImplementedError("the system makes the mailbox")

    @staticmethod
    def _create_future() -> ThreadingFuture[Any]:
        return ThreadingFuture()

    def _start_actor_loop(self) -> None:
        mailbox = self.mailbox
        mailbox.owner = self
        mailbox.is_suspended = False
        self.system.keep(self)
        try:
            self.on_start()
        except BaseException as error:
            self._die(error, letter="on_start")
            return
        if not mailbox.empty():
            mailbox.schedule(mailbox)

    @property
    def mailbox(self) -> Mailbox:
        """The inbox, by its real type."""
        inbox = self.actor_inbox
        assert isinstance(inbox, Mailbox)
        return inbox

    def run_batch(self, limit: int) -> int:
        """Handle up to `limit` messages and return how many there were; dispatcher's thread."""
        mailbox = self.mailbox
        for handled in range(limit):
            envelope = mailbox.take()
            if envelope is None or self.actor_stopped.is_set():
                return handled
            self._deliver(envelope)
        return limit

    def stash(self) -> object:
        """Put the message being handled aside until `unstash`; return this from the handler."""
        assert self._current is not None
        self._stashed = (*self._stashed, self._current)
        return STASHED

    def unstash(self) -> None:
        """Handle what was put aside, in order, after the message being handled now."""
        self._must_unstash = bool(self._stashed)

    def _deliver(self, envelope: Envelope[Any]) -> None:
        self._handle(envelope)
        while self._must_unstash and not self.actor_stopped.is_set():
            self._must_unstash = False
            stashed, self._stashed = self._stashed, ()
            for number, one in enumerate(stashed):
                self._handle(one)
                if self._stashed:  # it was put aside again: so is everything after it, in order
                    self._stashed = (*self._stashed, *stashed[number + 1 :])
                    break

    def _handle(self, envelope: Envelope[Any]) -> None:
        message, future = envelope.message, envelope.reply_to
        self.last_message = type(message).__name__
        self._current = envelope
        try:
            response = self._handle_receive(message)
        except BaseException as error:
            if future is not None:
                future.set_exception()
            if future is None or not isinstance(error, Exception):
                self._die(error, letter=self.last_message)
            return
        finally:
            self._current = None
        if isinstance(response, Forward):
            response.ref.actor_inbox.put(envelope)
        elif future is not None and response is not STASHED:
            future.set(response)

    def _handle_receive(self, message: Any) -> Any:
        match message:
            case Kill():
                return self._halt()
            case Watch(watcher):
                self.watchers = (*self.watchers, watcher)
                return None
            case _:
                return super()._handle_receive(message)

    def _stop(self) -> None:
        """End normally: pykka calls this for its stop message."""
        ActorRegistry.unregister(self.actor_ref)
        self.actor_stopped.set()
        try:
            self.on_stop()
        finally:
            self.mailbox.close()
            self._report(Down(self.name, self.actor_urn))
            self.system.drop(self.actor_ref)

    def _halt(self) -> None:
        """End because a sibling failed; the mailbox waits for the next incarnation."""
        ActorRegistry.unregister(self.actor_ref)
        self.mailbox.is_suspended = True
        self._report(Down(self.name, self.actor_urn))

    def _die(self, error: BaseException, letter: str) -> None:
        """End by failure: keep the mailbox for the supervisor, say why."""
        ActorRegistry.unregister(self.actor_ref)
        reason = self.system.bury(self, letter, error)
        if self.supervisor is None:
            self.actor_stopped.set()
            self.mailbox.close()
            self.system.drop(self.actor_ref)
        else:
            self.mailbox.is_suspended = True
        self._report(Down(self.name, self.actor_urn, reason, letter))

    def _report(self, down: Down) -> None:
        for ref in (self.supervisor, *self.watchers):
            if ref is not None and ref.is_alive():
                ref.tell(down)
