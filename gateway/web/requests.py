"""What clients of the HTTP interface send: bodies, and the words of the query."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

LARGEST_PAGE = 2_000
"""Entries that one page of events may cover."""
MOST_SESSIONS = 1_000
"""Sessions that one page of them may have."""
Number = Annotated[int, Field(ge=0, lt=2**63)]


class Query(BaseModel):
    """The words of a request's query; others are ignored."""


class Body(BaseModel):
    """What a client sends."""

    model_config = ConfigDict(extra="forbid")


class NewSession(Body):
    """A session to begin in a folder, or to take up (`resume`)."""

    folder: str = ""
    agent: str = ""
    model: str = ""
    resume: str = ""


class NewMessage(Body):
    """A message, as it would be typed; `as`: what it is to become, whatever its words."""

    text: Annotated[str, Field(min_length=1)]
    said_as: Literal["auto", "queue", "steer", "interrupt"] = Field("auto", alias="as")


class NewCommand(Body):
    """A slash command as data: docs/commands.md."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])


class ChangedMessage(Body):
    """A new text for a waiting message, or a new place in the queue, counted from 1.

    `editor` is the one that edits it, if one does; nobody else changes its text.
    """

    text: Annotated[str, Field(min_length=1)] | None = None
    position: Annotated[int, Field(ge=1)] | None = None
    editor: Annotated[str, Field(max_length=100)] = ""


class Browser(Body):
    """A browser's own subscription to its push service, as `PushSubscription.toJSON()` has it."""

    endpoint: Annotated[str, Field(max_length=2_000)]
    p256dh: Annotated[str, Field(max_length=200)]
    auth: Annotated[str, Field(max_length=100)]


class BrowserGone(Body):
    """The address of a browser that is not to be told any more."""

    endpoint: Annotated[str, Field(max_length=2_000)]


class Editing(Body):
    """Who edits: a name that the client chose, the same as long as it edits."""

    editor: Annotated[str, Field(min_length=1, max_length=100)]


class GivenAnswer(Body):
    """An answer: to a tool call's question allow, always or deny, to a step's its own options or text.

    To that of a call that is held allow, deny, answer with a `reason`, or change with other `arguments`.
    """

    choice: Annotated[str, Field(min_length=1)]
    reason: str = ""
    arguments: dict[str, Any] | None = None


class Sessions(Query):
    """Which sessions are listed: a page of those that fit every word that is given."""

    limit: int = Field(200, ge=1, le=MOST_SESSIONS, description="At most so many.")
    after: str = Field("", description="The `next` of the page before.")
    find: str = Field("", description="Part of the name, title, folder, id, agent or workflow.")
    folder: str = Field("", description="The folder, whole.")
    state: str = Field("", description="A state, as in the list.")


class Where(Query):
    """A folder in which a session may begin."""

    folder: str = Field("", description="The folder; the person's own if it is left out.")


class JournalPart(Query):
    """Which events are meant."""

    after: str = Field("", description="As `Last-Event-ID`, where no header can be sent.")
    upto: Number | None = Field(
        None, description="Return the events of the journal up to this entry as JSON instead."
    )


class AtMoment(Query):
    """A moment in a session's past."""

    at: str = Field(
        "", description="An entry's number, or a time as for the option `--at` of `inspect`."
    )


class UpTo(Query):
    """The newest entry that is looked at."""

    at: Number = Field(
        0, description="The number of the last entry that is looked at; 0: the newest."
    )


class Other(Query):
    """Another session of the home."""

    other: str = Field(description="Its id, or a unique prefix of one.")


class Named(Query):
    """A message of a session."""

    message: str = Field("last", description="Its number, id, receipt or client id, or `last`.")
