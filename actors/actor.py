"""Our pykka actor type: no thread of its own, lanes, contained failures, restart in place.

pykka leaves three extension points to implementors of actor types (the inbox, the future, the loop)
and they are all that is used here, with the names pinned by a contract test; `start`, `tell`, `ask`,
`stop` and the registry are pykka's own and work on every one of our actors.

An actor that fails never takes another one down, whatever it raised. Its last act is a `Down` to its
supervisor. Ref and mailbox outlive it: a restart builds a new object behind the same ref.
"""

from __future__ import annotations

import contextlib
import queue
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pykka
from pykka import ActorRef, ActorRegistry, ThreadingFuture

from ..machines.orders import Down, Kill, Watch
from .mailbox import Mailbox, tell

if TYPE_CHECKING:
    from pykka._envelope import Envelope

    from .system import ActorSystem, Restart

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
    """A handler's answer that says: ask this one; it replies to whoever asked.

    `message`: what it is told instead of what was asked, where that had to be completed.
    """

    ref: ActorRef[Any]
    message: Any = None


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
        self._restart: Restart = birth.restart
        self._current: Envelope[Any] | None = None
        self._stashed: tuple[Envelope[Any], ...] = ()
        ref = birth.ref
        if ref is None:
            self.actor_urn = system.next_urn()
            self.actor_inbox = Mailbox(system.dispatcher)
            self.actor_stopped = Flag()  # type: ignore[assignment]
            self._actor_ref = ActorRef(self)
        else:
            self.actor_urn = ref.actor_urn
            self.actor_inbox = ref.actor_inbox
            self.actor_stopped = ref.actor_stopped
            self._actor_ref = ref
            ref._actor_weakref = weakref.ref(self)  # pyright: ignore[reportPrivateUsage]

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
            self.system.dispatcher.schedule(mailbox)

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
            if envelope is None:
                return handled
            self._handle(envelope)
        return limit

    def stash(self) -> object:
        """Put the message being handled aside until `unstash`; return this from the handler."""
        assert self._current is not None
        self._stashed = (*self._stashed, self._current)
        return STASHED

    def unstash(self) -> None:
        """Handle what was put aside before all that waits in its lanes, in the order it came."""
        stashed, self._stashed = self._stashed, ()
        if stashed:
            self.mailbox.put_back(stashed)
            self.system.dispatcher.schedule(self.mailbox)

    def watch(self, ref: ActorRef[Any]) -> None:
        """Ask to be told when an actor goes down; if it is gone already, that is now."""
        if not tell(ref, Watch(self.actor_ref)):
            self.actor_ref.tell(Down("", ref.actor_urn, "it was dead already"))

    def _handle(self, envelope: Envelope[Any]) -> None:
        message, future = envelope.message, envelope.reply_to
        self.last_message = type(message).__name__
        self._current = envelope
        try:
            self._answer(envelope, self._handle_receive(message))
        except BaseException as error:
            if future is not None:
                with contextlib.suppress(queue.Full):  # answered already
                    future.set_exception()
            if future is None or not isinstance(error, Exception):
                self._die(error, letter=self.last_message)
        finally:
            self._current = None

    def _answer(self, envelope: Envelope[Any], response: Any) -> None:
        if isinstance(response, Forward):
            if response.message is not None:
                envelope = type(envelope)(response.message, envelope.reply_to)
            response.ref.actor_inbox.put(envelope)
        elif envelope.reply_to is not None and response is not STASHED:
            envelope.reply_to.set(response)

    def _handle_receive(self, message: Any) -> Any:
        match message:
            case Kill():
                self._end(is_failure=True)
            case Watch(watcher):
                self.watchers = (*self.watchers, watcher)
            case _:
                return super()._handle_receive(message)
        return None

    def _stop(self) -> None:
        """End normally: pykka calls this for its stop message."""
        try:
            self.on_stop()
        except BaseException as error:
            self._die(error, letter="on_stop")
        else:
            self._end()

    def _die(self, error: BaseException, letter: str) -> None:
        """End by failure, and say why."""
        reason = self.system.bury(self, letter, error)
        try:
            self.on_failure(type(error), error, error.__traceback__)
        except BaseException as worse:
            self.system.bury(self, "on_failure", worse)
        self._end(reason, letter, is_failure=True)

    def _end(self, reason: str = "", letter: str = "", is_failure: bool = False) -> None:
        """Go down; the last act is to say so.

        Where another incarnation may follow, the mailbox waits for it, with what was put aside.
        """
        comes_back = self._restart == "permanent" or (self._restart == "transient" and is_failure)
        self.mailbox.put_back(self._stashed)
        self._stashed = ()
        if comes_back:
            ActorRegistry.unregister(self.actor_ref)
            self.mailbox.is_suspended = True
        else:
            self.system.retire(self)
        down = Down(self.name, self.actor_urn, reason, letter)
        for ref in (self.supervisor, *self.watchers):
            if ref is not None:
                tell(ref, down)
