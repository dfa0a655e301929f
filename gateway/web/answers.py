"""What the HTTP interface answers, beside events and receipts: the types of openapi.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from msgspec import Meta

from ..events.contract import Event, QueueView
from ..session_info import SessionInfo
from ..views.comparison import SessionStep
from ..views.schedule_view import ScheduleNow

if TYPE_CHECKING:
    OneEvent = Event
else:  # what derives a schema takes no union of dictionaries: it refers to that of the union
    OneEvent = Annotated[Any, Meta(extra_json_schema={"$ref": "#/components/schemas/Event"})]


class SessionPage(TypedDict):
    """Sessions, the newest first; `next` continues the list (`after`), null at its end."""

    sessions: list[SessionInfo]
    next: str | None


class SessionChoices(TypedDict):
    """What a new session in a folder can be of; `agent` is the one that is configured."""

    agent: str
    agents: list[str]
    models: list[str]


class SessionQueue(QueueView):
    """The queue of a session."""

    session: str


class EventPage(TypedDict):
    """Events of the journal, the oldest first."""

    events: list[OneEvent]


class StateView(TypedDict):
    """A state of a machine."""

    name: str
    doc: str


class MachineList(TypedDict):
    """The states of each machine by its name, in order."""

    machines: dict[str, list[StateView]]


class ScheduleList(TypedDict):
    """The schedules of the person whose home it is."""

    schedules: list[ScheduleNow]


class ComparedSessions(TypedDict):
    """Two sessions side by side; the first `common` steps are the same, `facts` are name and values."""

    sessions: tuple[str, str]
    common: int
    is_same: bool
    steps: tuple[list[SessionStep], list[SessionStep]]
    facts: list[tuple[str, str, str]]


class PushKey(TypedDict):
    """The public key with which a browser subscribes; empty where push is not installed."""

    key: str


class Done(TypedDict):
    """It is done."""

    ok: bool
