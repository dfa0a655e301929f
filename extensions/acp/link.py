"""What an editor is told and asked, in the version of the protocol that it speaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from acp.connection import Connection
from acp.schema import PermissionOption, ToolCallUpdate
from acp.utils import serialize_params
from pydantic import BaseModel

from ...ports.models.loose_json import table

Params = dict[str, Any]
REFUSED, UNKNOWN, WRONG = -32001, -32002, -32602
"""Errors that a person can read: it cannot be done now; there is no such thing; the request is wrong."""


class EditorLink:
    """Version 1. Every method raises `ConnectionError` once the editor has disconnected."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.fills: frozenset[str] = frozenset()
        """What it can have a person do for a server: fill in a `form`, look at a `url`."""

    async def tell(self, session: str, update: BaseModel | Params) -> None:
        """Send an update of a session."""
        about = serialize_params(update) if isinstance(update, BaseModel) else update
        params = {"sessionId": session, "update": about}
        await self._connection.send_notification("session/update", params)

    async def ask(
        self, session: str, call: ToolCallUpdate, options: Sequence[PermissionOption]
    ) -> str:
        """Ask whether a call may run; return the chosen option, empty if it was dismissed.

        Raises `RequestError` if the editor cannot ask.
        """
        about = self._asked(serialize_params(call))
        params = {
            "sessionId": session,
            **about,
            "options": [serialize_params(option) for option in options],
        }
        answer = await self._connection.send_request("session/request_permission", params)
        outcome = table(table(answer).get("outcome"))
        return str(outcome.get("optionId", "")) if outcome.get("outcome") == "selected" else ""

    def _asked(self, call: Params) -> Params:
        return {"toolCall": call}

    async def fill(self, session: str, question: str, form: Mapping[str, Any]) -> Params | None:
        """Have a form filled in, or an address looked at; none if the person did not want to.

        Raises `RequestError` if the editor cannot ask.
        """
        about: Params = {"sessionId": session, "message": f"{form['server']}: {form['message']}"}
        if "schema" in form:
            about |= {"mode": "form", "requestedSchema": form["schema"]}
        else:
            about |= {"mode": "url", "elicitationId": question, "url": form.get("address", "")}
        answer = table(await self._connection.send_request("elicitation/create", about))
        return table(answer.get("content")) if answer.get("action") == "accept" else None
