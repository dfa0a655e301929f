"""The routes of the HTTP interface; see docs/serving.md. Errors are `application/problem+json`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from itertools import groupby
from typing import Any, NamedTuple

import pykka
from msgspec import to_builtins
from pydantic import ValidationError
from sse_starlette import EventSourceResponse, JSONServerSentEvent
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from ...machines.catalogue import MACHINES
from ...machines.errors import SteersmanError, StoreBusy, UnknownSession
from ..commands.registry import call
from ..events.contract import AcceptedEvent, ReceiptEvent, ResultEvent
from ..follow import Batch
from ..session_info import SessionInfo
from ..wording.acknowledgement import not_accepted
from . import answers
from . import requests as ask
from .access import Access, Door, Scope
from .desk import Desk
from .openapi import TAKEN_IN, openapi
from .push import Push, Subscription

BEAT = 15
"""Seconds after which an idle stream sends a sign of life."""
PREFIX = "/api/v1"
LONGEST_NUMBER = 18
"""Digits that the number of an entry has at most."""

Handler = Callable[..., Any]
"""Returns the answer, whose type is its own in openapi.json, or a whole response.

It may block unless it is a coroutine. What it takes, it names: the `request`, a part of its path, the
`body`, the `query`, or a word of that.
"""
Receipt = AcceptedEvent | ResultEvent


class RequestRefused(Exception):
    """The session refuses a request: why, what to do next, and the receipt of a message."""

    def __init__(self, why: str, hint: str = "", **more: Any) -> None:
        super().__init__(why)
        self.answer = problem(409, why, hint, **more)


class Entry(NamedTuple):
    """A route: what it needs, and the handler, whose docstring says what it does."""

    method: str
    path: str
    scope: Scope
    handler: Handler
    body: type[ask.Body] | None = None
    query: type[ask.Query] | None = None
    status: int = 200


class Api:
    """The interface for programs, each request on behalf of a device."""

    def __init__(self, desk: Desk, access: Access, push: Push) -> None:
        self._desk = desk
        self._access = access
        self._push = push

    def table(self) -> list[Entry]:
        """Return every route below `PREFIX`, with the least scope and the body that it needs."""
        session, desk = "/sessions/{session}", self._desk
        item, question = f"{session}/queue/{{number:int}}", f"{session}/questions/{{question}}"
        return [
            Entry("GET", "/sessions", "look", desk.list_sessions, query=ask.Sessions),
            Entry("POST", "/sessions", "speak", self.open_session, ask.NewSession, status=201),
            Entry("GET", "/choices", "approve", desk.choices, query=ask.Where),
            Entry("GET", "/schedules", "look", desk.schedules),
            Entry("GET", session, "look", desk.show_session),
            Entry("POST", f"{session}/messages", "speak", self.say, ask.NewMessage),
            Entry("POST", f"{session}/commands", "speak", self.command, ask.NewCommand),
            Entry("GET", f"{session}/events", "look", self.events, query=ask.JournalPart),
            Entry("GET", f"{session}/queue", "look", desk.queue),
            Entry("PATCH", item, "speak", self.change_message, ask.ChangedMessage),
            Entry("DELETE", item, "speak", self.drop_message),
            Entry("PUT", f"{item}/edit", "speak", self.begin_edit, ask.Editing),
            Entry("DELETE", f"{item}/edit", "speak", self.end_edit, ask.Editing),
            Entry("POST", f"{item}/steer", "speak", self.steer_message),
            Entry("POST", f"{session}/queue/resume", "speak", self.resume_queue),
            Entry("POST", f"{session}/stop", "speak", self.stop),
            Entry("GET", f"{session}/inspect", "look", desk.inspect, query=ask.AtMoment),
            Entry("GET", f"{session}/sequence", "look", desk.sequence, query=ask.UpTo),
            Entry("GET", f"{session}/diff", "look", desk.compare, query=ask.Other),
            Entry("GET", f"{session}/why", "look", desk.why, query=ask.Named),
            Entry("GET", "/machines", "look", self.machines),
            Entry("GET", "/push", "approve", self.push_key),
            Entry("PUT", "/push", "approve", self.begin_push, ask.Browser),
            Entry("DELETE", "/push", "approve", self.end_push, ask.BrowserGone),
            Entry("POST", question, "approve", self.answer, ask.GivenAnswer),
        ]

    def routes(self) -> list[Route]:
        """Return the routes below `PREFIX`."""
        return [
            Route(entry.path, self._guarded(entry), methods=[entry.method])
            for entry in self.table()
        ]

    def _guarded(self, entry: Entry) -> Callable[[Request], Awaitable[Response]]:
        taken = inspect.signature(entry.handler).parameters

        async def guarded(request: Request) -> Response:
            request.state.device = await self._access.admit(request, entry.scope)
            given: dict[str, Any] = {"request": request, **request.path_params}
            try:
                if entry.query is not None:
                    query = entry.query.model_validate(dict(request.query_params))
                    given |= {"query": query, **dict(query)}
                if entry.body is not None:
                    given["body"] = entry.body.model_validate_json(await request.body())
                handle = partial(entry.handler, **{name: given[name] for name in taken})
                is_async = inspect.iscoroutinefunction(entry.handler)
                answer = await (handle() if is_async else asyncio.to_thread(handle))
            except ValidationError as error:
                first = error.errors()[0]
                place = ".".join(map(str, first["loc"]))
                raise HTTPException(
                    422, f"{place}: {first['msg']}" if place else first["msg"]
                ) from None
            except (ValueError, KeyError) as error:
                raise HTTPException(422, f"not a request: {error}") from None
            if isinstance(answer, Response):
                return answer
            data = to_builtins(answer)
            status = TAKEN_IN if data.get("type") == "accepted" else entry.status
            return JSONResponse(data, status)

        return guarded

    async def open_session(self, request: Request, body: ask.NewSession) -> SessionInfo:
        """Begin a session, or take one up, so that it runs here."""
        if not body.resume:  # it reads any folder, and may start another agent's program
            self._access.check_scope(request.state.device, "approve")
        if bool(body.folder) == bool(body.resume):
            raise HTTPException(422, "give either a `folder` or a session to `resume`")
        if body.resume and (body.agent or body.model):
            raise HTTPException(422, "a session keeps its agent; `/model` changes its model")
        return await asyncio.to_thread(self._desk.open, body.model_dump())

    async def say(self, request: Request, body: ask.NewMessage) -> Receipt:
        """Send a message; the answer is its receipt, and the message is durable then."""
        check = self._access.check_words  # takes a command apart, however long it is
        await asyncio.to_thread(check, request.state.device, body.text, body.said_as)
        said = {"text": body.text, "as": body.said_as}
        return await self._receipt(request, "say", said)

    async def command(self, request: Request, body: ask.NewCommand) -> Receipt:
        """Carry out a slash command that is sent as data."""
        self._access.check_command(request.state.device, call(body.name, body.arguments))
        return await self._command(request, body.name, **body.arguments)

    async def events(
        self, request: Request, session: str, query: ask.JournalPart
    ) -> answers.EventPage | EventSourceResponse:
        """Stream the events after an entry, or return those of the journal as one page."""
        newest = (await asyncio.to_thread(self._desk.show_session, session)).seq
        last = request.headers.get("last-event-id") or query.after or "0"
        is_number = last.isascii() and last.isdecimal() and len(last) <= LONGEST_NUMBER
        after = min(int(last), newest) if is_number else 0
        if query.upto is not None:
            upto = min(query.upto, after + ask.LARGEST_PAGE)
            page = await asyncio.to_thread(self._desk.page, session, after, upto)
            return answers.EventPage(events=page)
        source = self._frames(request, session, after)
        return EventSourceResponse(source, ping=BEAT, headers={"Cache-Control": "no-store"})

    async def _frames(
        self, request: Request, session: str, after: int
    ) -> AsyncIterator[JSONServerSentEvent]:
        async with aclosing(self._desk.batches(session, after)) as batches:
            async for batch in batches:
                if not self._access.is_paired(request.state.device.id):
                    return
                for frame in frames(batch):
                    yield JSONServerSentEvent(**frame)

    async def change_message(
        self, request: Request, number: int, body: ask.ChangedMessage
    ) -> Receipt:
        """Give a waiting message another text or another place."""
        if (body.text is None) == (body.position is None):
            raise HTTPException(422, "give either a `text` or a `position`")
        if body.text is None:
            return await self._command(request, "queue move", number=number, position=body.position)
        edit = {"name": "queue edit", "arguments": {"number": number, "text": body.text}}
        return await self._receipt(request, "command", edit, _editor(request, body))

    async def begin_edit(
        self, request: Request, session: str, number: int, body: ask.Editing
    ) -> answers.Done:
        """Keep a waiting message from starting for 30 seconds; repeat it while a person edits."""
        answer = await self._desk.edits.begin(session, number, _editor(request, body))
        if not answer["ok"]:
            raise RequestRefused(str(answer["reason"]))
        return answers.Done(ok=True)

    async def end_edit(self, request: Request, session: str, body: ask.Editing) -> answers.Done:
        """Let go of the message that is edited."""
        await self._desk.edits.end(session, _editor(request, body))
        return answers.Done(ok=True)

    async def drop_message(self, request: Request, number: int) -> Receipt:
        """Take a waiting message out of the queue."""
        return await self._command(request, "queue pop", number=number)

    async def steer_message(self, request: Request, number: int) -> Receipt:
        """Send a waiting message into the running turn."""
        return await self._command(request, "queue steer", number=number)

    async def resume_queue(self, request: Request) -> Receipt:
        """Let what waits or was interrupted run."""
        return await self._command(request, "queue resume")

    async def stop(self, request: Request) -> Receipt:
        """Stop the running turn and everything that it started."""
        return await self._command(request, "stop")

    async def machines(self) -> answers.MachineList:
        """Return the states of each machine by its name, in order."""
        known = {
            name: [answers.StateView(name=state.name, doc=state.doc) for state in machine.states]
            for name, machine in MACHINES.items()
        }
        return answers.MachineList(machines=known)

    def push_key(self) -> answers.PushKey:
        """Return the key with which a browser subscribes to its push service."""
        return answers.PushKey(key=self._push.key())

    def begin_push(self, request: Request, body: ask.Browser) -> answers.Done:
        """Tell a browser from now on when a question waits."""
        self._push.add(Subscription(request.state.device.id, **body.model_dump()))
        return answers.Done(ok=True)

    def end_push(self, body: ask.BrowserGone) -> answers.Done:
        """Tell a browser no more."""
        self._push.remove(body.endpoint)
        return answers.Done(ok=True)

    async def answer(self, request: Request, question: str, body: ask.GivenAnswer) -> Receipt:
        """Answer a question."""
        given: dict[str, Any] = {"id": question, "choice": body.choice, "reason": body.reason}
        if body.arguments is not None:
            given["arguments"] = body.arguments
        return await self._receipt(request, "answer", given)

    async def _command(self, request: Request, name: str, /, **arguments: Any) -> Receipt:
        return await self._receipt(request, "command", {"name": name, "arguments": arguments})

    async def _receipt(
        self, request: Request, method: str, params: dict[str, Any], editor: str = ""
    ) -> Receipt:
        """Send something to the session. Raises `RequestRefused`."""
        sender = {
            "client_id": request.headers.get("idempotency-key", ""),
            "user": request.state.device.name,
        }
        session = request.path_params["session"]
        given = {**params, **sender}
        receipt: ReceiptEvent = await self._desk.call(session, method, given, editor)
        if receipt["type"] == "rejected":
            raise RequestRefused(
                not_accepted(receipt["reason"]), receipt.get("hint", ""), receipt=receipt
            )
        if receipt["type"] == "result" and not receipt["ok"]:
            raise RequestRefused(receipt["text"] or "refused", receipt=receipt)
        return receipt


def frames(batch: Batch) -> list[dict[str, Any]]:
    """Return the events as server-sent events; the last one of an entry bears the entry's number."""
    found: list[dict[str, Any]] = []
    for seq, group in groupby(batch.events, key=lambda event: event["seq"]):
        told: list[dict[str, Any]] = [{"data": event} for event in group]
        if seq is not None and seq <= batch.confirmed:
            told[-1]["id"] = str(seq)
        found += told
    return found


def _editor(request: Request, body: ask.Editing | ask.ChangedMessage) -> str:
    return f"{request.state.device.id} {body.editor}"


def problem(status: int, detail: str, hint: str = "", **more: Any) -> Response:
    """Return an error as RFC 9457 describes it; `hint` says what to do next."""
    data = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    body = {**data, "detail": detail, **({"hint": hint} if hint else {}), **more}
    return JSONResponse(body, status, media_type="application/problem+json")


async def _explained(request: Request, error: Exception) -> Response:
    """Answer where a request failed; of a mistake of this program the traceback is in its log."""
    match error:
        case HTTPException():
            answer = problem(error.status_code, error.detail)
            answer.headers.update(error.headers or {})
            return answer
        case RequestRefused():
            return error.answer
        case SteersmanError():
            is_missing, is_busy = isinstance(error, UnknownSession), isinstance(error, StoreBusy)
            status = 404 if is_missing else 503 if is_busy else 409
            return problem(status, error.message, error.hint)
        case TimeoutError() | pykka.Timeout() | pykka.ActorDeadError():
            return problem(504, "the session did not answer in time", "try again")
        case _:
            return problem(500, "a mistake in steersman", "its log says more")


EXPLAINED = (
    *(HTTPException, RequestRefused, SteersmanError, TimeoutError),
    *(pykka.Timeout, pykka.ActorDeadError, Exception),
)


def application(desk: Desk, access: Access, push: Push, more: list[BaseRoute]) -> ASGIApp:
    """Return the whole application; `more` are the routes of the page."""
    api = Api(desk, access, push)

    async def describe(request: Request) -> Response:
        """Return the description of the interface."""
        return JSONResponse(openapi(PREFIX, api.table()))

    described = Route("/openapi.json", describe, methods=["GET"])
    app = Starlette(
        routes=[Mount(PREFIX, routes=api.routes()), *access.routes(), described, *more],
        exception_handlers=dict.fromkeys(EXPLAINED, _explained),
    )
    return Door(app, access)
