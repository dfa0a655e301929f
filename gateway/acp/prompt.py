"""The prompts that an editor waits for, and what each becomes.

A prompt is answered when its message is done: at the end of the turn that it began or entered, at once
where it only stopped something, and as cancelled when it was taken out of the queue or is held there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..events.contract import Event

__all__ = ["Outcome", "Prompts"]

StopReason = Literal["end_turn", "cancelled"]
ENDS: dict[str, StopReason] = {"completed": "end_turn", "interrupted": "cancelled"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a prompt ended: `fault` says why its turn failed, or why it was not taken in."""

    stop_reason: StopReason
    usage: Mapping[str, int] = field(default_factory=dict[str, int])
    fault: str = ""


@dataclass(slots=True)
class _Waiting:
    """One prompt: the queue item that it is, and the turn that took it in."""

    accepted: asyncio.Future[str]
    ended: asyncio.Future[Outcome]
    item: str = ""
    turn: str = ""

    def end(self, outcome: Outcome) -> None:
        if not self.ended.done():
            self.ended.set_result(outcome)


class Prompts:
    """One session's open prompts, by the key under which each was said. On one asyncio loop."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}
        self._turn = ""

    def expect(self, key: str) -> None:
        """Await what becomes of a message before it is said."""
        loop = asyncio.get_running_loop()
        self._waiting[key] = _Waiting(loop.create_future(), loop.create_future())

    async def accepted(self, key: str) -> str:
        """Return as what a message was taken in: turn, queue, steer …, or rejected."""
        return await self._waiting[key].accepted

    async def ended(self, key: str) -> Outcome:
        """Return how a message ended."""
        try:
            return await self._waiting[key].ended
        finally:
            self.forget(key)

    def forget(self, key: str) -> None:
        """Await it no more."""
        self._waiting.pop(key, None)

    def hear(self, event: Event) -> None:
        """Take in an event of the session itself."""
        match event["type"]:
            case "accepted" | "rejected":
                self._receipt(event)
            case "turn_started":
                self._turn = event["turn"]
            case "steered":
                for one in self._of_item(event["id"]):
                    one.turn = self._turn
            case "requeued":
                for one in self._of_item(event["id"]):
                    one.item, one.turn = event["item"], ""
            case "turn_ended":
                self._turn_ended(event)
            case "queue":
                self._look_at(event)
            case "session_suspended" | "session_finalized":
                for one in self._all():
                    one.end(Outcome("cancelled"))
            case _:
                pass

    def _receipt(self, event: Event) -> None:
        one = self._waiting.get(event["client_id"] or "")
        if one is None or one.accepted.done():
            return
        if event["type"] == "rejected":
            hint = f"; {event['hint']}" if event.get("hint") else ""
            one.end(Outcome("end_turn", fault=f"not taken in: {event['reason']}{hint}"))
            one.accepted.set_result("rejected")
            return
        one.accepted.set_result(event["as"])
        if event["number"] is None or event["as"] == "side_talk":
            one.end(Outcome("end_turn"))  # a stop, or a talk beside: nothing of its own to wait for
        else:
            one.item = event["id"]

    def _turn_ended(self, event: Event) -> None:
        self._turn = ""
        status = event["status"]
        fault = str(event.get("reason") or status) if status not in ENDS else ""
        outcome = Outcome(ENDS.get(status, "end_turn"), event["usage"], fault)
        for one in self._all():
            if event["item"] == one.item or event["turn"] == one.turn:
                one.end(outcome)

    def _look_at(self, event: Event) -> None:
        """Give up what left the queue without a turn, or is held in it with nothing running."""
        there = {one["id"] for one in event["items"]}
        for one in self._all():
            is_gone = one.item and not one.turn and one.item not in there
            if is_gone or (one.item and event.get("is_parked")):
                one.end(Outcome("cancelled"))

    def _of_item(self, item: str) -> list[_Waiting]:
        return [one for one in self._all() if one.item == item]

    def _all(self) -> list[_Waiting]:
        return list(self._waiting.values())
