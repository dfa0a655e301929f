"""Plain text: one message from the command line, or a script of messages from standard input.

Answers go to standard output, everything else to standard error. The lines of a script queue and run
in order, so that a script means the same however fast its model is.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from ..gateway.events.contract import Event, GoalView, ToolEndedEvent, is_aside
from ..gateway.interface import ChatHost, ChatSession
from ..gateway.views.saved_queues import announce, announce_saved
from ..gateway.wording.acknowledgement import acknowledgement, reverted_text
from ..gateway.wording.formats import (
    call_words,
    one_line,
    own_command_end,
    progress_text,
    telling_line,
)
from ..gateway.wording.terminal import audited, clean
from ..machines.errors import UsageError
from ..machines.lifecycles import REASONS
from ..machines.protocol import exit_words
from ..machines.verdict import read_condition
from ..ports.tools.text import counted
from .chat_options import ChatOptions
from .output import warn
from .question import step_lines
from .streams import comes_soon, printers, typed_lines
from .talk import (
    HeldNotice,
    IdleWaiter,
    done_by_another,
    ends_answer,
    has_utf8,
    is_of_another,
    start_notices,
    talking,
)

PIPE_TIMEOUT = 2.0
"""Seconds within which a piped standard input has to deliver something."""
LONGEST_CALL = 100
"""Characters of what a call was given."""
LONGEST_REASON = 200
"""Characters of the line that says why a call failed."""
SILENT = 10.0
"""Seconds for which a model may say nothing before a person is told."""
MOST_PIPED = 1024 * 1024
"""Characters that may be piped in with a message; far more than most models read at once."""


class PlainInterface:
    """Prints events as text with `out` and `err`; with `has_bar`, the bar shows the progress instead.

    `columns` returns the width of a line, 0 if that is not known.
    """

    def __init__(
        self,
        out: Callable[[str], None],
        err: Callable[[str], None],
        *,
        can_utf8: bool = True,
        has_bar: bool = False,
        shows_queued: bool = True,
        is_one_shot: bool = False,
        columns: Callable[[], int] = int,
    ) -> None:
        self._out, self._err = out, err
        self._can_utf8, self._has_bar, self._shows_queued = can_utf8, has_bar, shows_queued
        self._is_mid_line = False
        self._held, self._told_held, self._replied = HeldNotice(), "", ""
        self._goal_state = ("", "", "")
        self._is_one_shot = is_one_shot
        self._columns = columns
        self._announced = set[str]()
        self.own_key: str | None = None

    def hear(self, event: Event) -> None:
        """Print an event; loop's thread."""
        if is_aside(event):
            return
        if is_of_another(event, self.own_key):
            self._aside(done_by_another(event))
            return
        held = self._held.hear(event)
        if event["type"] == "result" and event["text"] == self._told_held != "":
            self._told_held = ""  # the change of the queue has said it
            return
        if held and held == self._replied:
            held = ""  # the command has said it
        self._told_held = held or self._told_held
        if event["type"] in ("result", "accepted"):
            self._replied = event["text"] if event["type"] == "result" else ""
        if ends_answer(event) and self._is_mid_line:
            self._out("\n")
            self._is_mid_line = False
        match event["type"]:
            case "text":
                delta = clean(event["delta"])
                self._out(delta)
                self._is_mid_line = not delta.endswith("\n") if delta else self._is_mid_line
            case "saved_queues" if self._is_one_shot:
                name = event["saved"][0]["session"]
                is_one = len(event["saved"]) == 1 and not event.get("more")
                what = "A saved queue waits" if is_one else "Saved queues wait, the newest"
                rest = "" if is_one else "; `steersman queue restore --list` has all"
                self._aside(f"{what}: `steersman chat --resume {name}`{rest}")
            case "saved_queues":
                self._announced |= {found["session"] for found in event["saved"]}
                self._aside(announce_saved(event, time.time(), can_utf8=self._can_utf8))
            case "recovered" if event["session"] in self._announced:
                pass
            case "recovered":
                self._aside(announce(event, time.time(), can_utf8=self._can_utf8))
            case "turn_ended":
                self._aside(_line(event))
                if "resumable" in event:
                    how = f"`/queue resume` goes on with #{event['resumable']}"
                    until = ", until another message is sent"
                    if self._is_one_shot:
                        how = f"It is kept: in `steersman chat --resume {event['session']}` {how}"
                    self._aside(f"{how}{until}.")
            case "interrupted" | "tool_started":
                self._aside(_line(event) or acknowledgement(event, can_utf8=self._can_utf8))
            case "progress" if self._has_bar:
                pass
            case "queue":
                self._aside(held)
            case "goal":
                state = event["id"], event["state"], event["reason"] or ""
                if state != self._goal_state:
                    self._aside(_goal_line(event))
                self._goal_state = state
            case "own_command":
                self._out(clean(event["output"]))
                self._aside(own_command_end(event))
            case _:
                utf8, columns = self._can_utf8, self._columns()
                shows = self._shows_queued
                self._aside(
                    _line(event)
                    or acknowledgement(event, can_utf8=utf8, shows_queued=shows, columns=columns)
                )

    def _aside(self, text: str) -> None:
        if text:
            self._err(audited(text) + "\n")


def _line(event: Event) -> str:
    match event["type"]:
        case "tool_started" if event["tool"] != "progress":  # its report is an event of its own
            brief = one_line(", ".join(call_words(event["arguments"])), LONGEST_CALL, "...")
            return f"[{event['tool']}] {brief}"
        case "tool_ended" if event["status"] != "ok":
            return f"[{event['tool']}] {_failure(event)}"
        case "progress":
            return progress_text(event).strip()
        case "turn_ended" if "facts" in event:
            return event["facts"]["text"]
        case "error":
            return f"steersman: {event['text']}" + (f"\n  {event['hint']}" if event["hint"] else "")
        case "notice":
            return event["text"]
        case "verdict":
            who = "gate" if event["by"] == "gate" else "judge"
            unusable = "" if event["usable"] else " (no usable verdict)"
            awaited = event["condition"]
            until = f" (waiting for {read_condition(awaited)})" if awaited else ""
            said = f"[{who}] {event['verdict']}{unusable}: {event['reason']}".rstrip(": ")
            return f"{said}{until}"
        case "result" if event["name"] == "stop" and event["data"].get("interrupted"):
            is_all_said = "unsent" not in event["data"]  # by the turn's end
            return "" if is_all_said else event["text"]
        case "result" if event["name"] == "answer" and event["ok"]:
            return ""  # the call that begins, or its end, says it
        case "reverted":
            return reverted_text(event)
        case "result" if event["name"] == "revert" and event["ok"] and not event["data"]["dry_run"]:
            return ""  # the `reverted` event says it
        case "result" if event["name"].startswith("goal") and _is_seen(event["data"]):
            return ""  # the `goal` event says it
        case "result":
            return event["text"]
        case _:
            return ""


def _failure(end: ToolEndedEvent) -> str:
    """Say on one line why a call failed, or was not run."""
    if reason := end.get("reason"):
        return one_line(reason, LONGEST_REASON)
    code = f", {exit_words(end['exit_code'])}" if end["exit_code"] is not None else ""
    said = one_line(telling_line(end).removeprefix("Error: "), LONGEST_REASON)
    return f"{end['status']}{code}" + (f": {said}" if said else "")


def terminal_columns() -> int:
    """Return the width of the terminal."""
    return shutil.get_terminal_size().columns


SLOW_START = 2.0
"""Seconds after which a person is told what a start waits for."""


def talk_plain(host: ChatHost, open_it: Callable[[], ChatSession], options: ChatOptions) -> int:
    """Send the message, or every line of the input; wait until no work is left."""
    if options.message:
        options = replace(options, message=with_piped(options.message))
    out, err = printers()
    is_one_screen = sys.stdout.isatty() and sys.stderr.isatty()
    idle_waiter = IdleWaiter()
    interface = PlainInterface(
        out.write,
        err.write,
        can_utf8=has_utf8(sys.stderr),
        shows_queued=host.config.auto_queue.show_queue_on_input,
        is_one_shot=host.launch.is_one_shot,
        columns=terminal_columns if is_one_screen else int,
    )
    silence = Silence(err.write if sys.stderr.isatty() else lambda text: None)

    def tell_question(event: Event) -> None:
        """Say what waits for an answer, which a person gives elsewhere: what is piped in gives none."""
        if event["type"] == "question" and host.is_elsewhere:
            words = event["tool"], *call_words(event["arguments"])
            if event["kind"] == "ask":
                words = tuple(step_lines(event))
            call = " ".join(words)
            way = f"`steersman attach {event['session']}` in a terminal"
            err.write(
                f"Waits for an answer: {clean(one_line(call, LONGEST_CALL))}. {way} gives it.\n"
            )

    heard = (interface.hear, idle_waiter.hear, silence.hear, tell_question)

    def open_patiently() -> ChatSession:
        """Open the session; where its servers take their time, say so."""
        names = ", ".join(host.config.mcp)
        said = threading.Timer(SLOW_START, err.write, (f"Waiting for the MCP servers: {names}\n",))
        said.daemon = True
        if names:
            said.start()
        try:
            return open_it()
        finally:
            said.cancel()

    with talking(host, open_patiently, heard, (out, err), err.write) as conversation:
        interface.own_key = conversation.own_key
        if host.choice is not None and not (options.message and host.choice.is_named):
            err.write(f"{host.choice.line}\n")
        for notice in start_notices(host):
            err.write(f"{notice}\n")
        has_spoken = _send_all(conversation, options)
        idle_waiter.wait(conversation, silence.look)
        conversation.leave()
        if not has_spoken:  # after what the session itself had to say
            way = f"steersman {host.says}"
            err.write(f'Nothing was said: the input is empty. `{way} "MESSAGE"` says something.\n')
    return idle_waiter.code_of_one if options.message else idle_waiter.exit_code


class Silence:
    """Tells a person at a terminal, once each time, that a model has said nothing for a while."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._since = 0.0  # 0: no model is waited for, or it was told
        self._is_mid_line = False

    def hear(self, event: Event) -> None:
        """Take in an event; loop's thread."""
        match event["type"]:
            case "turn_started" | "tool_ended" | "thinking":
                self._since = time.monotonic()
            case "text":
                self._since = time.monotonic()
                self._is_mid_line = not event["delta"].endswith("\n")
            case "tool_started" | "turn_ended" | "question":
                self._since, self._is_mid_line = 0.0, False
            case _:
                pass

    def look(self) -> None:
        """Say it if it is time."""
        if self._since and time.monotonic() - self._since > SILENT:
            self._since = 0.0
            start = "\n" if self._is_mid_line else ""
            self._tell(f"{start}The model has said nothing for {SILENT:.0f} s; Ctrl-C stops.\n")


OWN = ("!", "\uff01")
"""What a shell command of one's own begins with."""


def with_piped(message: str) -> str:
    """Add what is piped in to a message: `cat notes | steersman chat "sum this up"`.

    A command stays as it is. Raises `UsageError` for too much input, or what is no text. If a person sees
    the output, the wait is unlimited; otherwise a pipe that was left open by mistake is given up after
    `PIPE_TIMEOUT`.
    """
    if message.lstrip().startswith(("/", *OWN)) or sys.stdin.isatty():
        return message
    is_watched = sys.stdout.isatty() or sys.stderr.isatty()  # by a person
    if not is_watched and not comes_soon(PIPE_TIMEOUT):
        warn(
            f"steersman: nothing was piped in within {PIPE_TIMEOUT:g} seconds: continuing without it"
        )
        return message
    lines: list[str] = []
    size = 0
    for line in typed_lines():
        lines.append(line)
        size += len(line) + 1
        if "\0" in line:
            hint = "name a file in the message: `@FILE`, also a picture"
            raise UsageError("what is piped in is no text", hint)
        if size > MOST_PIPED:
            raise UsageError(
                f"more than {MOST_PIPED // 1024} KiB of piped input",
                "write it to a file, and name the file in the message",
            )
    piped = "\n".join(lines).strip("\n")
    return f"{message}\n\n{piped}" if piped.strip() else message


def _send_all(conversation: ChatSession, options: ChatOptions) -> bool:
    """Say everything; say whether something was said, or could not be."""
    if options.message:
        conversation.say(options.message)
    if options.message or sys.stdin.isatty():
        return True
    has_spoken = False
    for line in typed_lines():
        text = line.strip()
        if not text:
            continue
        has_spoken = True
        if text.startswith(OWN):
            text = f" {text}"  # a message: what is piped in may be another person's
        reply = conversation.say(text, "auto" if text.startswith("/") else "turn")
        if reply is not None and reply.leaves:
            break
    return has_spoken


# The goal -----------------------------------------------------------------------------------------


SHOWN = 120
"""Characters of a goal's text that a line shows."""


def _is_seen(change: Mapping[str, Any]) -> bool:
    """Whether what a command changed of the goals is what their event says."""
    state, reason = change.get("state"), change.get("reason")
    is_told = state == "cleared" or (state, reason) == ("paused", "user")
    return bool(change.get("ok")) and is_told and not change["next"]


def _goal_line(event: GoalView) -> str:
    text = " ".join(event["text"].split())[:SHOWN]
    used, most = event["turns_used"], event["max_turns"]
    turns = counted(event["turns_total"], "turn")  # with those before it was resumed
    match event["state"]:
        case "achieved":
            return f"Goal achieved after {turns}: {text}"
        case "impossible":
            return f"Goal given up after {turns}: {event['detail'] or text}"
        case "waiting":
            return "Goal waiting; no turn of it runs until then. /goal resume continues at once."
        case "cleared" if event["reason"] != "replaced":
            return f"Goal cleared: {text}"
        case "paused" if event["reason"] == "user":
            rest = "Nothing more runs until /goal resume; a turn that runs now may finish."
            return f"Goal paused, {used} of {most} turns are used: {text}\n{rest}"
        case "paused":
            why = event["detail"] or REASONS.get(event["reason"] or "", event["reason"])
            left = f"{used} of {most} turns are used. /goal resume continues."
            return f"Goal paused ({why}): {text}\n{left}"
        case _:
            return ""
