"""A session that another process runs, with the interface of a local `SessionClient`.

Events arrive on one connection. Messages leave on another, in order, from a separate thread, so that
the user interface never waits for a busy owner. Leaving does not change the session.
"""

from __future__ import annotations

import asyncio
import os
import queue
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing, closing, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..journal.child_record import ChildRecord
from ..journal.codec import decode
from ..journal.entries import QuestionAsked, StepAsked, ToolIntended
from ..journal.goal_record import GoalsRecord
from ..journal.lock import Owner
from ..journal.queue_record import QueueRecord
from ..journal.revert_record import RevertRecord, beside
from ..journal.turn_record import CONTINUE
from ..machines import protocol as m
from ..machines.disposition import Intent
from ..machines.errors import SteersmanError
from ..ports.templates import Template
from ..workflows.config import Config
from ..workflows.paths import Paths
from .commands.command import CommandCall, Reply
from .commands.registry import NAMES
from .commands.session import detach, leave
from .events import contract as c
from .events.goal import goal_status
from .events.run import step_question
from .events.translation import EventPublisher, question_asked, tool_started, whole_queue
from .follow import Follower
from .home.home import open_store
from .host.router import EventBus
from .launch_options import LaunchOptions
from .reach import SessionReach
from .remote import OwnerGone
from .remote_session import Unanswered
from .running import Works
from .session_info import SessionChoice
from .typed_text import TextReader
from .wording.first_run import chosen_line

if TYPE_CHECKING:
    from ..ports.tools.mcp_offer import McpOffer

_QUESTIONS = ("sessions", "resumable")
"""Requests that whoever made them waits for; the failure of others is told to the person."""
REPLACED = "Its program goes on in session {}, and so do you."

# The state of a running session as events, made from its dump, for a terminal that attaches


def how_it_is(data: dict[str, Any], now: float, at: c.Stamp) -> Iterator[c.Event]:
    """Yield the events; `now` in seconds since the epoch."""
    yield c.SessionStartedEvent(
        type="session_started", **at, resumed=True, folder=data["folder"], model=data["model"]
    )
    turn = data["turns"].get(data["turn"], {})
    if data.get("mode"):
        yield c.ModeEvent(type="mode", **at, mode=data["mode"])
    if chosen := chosen_line(data):
        yield c.notice(at, chosen)
    if data["state"] == "busy" and turn:
        yield c.TurnStartedEvent(
            type="turn_started",
            **at,
            turn=turn["id"],
            item=turn["item"],
            number=turn["number"],
            elapsed=round(max(0.0, now - turn["started"]), 3),
        )
        yield from _calls(turn, now, at)
    run: dict[str, Any] = data.get("run") or {}
    for attempt in run.get("open", {}).values():
        if attempt.get("asked"):
            asked = decode(StepAsked, attempt["asked"])
            yield step_question(asked, at, is_many=run["steps"][asked.step]["is_many"])
    for child in data["children"].values():
        if inner := data["subagents"].get(child["name"]):
            yield c.ChildStartedEvent(
                type="child_started",
                **at,
                name=child["name"],
                task=child["task"],
                agent=child["agent"],
                relation=child["relation"],
                id=child["session"],
                waiting=False,
            )
            whose = c.Stamp(seq=None, time=at["time"], session=child["session"], parent=data["id"])
            yield from _calls(inner["turns"].get(inner["turn"], {}), now, whose)
    goals = decode(GoalsRecord, data["goals"])
    if goals.goal is not None and not goals.goal.is_over:
        yield goal_status(goals.goal, goals, at)
    children = {name: decode(ChildRecord, known) for name, known in data["children"].items()}
    reverts = {name: decode(RevertRecord, known) for name, known in data["reverts"].items()}
    queue = decode(QueueRecord, data["queue"])
    yield whole_queue(queue, data["turn"], beside(children, reverts), at)


def _calls(turn: dict[str, Any], now: float, at: c.Stamp) -> Iterator[c.Event]:
    """Tell of the calls of a turn that run, and of what is asked."""
    if turn.get("state") == "paused" and turn["question"]:
        asked: dict[str, Any] = {"question": turn["question"], "tool": CONTINUE}
        arguments = {"model_calls": turn["step"] - turn["granted"]}
        question = QuestionAsked(turn=turn["id"], call="", **asked, arguments=arguments)
        yield question_asked(question, at)
    for call in turn.get("calls", {}).values():
        about: dict[str, Any] = {"turn": turn["id"], "call": call["id"]}
        about |= {"tool": call["tool"], "arguments": call["arguments"]}
        if call["state"] == "asking" and call.get("asked"):
            yield question_asked(decode(QuestionAsked, call["asked"]), at)
        elif call["state"] in ("running", "stopping"):
            elapsed = round(max(0.0, now - call["since"]), 3)
            yield {**tool_started(ToolIntended(**about, step=0), at), "elapsed": elapsed}


Recall = Callable[[str, int, str], Iterable[c.Event]]
"""Returns what was said in a session up to an entry, the answers of the turn that runs among it."""
LEAVE_TIMEOUT = 5.0
"""Seconds that what was said last may take, on leaving."""


_Request = tuple[str, dict[str, Any], Future[Any]]
"""A method of the control socket, its parameters, and where its result goes."""


class AttachedSession:
    """One terminal's place at a session elsewhere; stands where a `SessionClient` stands.

    `owner` is the process that has it. Requests are sent to it in order, on a thread of their own, with
    client ids that begin with `own_key`.
    """

    def __init__(
        self, host: AttachedHost, reach: SessionReach, owner: Owner, session: str, user: str
    ) -> None:
        self.session = session
        self.user = user
        self._host, self._event_bus = host, host.event_bus
        self.texts = TextReader(host.config.auto_queue.keywords)
        self._is_streamed = self._is_closing = False
        self._reach, self._owner, self._is_near = reach, owner, reach.is_near(owner)
        self._next = ""
        self._unheard, self._hears = set[str](), threading.Condition()  # keys of what was said
        self._repeated = set[str]()  # keys of lines that a notice has repeated
        self._told = dict[str, str]()  # the word of a command that went on in a session, by that
        self._link = reach.remote(session, owner)
        self.own_key, self._numbers = f"a-{secrets.token_hex(4)}", count(1)
        self._waiting: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._sender = threading.Thread(target=self._send, name="attached-talk", daemon=True)
        self._stop_listening: Callable[[], object] = lambda: None
        self.publisher = EventPublisher(session, self._event_bus.publish, time.time)

    def start(self) -> None:
        """Tell how the session is, then whatever happens in it. Raises `SteersmanError`."""
        told: Future[None] = Future()
        threading.Thread(
            target=self._listen, args=(told,), name="attached-hear", daemon=True
        ).start()
        told.result()
        self._sender.start()

    def _tell_state(self, last: int) -> int:
        """Tell how the session is, of which entry `last` was told of; return the entry that is known."""
        with closing(self._reach.remote(self.session, self._owner)) as asked:
            data: dict[str, Any] = asked.call("inspect")
        running = data["turn"] if data["state"] == "busy" else ""
        said_before = list(self._host.recall(self.session, last, running))
        state = how_it_is(data, time.time(), self.publisher.stamp())
        self.publisher.publish(next(state))
        for said in said_before:
            self._tell(said)
        for event in state:
            self.publisher.publish(event)
        return int(data["seq"])

    # What a face says -------------------------------------------------------------------------------

    def say(
        self, text: str, explicit: str = "auto", client_id: str = "", user: str = ""
    ) -> Reply | None:
        """Say something; only leaving is answered here, events tell the rest."""
        found = self.texts.classify(text, explicit)
        if found.intent is Intent.COMMAND and NAMES[found.command] in (leave, detach):
            return Reply(leaves=True)
        key = client_id or self._new_id()
        said = {"text": text, "as": explicit, "client_id": key, "user": user or self.user}
        with self._hears:
            self._unheard.add(key)
        self._put("say", said).add_done_callback(
            lambda done: self._hear(key) if done.exception() or not self._is_near else None
        )
        return None

    def run(self, call: CommandCall, client_id: str = "", user: str = "") -> Reply | None:
        """Carry out a command and wait for its reply; none where it is a message."""
        if call.command in (leave, detach):
            return Reply(leaves=True)
        key = client_id or self._new_id()
        asked = {"name": call.command.name, "arguments": dict(call.arguments)}
        sender = {"client_id": key, "user": user or self.user}
        answer = self._put("command", {**asked, **sender})
        try:
            receipt: c.ReceiptEvent = answer.result()
        except (SteersmanError, OSError, ValueError) as error:  # the person has the message
            return Reply(ok=False, text=str(error))
        if receipt["type"] != "result":
            return None
        return Reply(ok=receipt["ok"], data=receipt["data"], text=receipt["text"])

    def answer(self, question: str, choice: str, reason: str = "") -> bool:
        """Answer a question; what is wrong with the answer comes as an event."""
        params = {"id": question, "choice": choice, "reason": reason, "user": self.user}
        self._put("answer", params)
        return True

    def edit(self, number: int | None) -> bool:
        """Keep only this waiting message from starting while it is edited here; none: let go.

        Return whether it may be edited: somebody else may do so already.
        """
        asked = self._put("edit", {"number": number})
        try:
            return number is None or bool(asked.result(LEAVE_TIMEOUT)["ok"])
        except (SteersmanError, OSError, ValueError, TimeoutError):
            return True  # what is sent says why

    def ask(self, message: m.Answer) -> dict[str, Any]:
        """Send on the one message that faces ask themselves."""
        return {"ok": self.answer(message.question, message.choice, message.reason)}

    @property
    def offers(self) -> Mapping[str, McpOffer]:
        """Always empty: only the owner knows what its MCP servers offer."""
        return {}

    def templates(self) -> Mapping[str, Template]:
        """Always empty: only the owner knows its templates, and fills them."""
        return {}

    def resumable(self) -> Sequence[SessionChoice]:
        """Ask the owner which sessions `/resume` can take up; none where it does not answer."""
        try:
            found = self._put("resumable", {}).result(LEAVE_TIMEOUT)
        except (SteersmanError, OSError, ValueError, TimeoutError):
            return ()
        return [decode(SessionChoice, choice) for choice in found]

    def is_quiet(self) -> bool:
        """Always true: leaving does not wait for the session."""
        return True

    def stop_asking(self) -> bool:
        """Return false: others go on answering questions."""
        return False

    def _hear(self, *keys: str) -> None:
        """Note that what was said with these keys was received; without one, that no word comes."""
        with self._hears:
            self._unheard = self._unheard - {*keys} if keys else set[str]()
            self._hears.notify_all()

    def leave(self, cause: str = "exit") -> None:
        """Say what is on its way, hear that it came, then hang up; the session goes on. Idempotent."""
        if self._is_closing:
            return
        self._is_closing = True
        self._waiting.put(None)
        if self._sender.is_alive():
            self._sender.join(LEAVE_TIMEOUT)
        with self._hears:
            self._hears.wait_for(lambda: not self._unheard, LEAVE_TIMEOUT)
        self._link.close()
        with suppress(RuntimeError):  # it has ended
            self._stop_listening()

    # Threads ----------------------------------------------------------------------------------------

    def _new_id(self) -> str:
        return f"{self.own_key}-{next(self._numbers)}"

    def _put(self, method: str, params: dict[str, Any]) -> Future[Any]:
        """Queue a request; returns at once. The future gets its result, or its failure."""
        answer: Future[Any] = Future()
        self._waiting.put((method, params, answer))
        return answer

    def _send(self) -> None:
        while (request := self._waiting.get()) is not None:
            method, params, answer = request
            try:
                result = self._link.call(method, **params)
                self._answered(result)
                answer.set_result(result)
            except (SteersmanError, OSError, ValueError) as error:
                if method not in _QUESTIONS:
                    self._failed(error, params)
                answer.set_exception(error)

    def _failed(self, error: Exception, params: Mapping[str, Any]) -> None:
        if isinstance(error, Unanswered):  # it is in the mailbox
            self.publisher.notice(f"{error.message}. {error.hint}")
            return
        if isinstance(error, OwnerGone):  # that is said when all of it has ended
            if text := params.get("text"):
                self.publisher.notice(f"The session's program ended before it answered to: {text}")
            return
        self.publisher.error("not_said", str(error), getattr(error, "hint", ""))

    def _answered(self, result: Any) -> None:
        """Note the session that a command has begun or taken up in place of this one."""
        if isinstance(result, dict):
            receipt = cast("dict[str, Any]", result)
            if not self._is_near and receipt.get("type") in ("result", "rejected"):
                self._event_bus.publish(cast("c.Event", receipt))
            data = cast("dict[str, Any]", receipt.get("data") or {})
            if data.get("left") == self.session:
                self._next = str(data["session"])
                self._told[self._next] = str(receipt.get("text") or "")

    def _listen(self, told: Future[None]) -> None:
        """Pass events on, until the session is over and no other took its place."""
        try:
            asyncio.run(self._follow_all(told))
        except (SteersmanError, OSError, ValueError, TimeoutError, asyncio.CancelledError) as end:
            if not told.done():  # else it went, or we did
                told.set_exception(end)
                return
        self._hear()
        if not self._is_closing:
            self._end()

    def _end(self) -> None:
        self._host.ended()

    async def _follow_all(self, told: Future[None]) -> None:
        """Follow the session, and any other with which its program goes on in its place."""
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        self._stop_listening = lambda: loop.call_soon_threadsafe(task.cancel)
        await self._follow(told)
        while not self._is_closing:
            # what was said before is answered then
            self._put("sessions", {}).result(LEAVE_TIMEOUT)
            if self._next in ("", self.session):
                return
            self.session = self._link.session = self._next
            self._hear()
            self.publisher = EventPublisher(self.session, self._event_bus.publish, time.time)
            # the result of a command of this terminal was about the new one, which was not followed yet
            self.publisher.notice(self._told.pop(self.session, REPLACED.format(self.session)))
            await self._follow(told)

    async def _follow(self, told: Future[None]) -> None:
        """Tell how the session is, then pass on its events until it is over, or its owner gone."""
        known = None
        over = ("session_suspended", "session_finalized")[0 if self._is_near else 1 :]
        follower = Follower(self._reach, self.session, None, below="all", is_tied=self._is_near)
        async with aclosing(follower.batches()) as batches:
            async for confirmed, events, is_joined in batches:
                if is_joined and known is None:
                    known = await asyncio.to_thread(self._tell_state, confirmed)
                    if not told.done():
                        told.set_result(None)
                for event in events:
                    is_own = event["session"] == self.session
                    if is_own and event["type"] == "session_replaced":
                        self._next = event["by"]
                    is_known = is_own and known is not None and (event["seq"] or known + 1) <= known
                    if not is_known or event["type"] == "answer":
                        self._tell(event)
                    if event["type"] in over and is_own:
                        return

    def _tell(self, event: c.Event) -> None:
        """Publish an event; messages of other clients come as notices, our own are known.

        A message of another client that no notice has repeated, as in a journal, is made one. An answer
        of which no piece came comes as one piece.
        """
        key = str(event.get("client_id") or "")
        is_own = key.startswith(self.own_key)
        if event["type"] == "notice" and key:
            self._repeated.add(key)
            if is_own:
                return
        # to a subagent it was said by what is told already
        is_here = event["session"] == self.session
        if event["type"] == "accepted" and event["as"] != "command" and is_here:
            is_known = is_own or key in self._repeated
            self._repeated.discard(key)
            if event["text"] and not is_known:
                who = event.get("user") or "user"
                self.publisher.notice(f"{who}: {event['text']}")
        if is_here and event["type"] in ("text", "answer"):
            if event["type"] == "answer" and not self._is_streamed:
                at = c.Stamp(seq=None, time=event["time"], session=event["session"])
                piece = c.TextEvent(type="text", **at, turn=event["turn"], delta=event["text"])
                self._event_bus.publish(piece)
            self._is_streamed = event["type"] == "text"
        self._event_bus.publish(event)
        if is_own and event["type"] in ("accepted", "rejected", "result"):
            self._hear(key)


class AttachedRun(AttachedSession):
    """One terminal's place at a run of a workflow elsewhere; leaving does not stop it."""

    _changes: list[str] | None = None
    _is_cut_off = False

    def go_on(self, again: Works, done: Works) -> None:
        """Start the run, or continue it: `again` is repeated, `done` is not. Raises `SteersmanError`."""
        self._put("run", {"again": again, "done": done}).result()

    def begin_interrupt(self) -> None:
        """Stop the run; safe in a signal's handler."""
        self._put("stop", {})

    def is_quiet(self) -> bool:
        """Whether the run is over and its owner has said what it changed, or the owner is gone."""
        return self._changes is not None or self._is_cut_off

    def publish_all(self) -> None:
        """Do nothing: what is known of the run is known from its events."""

    def changes(self) -> list[str]:
        """Name the files that the run has changed; none before it is quiet."""
        return self._changes or []

    def _tell(self, event: c.Event) -> None:
        if event["type"] == "changed" and event["session"] == self.session:
            self._changes = event["files"]
        super()._tell(event)

    def _end(self) -> None:
        if not self.is_quiet():
            self._is_cut_off = True
            going_on = f"`steersman run --resume {self.session}` continues it"
            self.publisher.error("owner_gone", "the program that ran it has ended", going_on)


Attached = TypeVar("Attached", bound=AttachedSession)


class AttachedHost:
    """Stands where a `Host` stands, with an event bus fed by a session in another process."""

    choice = None
    is_elsewhere = is_kept = True
    remains = "the session goes on"

    def __init__(
        self, paths: Paths, config: Config, launch: LaunchOptions, notices: list[str]
    ) -> None:
        self.paths, self.config, self.launch, self.notices = paths, config, launch, notices
        self.event_bus = EventBus()
        self.is_cut_off = False
        self.recall: Recall = lambda _session, _upto, _turn: ()
        self.attached: AttachedSession | None = None

    @property
    def says(self) -> str:
        """The command that says one message, without it."""
        return f"send {self.attached.session}" if self.attached is not None else "send last"

    def open(self, kind: type[Attached], session: str, owner: Owner, user: str) -> Attached:
        """Connect to the owner and subscribe to its events. Raises `SteersmanError`."""
        self._store = open_store(self.paths, read_only=True)
        reach = SessionReach(self.paths, os.environ, self._store)
        self.attached = attached = kind(self, reach, owner, session, user)
        attached.start()
        return attached

    def close(self) -> None:
        """Close the connection. Idempotent."""
        if self.attached is not None:
            self.attached.leave()
            self._store.close()

    def ended(self) -> None:
        """Leave as on Ctrl-C: the session's owner is gone, or the session is over."""
        self.is_cut_off = True
        os.kill(os.getpid(), signal.SIGINT)
