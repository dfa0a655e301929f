"""Which routing tables a session goes by, and what they would do with a message."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..actors.decisions.standing import policy_of
from ..journal.codec import decode
from ..journal.record import SessionRecord
from ..machines.errors import SteersmanError
from ..machines.messages import PolicyChange
from ..machines.policy import Policy, RoutesChoice
from ..machines.routes import Routes
from ..machines.words import Words
from ..workflows.routing import refusals, routes_for
from ..workflows.settings import Settings
from ..workflows.spelling import table_names
from .commands.reply import Reply
from .events.contract import Event
from .explaining import as_said, draw_explanation, explanation, state_of

if TYPE_CHECKING:
    from .conversation import Conversation


# The event bus of one process: sessions publish, faces subscribe ----------------------------------


Listener = Callable[[Event], None]
"""Called on the loop's thread for each event: must hand it on at once and not block."""


class Hub:
    """Hands every event of every session to every listener, in order."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self._lock = threading.Lock()

    def publish(self, event: Event) -> None:
        """Tell all listeners."""
        for listener in self._listeners:
            listener(event)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener and return how to take it away again."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def leave() -> None:
            with self._lock:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        return leave


USAGE = "/routes [use NAME [--unsafe] | explain TEXT]"


class Router:
    """What a process knows of routing: its configuration and its words."""

    def __init__(self, settings: Settings, words: Words) -> None:
        self._settings = settings
        self.words = words

    def routes(self, choice: RoutesChoice | None) -> tuple[Routes, str]:
        """Return the tables of a session that chose so, and what its start has to say of them."""
        return routes_for(self._settings, choice)


def routes_command(conversation: Conversation, argument: str) -> Reply:
    """Say which tables the session goes by, choose others, or dry-run a message."""
    verb, _, rest = argument.strip().partition(" ")
    if conversation.router is None:
        return Reply(False, text="Routing tables are not known here.")
    match verb:
        case "":
            return _current(conversation, conversation.router)
        case "use":
            return _use(conversation, conversation.router, rest.split())
        case "explain" if rest.strip():
            return _explain(conversation, conversation.router, rest.strip())
        case _:
            return Reply(False, text=USAGE)


def _record(conversation: Conversation) -> SessionRecord:
    return decode(SessionRecord, conversation.runtime.inspect(conversation.session))


def _current(conversation: Conversation, router: Router) -> Reply:
    record = _record(conversation)
    routes, notice = router.routes(record.routes)
    by = "this session" if record.routes else "the configuration"
    text = f"The routing table is `{routes.name}`, by {by}. {routes.doc}"
    data = {"table": routes.name, "is_chosen": record.routes is not None, "notice": notice}
    return Reply(True, data, f"{text}\n{notice}".rstrip())


def _use(conversation: Conversation, router: Router, words: list[str]) -> Reply:
    may_be_unsafe = "--unsafe" in words
    names = [one for one in words if one != "--unsafe"]
    if len(names) != 1 or names[0] not in table_names():
        return Reply(False, text=f"Use which table? {', '.join(table_names())}.")
    (name,) = names
    choice = RoutesChoice(name, may_be_unsafe)
    if not may_be_unsafe and (faults := refusals(name)):
        why = "\n".join(f"  {one.message}" for one in faults)
        said = f"Table `{name}` breaks safety rules, and is used only with --unsafe:\n{why}"
        return Reply(False, {"table": name, "faults": [one.message for one in faults]}, said)
    try:
        routes, notice = router.routes(choice)
    except SteersmanError as error:
        return Reply(False, text=str(error))
    answer = conversation.ask(PolicyChange(routes=choice))
    if not answer.get("ok", True):
        return Reply(False, answer, str(answer.get("reason")))
    conversation.runtime.reroute(conversation.session, routes)
    said = f"This session goes by the routing table `{name}` from now on. {routes.doc}"
    return Reply(True, {"ok": True, "table": name}, f"{said}\n{notice}".rstrip())


def _explain(conversation: Conversation, router: Router, text: str) -> Reply:
    record = _record(conversation)
    live = conversation.runtime.sessions.get(conversation.session)
    policy = policy_of(record, live.environment.policy if live else Policy())
    routes, _ = router.routes(record.routes)
    found, to, _ = as_said(text, "auto", conversation.classify)
    doing, company = state_of(record)
    data = explanation(routes, text, found, doing, policy, company, to)
    return Reply(True, data, draw_explanation(data))
