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
from typing import TYPE_CHECKING, Any

import pykka
from pykka import ActorRef, ActorRegistry, ThreadingFuture

from ...machines import protocol as m
from ...machines.protocol import mailed
from ...machines.value import Value
from .mailbox import Mailbox, tell

if TYPE_CHECKING:
    from pykka._envelope import Envelope

    from .system import ActorSystem


class Flag:
    """A stop flag with the part of `threading.Event` that pykka uses, at a tenth of its size."""

    __slots__ = ("_is_set",)

    def __init__(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        """Whether it was set."""
        return self._is_set

    def set(self) -> None:
        """Set it; it is never cleared."""
        self._is_set = True


LATER = object()
"""A handler's answer that says: the sender is answered later, through `reply_later`."""


class Forward(Value):
    """A handler's answer that passes the request on to another actor, which replies to the sender.

    `message` replaces the request, where that had to be completed.
    """

    ref: ActorRef[Any]
    message: Any = None


class Actor(pykka.Actor):
    """Base of all actors. Handlers run on the dispatcher's thread and never block.

    `birth` says what it is called, who supervises it, and when it is started again. `is_done`: it ends
    as soon as the message is dealt with that it handles.
    """

    is_done = False

    def __init__(self, system: ActorSystem) -> None:
        self.system = system
        self.birth = system.birth()
        self.last_message = ""
        self.envelope: Envelope[Any] | None = None
        _take_address(self, self.birth.ref)

    @property
    def name(self) -> str:
        """Its name in dumps and `Down`."""
        return self.birth.name

    @property
    def supervisor(self) -> ActorRef[Any] | None:
        """The actor that gets a message at its end."""
        return self.birth.supervisor

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
        if self.is_done:
            self._stop()
        elif not mailbox.empty():
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

    def _handle(self, envelope: Envelope[Any]) -> None:
        message, future = _opened(envelope)[0], envelope.reply_to
        kind = type(message).__name__
        self.last_message = self.last_message if kind == "Inspect" else kind
        self.envelope = envelope
        try:
            _answer(envelope, self._handle_receive(message))
        except BaseException as error:
            if future is not None:
                with contextlib.suppress(queue.Full):  # answered already
                    future.set_exception()
            if future is None or not isinstance(error, Exception):
                self._die(error, letter=kind)
        else:
            if self.is_done:
                self._stop()
        finally:
            self.envelope = None

    def _handle_receive(self, message: Any) -> Any:
        match message:
            case m.Kill(incarnation=incarnation):
                if incarnation == self.birth.incarnation:
                    self._end(is_failure=True)
            case _:
                return super()._handle_receive(message)
        return None

    def stop(self) -> None:
        """End normally once this message is dealt with; pykka's own way takes a message more."""
        self.is_done = True

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

    def _end(
        self,
        reason: str = "",
        letter: str = "",
        *,
        is_failure: bool = False,
        wants_restart: bool = False,
    ) -> None:
        """Go down; the last act is to say so.

        Where another incarnation may follow, the mailbox waits for it. `wants_restart`: it may at once,
        because nothing has failed.
        """
        restart = self.birth.restart
        if restart == "permanent" or (restart == "transient" and is_failure):
            ActorRegistry.unregister(self.actor_ref)
            self.mailbox.is_suspended = True
        else:
            self.system.retire(self)
        down = m.Down(
            name=self.name,
            urn=self.actor_urn,
            reason=reason,
            letter=letter,
            wants_restart=wants_restart,
        )
        tell(self.supervisor, down)


def posted_of(actor: Actor) -> int:
    """Return the id of the message that an actor handles, if it came from a mailbox; else 0."""
    return _opened(actor.envelope)[1] if actor.envelope is not None else 0


def _opened(envelope: Envelope[Any]) -> tuple[Any, int]:
    """Return the message in an envelope, and its id if it came from the session's mailbox, else 0."""
    message = envelope.message
    return (message.message, message.posted) if isinstance(message, m.Mailed) else (message, 0)


def _answer(envelope: Envelope[Any], response: Any) -> None:
    """Reply to the sender with what a handler has returned, or have another actor do that."""
    if isinstance(response, Forward):
        if response.message is not None:
            instead = mailed(response.message, _opened(envelope)[1])
            envelope = type(envelope)(instead, envelope.reply_to)
        response.ref.actor_inbox.put(envelope)
    elif envelope.reply_to is not None and response is not LATER:
        envelope.reply_to.set(response)


def _take_address(actor: Actor, ref: ActorRef[Any] | None) -> None:
    """Give an actor the fields by which pykka knows it: new ones, or those of a ref that it adopts."""
    if ref is None:
        actor.actor_urn = actor.system.next_urn()
        actor.actor_inbox = Mailbox(actor.system.dispatcher)
        actor.actor_stopped = Flag()  # type: ignore[assignment]
        actor._actor_ref = ActorRef(actor)  # pyright: ignore[reportPrivateUsage]
        return
    actor.actor_urn, actor.actor_inbox = ref.actor_urn, ref.actor_inbox
    actor.actor_stopped, actor._actor_ref = ref.actor_stopped, ref  # pyright: ignore[reportPrivateUsage]
    ref._actor_weakref = weakref.ref(actor)  # pyright: ignore[reportPrivateUsage]
