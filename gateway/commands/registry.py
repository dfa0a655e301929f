"""The slash commands: one registry for the terminal, scripts, sockets and editors alike.

A command is looked up here, carried out at once, also in the middle of a turn, and answered with one
`Reply`: `data` is what machine interfaces get, `text` what people read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...machines.messages import Interrupt
from ..dumps.tree import draw_dump
from ..events.compaction import compact_command
from ..permission import PERMISSIONS_USAGE, permissions_command
from ..router import routes_command
from .agents import AGENTS_USAGE, agents_command, answer_command, smalltalk_command
from .goal import GOAL_USAGE, goal_command
from .limits import limits_command
from .model import model_command
from .queue import QUEUE_USAGE, queue_command
from .reply import Reply
from .revert import REVERT_USAGE, diff_command, revert_command
from .session import (
    export_command,
    finalize_command,
    history_command,
    rename_command,
    resume_command,
)
from .show import show_command
from .steering import busy_command, receipts_command, steer_command, undo_command
from .usage import usage_command

if TYPE_CHECKING:
    from ..conversation import Conversation


Run = Callable[["Conversation", str], Reply]


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command; `usage` is what follows the name.

    `is_urgent`: it doesn't wait for what was said before it. `says`: with an argument it is no
    command but a message, said as that.
    """

    name: str
    usage: str
    doc: str
    run: Run
    is_urgent: bool = False
    says: str = ""


def _help(conversation: Conversation, argument: str) -> Reply:
    known = [find(argument.lstrip("/"))] if argument else list(COMMANDS.values())
    if known == [None]:
        return Reply(False, text=f"No command `/{argument.lstrip('/')}`. /help lists them.")
    rows = [one for one in known if one is not None]
    lines = [
        f"/{one.name} {one.usage}".rstrip().replace("|", " | ") + f"\n    {one.doc}" for one in rows
    ]
    data = [{"name": one.name, "usage": one.usage, "doc": one.doc} for one in rows]
    return Reply(True, {"commands": data}, "\n".join(lines))


def _stop(conversation: Conversation, argument: str) -> Reply:
    answer = conversation.ask(Interrupt("stop", said=conversation.runtime.next_said()))
    children: list[str] = answer.get("children") or []
    if answer.get("interrupted") or children:
        turn = [f"turn {answer['interrupted']}"] if answer.get("interrupted") else []
        return Reply(True, answer, f"Stopping {', '.join([*turn, *children])}.")
    if answer.get("goal"):
        return Reply(True, answer, "Goal paused. /goal resume goes on.")
    return Reply(True, answer, f"Nothing to stop: {answer.get('reason', 'nothing runs')}.")


def _new(conversation: Conversation, argument: str) -> Reply:
    before = conversation.session
    left = len(conversation.queue()["items"]) if conversation.is_open else 0
    conversation.renew()
    data = {"finalized": before, "session": conversation.session, "left": left}
    what = f" What waited in {before} ({left}) ended with it." if left else ""
    return Reply(True, data, f"New session {conversation.session}.{what}")


def _exit(conversation: Conversation, argument: str) -> Reply:
    return Reply(True, {}, "", leaves=True)


def _inspect(conversation: Conversation, argument: str) -> Reply:
    data = conversation.inspect()
    return Reply(True, data, draw_dump(data))


COMMANDS: dict[str, Command] = {
    one.name: one
    for one in (
        Command("help", "[COMMAND]", "List the commands, or say what one does.", _help),
        Command("stop", "", "Stop the running turn and everything it started, now.", _stop, True),
        Command(
            "queue",
            QUEUE_USAGE,
            "Show what waits; change its words or order; hand it over, hold it, run it, save it.",
            queue_command,
        ),
        Command(
            "steer",
            "[@NAME|@parent] TEXT",
            "Say it to the running turn, or to the subagent it waits for, without stopping either.",
            steer_command,
            says="steer",
        ),
        Command(
            "agents",
            AGENTS_USAGE,
            "Show the subagents, or end one: at once, or after it has summed up.",
            agents_command,
        ),
        Command(
            "smalltalk",
            "TEXT",
            "Ask something beside the work, which goes on.",
            smalltalk_command,
            says="side_talk",
        ),
        Command(
            "answer",
            "ID allow|always [PATTERN]|deny [REASON]",
            "Answer the question of a tool call: once, for this session, or no, and why.",
            answer_command,
            True,
        ),
        Command(
            "permissions",
            PERMISSIONS_USAGE,
            "Show what runs without asking and by which rule; try a call; allow more, or ask again.",
            permissions_command,
        ),
        Command(
            "busy",
            "[interrupt|steer|queue]",
            "Say or choose what a message during a turn does.",
            busy_command,
        ),
        Command(
            "model",
            "[NAME]",
            "Say which model answers, and why; or have another one answer from the next call on.",
            model_command,
        ),
        Command(
            "routes",
            "[use NAME [--unsafe] | explain TEXT]",
            "Show or choose the routing table; say what a message would do.",
            routes_command,
        ),
        Command(
            "goal",
            GOAL_USAGE,
            "Work for something until a judge says it is done; see, pause, resume or drop it.",
            goal_command,
        ),
        Command("undo", "", "Let the last message wait in the queue instead.", undo_command),
        Command(
            "revert",
            REVERT_USAGE,
            "Stop, and give back the files that the turn changed; what others changed stays.",
            revert_command,
            True,
        ),
        Command("diff", "[TURN]", "Show what a turn changed.", diff_command),
        Command(
            "show",
            "[CALL|last]",
            "Show a tool call again, with its whole output; without an id list the last ones.",
            show_command,
        ),
        Command("receipts", "[ID]", "Tell what became of what was said.", receipts_command),
        Command(
            "limits",
            "[more]",
            "Show what the session may use; grant as much again.",
            limits_command,
        ),
        Command(
            "compact",
            "[WHAT MATTERS]",
            "Sum up the conversation so far, to make room in the model's window.",
            compact_command,
        ),
        Command(
            "usage",
            "",
            "Show what was used: tokens, time, and cost where prices are known.",
            usage_command,
        ),
        Command("inspect", "", "Show what every part of the session is doing.", _inspect),
        Command("history", "[N]", "Show the last messages of the conversation.", history_command),
        Command("rename", "NAME", "Call this session something.", rename_command),
        Command("resume", "[ID]", "List other sessions, or take one up instead.", resume_command),
        Command("export", "FILE", "Write the session as Markdown, or as JSON.", export_command),
        Command("finalize", "", "End this session for good, and leave.", finalize_command),
        Command("new", "", "End this session for good and begin another.", _new),
        Command("exit", "", "Save everything and leave.", _exit),
    )
}


def find(name: str) -> Command | None:
    """Return a command by its name, case aside."""
    return COMMANDS.get(name.lower())
