"""The routes of the HTTP interface; see docs/serving.md. Errors are `application/problem+json`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from http import HTTPStatus
from typing import Annotated, Any, Literal, NamedTuple

import pykka
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sse_starlette import EventSourceResponse, JSONServerSentEvent
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from ...machines.catalogue import MACHINES
from ...machines.errors import SteersmanError, StoreBusy, UnknownSession
from ..commands.registry import call
from .access import Access, Scope
from .desk import Desk
from .stream import frames

BEAT = 15
"""Seconds after which an idle stream sends a sign of life."""
PREFIX = "/api/v1"
LONGEST_NUMBER = 18
"""Digits that the number of an entry has at most."""
LARGEST_PAGE = 2_000
"""Entries that one page of events may cover."""


class Body(BaseModel):
    """What a client sends; `needs` is the least scope for it where that of its route is not enough."""

    model_config = ConfigDict(extra="forbid")

    @property
    def needs(self) -> Scope:
        """The least scope."""
        return "look"


class NewSession(Body):
    """A session to begin in a folder, or to take up (`resume`)."""

    folder: str = ""
    agent: str = ""
    model: str = ""
    resume: str = ""

    @property
    def needs(self) -> Scope:
        """A new session reads any folder, and may start another agent's program."""
        return "speak" if self.resume else "approve"


class NewMessage(Body):
    """A message, as it would be typed; `as`: what it is to become, whatever its words."""

    text: Annotated[str, Field(min_length=1)]
    said_as: Annotated[
        Literal["auto", "queue", "steer", "interrupt"], Field(alias="as", default="auto")
    ]


class NewCommand(Body):
    """A slash command as data: docs/commands.md."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])


class ChangedMessage(Body):
    """A new text for a waiting message, or a new place in the queue, counted from 1."""

    text: Annotated[str, Field(min_length=1)] | None = None
    position: Annotated[int, Field(ge=1)] | None = None


class Editing(Body):
    """Who edits: a name that the client chose, the same as long as it edits."""

    editor: Annotated[str, Field(min_length=1, max_length=100)]


class GivenAnswer(Body):
    """An answer: to a tool call's question allow, always or deny, to a step's its own options or text."""

    choice: Annotated[str, Field(min_length=1)]
    reason: str = ""


Handler = Callable[[Request], Awaitable[Response]]


class Entry(NamedTuple):
    """A route: what it needs, and the handler, whose docstring says what it does."""

    method: str
    path: str
    scope: Scope
    handler: Handler
    body: type[Body] | None = None


class Api:
    """The interface for programs, each request on behalf of a device."""

    def __init__(self, desk: Desk, access: Access) -> None:
        self._desk = desk
        self._access = access

    def table(self) -> list[Entry]:
        """Return every route below `PREFIX`, with the least scope and the body that it needs."""
        session = "/sessions/{session}"
        item = f"{session}/queue/{{number:int}}"
        return [
            Entry("GET", "/sessions", "look", self.list_sessions),
            Entry("POST", "/sessions", "speak", self.open_session, NewSession),
            Entry("GET", "/schedules", "look", self.schedules),
            Entry("GET", session, "look", self.show_session),
            Entry("POST", f"{session}/messages", "speak", self.say, NewMessage),
            Entry("POST", f"{session}/commands", "speak", self.command, NewCommand),
            Entry("GET", f"{session}/events", "look", self.events),
            Entry("GET", f"{session}/queue", "look", self.queue),
            Entry("PATCH", item, "speak", self.change_message, ChangedMessage),
            Entry("DELETE", item, "speak", self.drop_message),
            Entry("PUT", f"{item}/edit", "speak", self.begin_edit, Editing),
            Entry("DELETE", f"{item}/edit", "speak", self.end_edit, Editing),
            Entry("POST", f"{item}/steer", "speak", self.steer_message),
            Entry("POST", f"{session}/queue/resume", "speak", self.resume_queue),
            Entry("POST", f"{session}/stop", "speak", self.stop),
            Entry("GET", f"{session}/inspect", "look", self.inspect),
            Entry("GET", f"{session}/sequence", "look", self.sequence),
            Entry("GET", f"{session}/why", "look", self.why),
            Entry("GET", "/machines", "look", self.machines),
            Entry("POST", f"{session}/questions/{{question}}", "approve", self.answer, GivenAnswer),
        ]

    def routes(self) -> list[Route]:
        """Return the routes below `PREFIX`."""
        return [
            Route(entry.path, self._guarded(entry), methods=[entry.method])
            for entry in self.table()
        ]

    def _guarded(self, entry: Entry) -> Handler:
        async def guarded(request: Request) -> Response:
            request.state.device = await self._access.admit(request, entry.scope)
            try:
                if entry.body is not None:
                    body = entry.body.model_validate_json(await request.body())
                    self._access.check_scope(request.state.device, body.needs)
                    request.state.body = body
                return await entry.handler(request)
            except ValidationError as error:
                first = error.errors()[0]
                place = ".".join(map(str, first["loc"]))
                raise HTTPException(
                    422, f"{place}: {first['msg']}" if place else first["msg"]
                ) from None
            except (ValueError, KeyError) as error:
                raise HTTPException(422, f"not a request: {error}") from None

        return guarded

    async def list_sessions(self, request: Request) -> Response:
        """List the sessions of the home, the newest first."""
        return JSONResponse({"sessions": await self._desk.sessions()})

    async def schedules(self, request: Request) -> Response:
        """List the schedules: when each happens next, what came of it last, and what it said."""
        return JSONResponse({"schedules": await self._desk.schedules()})

    async def open_session(self, request: Request) -> Response:
        """Begin a session, or take one up, so that it runs here."""
        body: NewSession = request.state.body
        if bool(body.folder) == bool(body.resume):
            raise HTTPException(422, "give either a `folder` or a session to `resume`")
        if body.resume and (body.agent or body.model):
            raise HTTPException(422, "a session keeps its agent; `/model` changes its model")
        return JSONResponse(await self._desk.open(body.model_dump()), 201)

    async def show_session(self, request: Request) -> Response:
        """Describe a session."""
        return JSONResponse(await self._desk.session(_session(request)))

    async def say(self, request: Request) -> Response:
        """Send a message; the answer is its receipt, and the message is durable then."""
        body: NewMessage = request.state.body
        check = self._access.check_words  # takes a command apart, however long it is
        await asyncio.to_thread(check, request.state.device, body.text, body.said_as)
        said = {"text": body.text, "as": body.said_as}
        return await self._receipt(request, "say", said)

    async def command(self, request: Request) -> Response:
        """Carry out a slash command that is sent as data."""
        body: NewCommand = request.state.body
        self._access.check_command(request.state.device, call(body.name, body.arguments))
        return await self._command(request, body.name, **body.arguments)

    async def events(self, request: Request) -> Response:
        """Stream the events after an entry, or return those of the journal as one page."""
        session, given = _session(request), request.query_params
        newest: int = (await self._desk.session(session))["seq"]
        last = request.headers.get("last-event-id") or given.get("after") or "0"
        is_number = last.isascii() and last.isdecimal() and len(last) <= LONGEST_NUMBER
        after = min(int(last), newest) if is_number else 0
        if "upto" in given:
            upto = min(int(given["upto"]), after + LARGEST_PAGE)
            return JSONResponse({"events": await self._desk.page(session, after, upto)})
        source = self._frames(request, session, after)
        return EventSourceResponse(source, ping=BEAT, headers={"Cache-Control": "no-store"})

    async def _frames(
        self, request: Request, session: str, after: int
    ) -> AsyncIterator[JSONServerSentEvent]:
        async with aclosing(self._desk.batches(session, after)) as batches:
            async for batch in batches:
                if not self._access.is_admitted(request.state.device):
                    return
                for frame in frames(batch):
                    yield JSONServerSentEvent(**frame)

    async def queue(self, request: Request) -> Response:
        """Return the queue."""
        return JSONResponse(await self._desk.queue(_session(request)))

    async def change_message(self, request: Request) -> Response:
        """Give a waiting message another text or another place."""
        body: ChangedMessage = request.state.body
        number: int = request.path_params["number"]
        if (body.text is None) == (body.position is None):
            raise HTTPException(422, "give either a `text` or a `position`")
        if body.text is not None:
            return await self._command(request, "queue edit", number=number, text=body.text)
        return await self._command(request, "queue move", number=number, position=body.position)

    async def begin_edit(self, request: Request) -> Response:
        """Keep a waiting message from starting for 30 seconds; repeat it while a person edits."""
        number: int = request.path_params["number"]
        answer = await self._desk.begin_edit(_session(request), number, _editor(request))
        return JSONResponse(answer) if answer["ok"] else problem(409, str(answer["reason"]))

    async def end_edit(self, request: Request) -> Response:
        """Let go of the message that is edited."""
        await self._desk.end_edit(_session(request), _editor(request))
        return JSONResponse({"ok": True})

    async def drop_message(self, request: Request) -> Response:
        """Take a waiting message out of the queue."""
        return await self._command(request, "queue pop", number=request.path_params["number"])

    async def steer_message(self, request: Request) -> Response:
        """Send a waiting message into the running turn."""
        return await self._command(request, "queue steer", number=request.path_params["number"])

    async def resume_queue(self, request: Request) -> Response:
        """Let what waits or was interrupted run."""
        return await self._command(request, "queue resume")

    async def stop(self, request: Request) -> Response:
        """Stop the running turn and everything that it started."""
        return await self._command(request, "stop")

    async def inspect(self, request: Request) -> Response:
        """Return the state of every part, now or at a moment."""
        at = request.query_params.get("at", "")
        return JSONResponse(await self._desk.inspect(_session(request), at))

    async def sequence(self, request: Request) -> Response:
        """Return the messages of the last turn up to an entry, as Mermaid text."""
        at = request.query_params.get("at", "0")
        return PlainTextResponse(await self._desk.sequence(_session(request), int(at)))

    async def why(self, request: Request) -> Response:
        """Return the history of a message, by its number, id or client id, and where it stands."""
        message = request.query_params.get("message", "last")
        return JSONResponse(await self._desk.why(_session(request), message))

    async def machines(self, request: Request) -> Response:
        """Return the states of each machine by its name, in order."""
        known = {
            name: [{"name": state.name, "doc": state.doc} for state in machine.states]
            for name, machine in MACHINES.items()
        }
        return JSONResponse({"machines": known})

    async def answer(self, request: Request) -> Response:
        """Answer a question."""
        body: GivenAnswer = request.state.body
        given = {
            "id": request.path_params["question"],
            "choice": body.choice,
            "reason": body.reason,
        }
        return await self._receipt(request, "answer", given)

    async def _command(self, request: Request, name: str, /, **arguments: Any) -> Response:
        return await self._receipt(request, "command", {"name": name, "arguments": arguments})

    async def _receipt(self, request: Request, method: str, params: dict[str, Any]) -> Response:
        sender = {
            "client_id": request.headers.get("idempotency-key", ""),
            "user": request.state.device.name,
        }
        receipt = await self._desk.call(_session(request), method, {**params, **sender})
        is_refused = receipt["type"] == "rejected" or receipt.get("ok") is False
        if is_refused:
            reason = str(receipt.get("reason") or receipt.get("text") or "refused")
            return problem(409, reason, str(receipt.get("hint", "")), receipt=receipt)
        return JSONResponse(receipt, 200 if receipt["type"] == "result" else 202)


def _session(request: Request) -> str:
    return str(request.path_params["session"])


def _editor(request: Request) -> str:
    body: Editing = request.state.body
    return f"{request.state.device.id} {body.editor}"


def problem(status: int, detail: str, hint: str = "", **more: Any) -> Response:
    """Return an error as RFC 9457 describes it; `hint` says what to do next."""
    data = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    body = {**data, "detail": detail, **({"hint": hint} if hint else {}), **more}
    return JSONResponse(body, status, media_type="application/problem+json")


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = problem(error.status_code, error.detail)
    answer.headers.update(error.headers or {})
    return answer


async def _on_fault(request: Request, error: Exception) -> Response:
    if isinstance(error, SteersmanError):
        is_missing, is_busy = isinstance(error, UnknownSession), isinstance(error, StoreBusy)
        status = 404 if is_missing else 503 if is_busy else 409
        return problem(status, error.message, error.hint)
    return problem(504, "the session did not answer in time", "try again")


async def _on_mistake(request: Request, error: Exception) -> Response:
    """Answer where this program is wrong; the traceback is in its log."""
    return problem(500, "a mistake in steersman", "its log says more")


def openapi(api: Api) -> dict[str, Any]:
    """Describe the interface as OpenAPI 3.1 does."""
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {}
    error = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for entry in api.table():
        path = PREFIX + entry.path.replace(":int", "")
        described: dict[str, Any] = {
            "operationId": entry.handler.__name__,
            "summary": (entry.handler.__doc__ or "").strip().partition("\n")[0],
            "description": f"Needs the scope `{entry.scope}`.",
            "parameters": [*_in_path(entry.path), *_PARAMETERS.get(entry.handler.__name__, ())],
            "responses": {
                "2XX": {"description": "Done, or taken in.", "content": _content(entry)},
                "default": {"description": "Why not, and what to do.", "content": error},
            },
        }
        if entry.body is not None:
            name = entry.body.__name__
            schemas[name] = entry.body.model_json_schema(
                ref_template="#/components/schemas/{model}"
            )
            reference = {"schema": {"$ref": f"#/components/schemas/{name}"}}
            described["requestBody"] = {
                "required": True,
                "content": {"application/json": reference},
            }
        paths.setdefault(path, {})[entry.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "steersman", "version": "1"},
        "paths": paths,
        "security": [{"device": []}],
        "components": {
            "schemas": {**schemas, "Problem": _PROBLEM},
            "securitySchemes": {"device": {"type": "http", "scheme": "bearer"}},
        },
    }


_PROBLEM = {
    "type": "object",
    "required": ["type", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "hint": {"type": "string", "description": "What to do next."},
        "receipt": {"type": "object", "description": "Of a refusal: the event of docs/events.md."},
    },
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same key again is the same message.",
    "schema": {"type": "string"},
}
_PARAMETERS: dict[str, tuple[dict[str, Any], ...]] = {
    "say": (_KEY,),
    "command": (_KEY,),
    "events": (
        {
            "name": "Last-Event-ID",
            "in": "header",
            "description": "The number of the journal entry after which the stream begins.",
            "schema": {"type": "integer"},
        },
        {
            "name": "after",
            "in": "query",
            "description": "The same, where no header can be sent.",
            "schema": {"type": "integer"},
        },
        {
            "name": "upto",
            "in": "query",
            "description": "Return the events of the journal up to this entry as JSON instead.",
            "schema": {"type": "integer"},
        },
    ),
    "inspect": (
        {
            "name": "at",
            "in": "query",
            "description": "An entry's number, or a time as for the option `--at` of `inspect`.",
            "schema": {"type": "string"},
        },
    ),
    "sequence": (
        {
            "name": "at",
            "in": "query",
            "description": "The number of the last entry that is looked at.",
            "schema": {"type": "integer"},
        },
    ),
}


def _in_path(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer" if kind else "string"},
        }
        for name, kind in re.findall(r"{(\w+)(:int)?}", path)
    ]


def _content(entry: Entry) -> dict[str, Any]:
    kinds = {"events": ["text/event-stream", "application/json"], "sequence": ["text/plain"]}
    return {kind: {} for kind in kinds.get(entry.handler.__name__, ["application/json"])}


def application(desk: Desk, access: Access, more: list[Route | Mount]) -> ASGIApp:
    """Return the whole application; `more` are the routes of the page."""
    api = Api(desk, access)

    async def describe(request: Request) -> Response:
        """Return the description of the interface."""
        return JSONResponse(openapi(api))

    described = Route("/openapi.json", describe, methods=["GET"])
    app = Starlette(
        routes=[Mount(PREFIX, routes=api.routes()), *access.routes(), described, *more],
        exception_handlers={
            HTTPException: _on_http,
            SteersmanError: _on_fault,
            TimeoutError: _on_fault,
            pykka.Timeout: _on_fault,
            pykka.ActorDeadError: _on_fault,
            Exception: _on_mistake,
        },
    )
    return access.guarded(app)
