"""`chat --json`: one JSON object a line out, one message a line in."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, cast

from ..gateway.commands.registry import call
from ..gateway.events.contract import Event, QuestionEvent
from ..gateway.interface import ChatHost, ChatSession
from ..machines import protocol as m
from ..machines.errors import UnknownSession
from ..machines.json_shape import parse_json
from .chat_options import ChatOptions
from .exit_codes import DONE, FAILED
from .output import document
from .question import is_over
from .streams import Printer, typed_lines
from .talk import IdleWaiter, Session, start_notices, talking

CHOICES = ("auto", "queue", "steer", "interrupt")
_RECEIPTS = ("accepted", "rejected", "result", "error", "own_command")
_PATIENCE = 10.0  # seconds in which one of them comes


class Lines:
    """One JSON conversation: lines in, events out; questions are answered by lines.

    `takes_words`: some questions are answered with free text.
    """

    def __init__(self, conversation: ChatSession, *, takes_words: bool = False) -> None:
        self.conversation = conversation
        self._takes_words = takes_words
        self._questions: dict[str, QuestionEvent] = {}
        self._has_ended = False
        self._receipt = threading.Event()

    def take(self, line: str) -> bool:
        """Carry out one line; True if it asked to leave.

        A line that begins with a brace has to be JSON: half an object is no message to a model.
        """
        said = _object(line) if line.lstrip().startswith("{") else {"text": line}
        is_text = isinstance(said.get("text"), str) and said.get("as", "auto") in CHOICES
        if not (is_text or any(isinstance(said.get(kind), str) for kind in ("answer", "command"))):
            self._reject(line, said)
            return False
        client = str(said.get("client_id") or "")
        if "answer" in said:
            choice, reason = said.get("choice", "deny"), said.get("reason") or ""
            is_let = said.get("choice", "allow") == "allow"
            if is_let and isinstance(said.get("arguments"), dict):  # of a call that is held
                choice, reason = "change", json.dumps(said["arguments"])
            self._answer(str(said["answer"]), str(choice), str(reason))
            return False
        if "command" in said:
            return self._run(said, client)
        if not said["text"].strip():
            hint = "a message has words: nothing was sent"
            self.conversation.publisher.rejected("empty", said["text"], client, hint)
            return False
        user = str(said.get("user") or "")
        self._receipt.clear()
        reply = self.conversation.say(said["text"], str(said.get("as", "auto")), client, user)
        if reply is None:  # what is said next must not overtake it on a faster way
            self._receipt.wait(_PATIENCE)
        return reply is not None and reply.leaves

    def _run(self, said: dict[str, Any], client: str) -> bool:
        """Run a command that came as data; True if it asked to leave."""
        try:
            found = call(str(said["command"]), dict(said.get("arguments") or {}))
        except (TypeError, ValueError) as error:
            self._error("bad_line", str(error), "docs/commands.md lists them", client or None)
            return False
        reply = self.conversation.run(found, client, str(said.get("user") or ""))
        return reply is not None and reply.leaves

    def hear(self, event: Event) -> None:
        """Follow receipts and the open questions; loop's thread."""
        if event["type"] in _RECEIPTS:
            self._receipt.set()
        elif event["type"] == "question":
            self._questions[event["id"]] = event
        elif event["type"] == "answered":
            self._questions.pop(event["id"], None)
        elif event["type"] == "step":
            there = list(self._questions.items())
            self._questions = {name: asked for name, asked in there if not is_over(asked, event)}

    def deny_the_rest(self) -> None:
        """Deny the open questions, if nobody else can answer them: standard input has ended."""
        self._has_ended = self.conversation.stop_asking()
        self.deny_late()

    def deny_late(self) -> None:
        """Deny what was asked just before standard input had ended, and is heard of only now."""
        if self._has_ended:
            for question in list(self._questions):
                self._questions.pop(question, None)
                with suppress(UnknownSession):  # it was over before
                    self.conversation.answer(question, "deny", "there is no person to answer")

    def _answer(self, question: str, choice: str, reason: str) -> None:
        choices = dict.fromkeys((*m.CHOICES, *m.CHOICES_OF_HOLD, *m.CHOICES_OF_FORM))
        if choice not in choices and not self._takes_words:
            self._error("bad_line", f"`{choice}` is no choice", f"choices: {', '.join(m.CHOICES)}")
            return
        answer = self.conversation.ask(m.Answer(question=question, choice=choice, reason=reason))
        if not answer.get("ok"):
            self._error("no_question", str(answer.get("reason")), "it was not answered")

    def _reject(self, line: str, said: dict[str, Any]) -> None:
        hint = 'give {"text": "…", "as": "auto"}, {"answer": ID, "choice": "allow"}, or plain text'
        if isinstance(said.get("text"), str):
            hint = f"`as` is one of {', '.join(CHOICES)}"
        text = f"neither `text` nor `answer` in this line: {line[:80]}"
        self._error("bad_line", text, hint, said.get("client_id"))

    def _error(self, code: str, text: str, hint: str, client: object = None) -> None:
        key = None if client is None else str(client)
        self.conversation.publisher.error(code, text, hint, key)


def _object(line: str) -> dict[str, Any]:
    """Read a JSON object, null fields as if they were absent; empty if it is no object."""
    try:
        data = parse_json(line)
    except (ValueError, RecursionError):
        return {}
    fields = cast("dict[str, Any]", data if isinstance(data, dict) else {})
    return {name: value for name, value in fields.items() if value is not None}


def talk_json(host: ChatHost, open_it: Callable[[], ChatSession], options: ChatOptions) -> int:
    """Run a chat until the input ends and no work is left."""
    idle_waiter = IdleWaiter()
    with talking_json(host, open_it, idle_waiter.hear) as (conversation, lines):
        if options.message:
            lines.take(options.message)
        has_said_more = False
        for line in filter(str.strip, typed_lines()):
            has_said_more = True
            if lines.take(line):
                break
        else:
            lines.deny_the_rest()
            idle_waiter.wait(conversation, lines.deny_late)
        conversation.leave()
    if options.message:
        return idle_waiter.exit_code if has_said_more else idle_waiter.code_of_one
    return FAILED if idle_waiter.is_broken else DONE  # events say what became of each line


@contextmanager
def talking_json(
    host: ChatHost,
    open_it: Callable[[], Session],
    hear: Callable[[Event], None],
    *,
    takes_words: bool = False,
) -> Generator[tuple[Session, Lines]]:
    """Open a session whose events are printed as JSON in UTF-8, in any locale; `hear` gets them, too."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", errors="replace")
    printer = Printer(sys.stdout)

    def show(event: Event) -> None:
        printer.write(document(event, None) + "\n")

    with talking(host, open_it, (show, hear), (printer,)) as conversation:
        lines = Lines(conversation, takes_words=takes_words)
        host.event_bus.subscribe(lines.hear)
        model = [host.choice.line] if host.choice is not None else []
        for notice in (*model, *start_notices(host)):
            conversation.publisher.notice(notice)
        yield conversation, lines
