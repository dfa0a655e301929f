"""What a person types: a message, a word that stops or steers, or a slash command, which is carried out.

Which it is, is decided by a pure function of the text, before anything enters a mailbox.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..machines import protocol as m
from ..machines.classification import TYPES, Classification, Keywords, classify
from ..machines.disposition import Intent
from ..machines.errors import UnknownSession, UsageError
from ..machines.people import Deed, objection
from .events.contract import ResultEvent
from .speaker import speaker
from .wording.acknowledgement import accepted

if TYPE_CHECKING:
    from .client import SessionClient
    from .commands.command import CommandCall, Reply

_NO_ANSWERS = {
    Intent.COMMAND,
    Intent.INTERRUPT_BARE,
    Intent.REVERT,
    Intent.EXPLICIT_STEER,
    Intent.EXPLICIT_INTERRUPT,
}
_WITH_WORDS = ("talk", "goal")
"""Groups of commands whose text a person wrote for an agent: it is given back where one is refused."""


class CommandNames(Container[str]):
    """The names of all slash commands, which are imported when a text begins like one of them."""

    def __contains__(self, name: object) -> bool:
        from .commands.registry import NAMES

        return name in NAMES


NAMES = CommandNames()


ELSEWHERE = {
    **dict.fromkeys(("approvals", "allowed-tools"), "permissions"),
    **dict.fromkeys(("clear", "reset"), "new"),
    **dict.fromkeys(("cost", "stats", "tokens"), "usage"),
    **dict.fromkeys(("edit", "resend"), "edit-last"),
    **dict.fromkeys(("rewind", "restore"), "revert"),
    **dict.fromkeys(("sessions", "continue"), "resume"),
    **dict.fromkeys(("bye", "q"), "exit"),
    **dict.fromkeys(("btw", "aside", "ask"), "smalltalk"),
    **dict.fromkeys(("abort", "cancel"), "stop"),
    **dict.fromkeys(("tasks", "jobs", "bg", "background"), "agents"),
    **dict.fromkeys(("log", "transcript"), "history"),
    **dict.fromkeys(("name", "title"), "rename"),
    **{"plan": "mode plan", "run": "shell", "status": "context", "models": "model"},
    **{"pause": "queue hold", "drop": "queue pop", "redo": "revert undo", "commands": "help"},
}
"""What other agents call a command, and its name here."""


class TextReader:
    """Reads what people type, by the `words` of the configuration."""

    def __init__(self, words: Keywords) -> None:
        self._words = words

    def classify(self, text: str, explicit: str = "auto") -> Classification:
        """Say what a text is, without saying it."""
        return classify(text, self._words, explicit, NAMES)

    def is_urgent(self, text: str) -> bool:
        """Whether a text stops something, so that it does not wait for what was said before it."""
        found = self.classify(text)
        if found.intent is Intent.COMMAND:
            from .commands.registry import NAMES

            return NAMES[found.command].is_urgent
        return TYPES.get(found.intent) == "interrupt"

    def would_stop(self, text: str) -> bool:
        """Whether a text is a command, or says to stop, rather than something to talk about."""
        intent = self.classify(text).intent
        return intent is Intent.COMMAND or TYPES.get(intent) == "interrupt"

    def is_answer(self, text: str) -> bool:
        """Whether a text answers a question of any text: no command, and not only words to stop."""
        return self.classify(text).intent not in _NO_ANSWERS

    def nearest_command(self, text: str) -> str:
        """Say which command was probably meant."""
        from difflib import get_close_matches

        from .commands.registry import NAMES

        typed = text.split()[0].lstrip("/").lower()
        near = [ELSEWHERE[typed]] if typed in ELSEWHERE else get_close_matches(typed, NAMES, 1)
        meant = f"did you mean `/{near[0]}`? " if near else ""
        return f"{meant}`/help` lists the commands; begin with a space to send it to the agent"


def obey(client: SessionClient, name: str, call: CommandCall | UsageError, client_id: str) -> Reply:
    """Carry a command out, or report its fault, as events and as the reply to its sender."""
    receipt = f"c{next(client.numbers)}"
    taken = accepted(
        client.publisher.stamp(),
        id=receipt,
        said=m.Said(text="", client_id=client_id),
        routed=m.Routed(said_as="command", matched=f"/{name}", rule="command"),
        has_words=False,
    )
    client.publisher.publish(taken)
    from .commands.command import Reply

    why = call.message if isinstance(call, UsageError) else _refusal(call)
    if why or isinstance(call, UsageError):
        reply = Reply(ok=False, data={"ok": False, "reason": why}, text=why)
    else:
        reply = _reply(client, call)
    result = ResultEvent(
        type="result",
        **client.publisher.stamp(),
        id=receipt,
        client_id=client_id or None,
        name=name,
        ok=reply.ok,
        data=reply.data,
        text=reply.text,
    )
    if reply.ok and reply.news:
        result["news"] = reply.news
    client.publisher.publish(result)
    return reply


def _refusal(call: CommandCall) -> str:
    """Say why who speaks may not give a command; empty if they may."""
    by = speaker()
    if by.may is None:
        return ""
    from .commands.registry import needing_approval

    what = needing_approval(call)
    why = objection(by.may, Deed.APPROVE if what else Deed.SPEAK, by.user, "")
    return f"{what or 'this'} is refused: {why}" if why else ""


def _reply(client: SessionClient, call: CommandCall) -> Reply:
    from .commands.command import Reply

    is_urgent = call.command.is_urgent
    try:
        if not is_urgent and client.is_open:
            client.record()  # what was said before is done
        reply = call.run(client)
    except UnknownSession:
        over = f"Session {client.session} is finalized. /new starts another, /exit leaves."
        reply = Reply(ok=False, text=over)
    if not is_urgent:
        client.settle()  # what it changed is on disk before anybody reads that it is
    said = call.arguments.get("text") if call.command.group in _WITH_WORDS else ""
    if said and not reply.ok and said not in reply.text:
        reply = replace(reply, text=f"{reply.text}\nYour text: {said}")
    return reply
