"""The commands by which a person takes part in a running turn, and follows what became of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from ...actors.decisions.standing import policy_of
from ...machines.messages import Interrupt, PolicyChange, QueueChange, TakeBack
from ...machines.policy import Policy
from .reply import Reply

if TYPE_CHECKING:
    from ..conversation import Conversation


BusyMode = Literal["interrupt", "steer", "queue"]
MODES: dict[str, BusyMode] = {"interrupt": "interrupt", "steer": "steer", "queue": "queue"}
LAST = 10_000
"""A position behind whatever waits."""

BECAME = {"pending": "waiting", "steered": "taken in"}


def steer_command(conversation: Conversation, argument: str) -> Reply:
    """Say what is missing; with a text it is no command but a message."""
    return Reply(False, text="Steer by what? /steer TEXT")


def busy_command(conversation: Conversation, argument: str) -> Reply:
    """Say what a message during a turn does, or choose it; it stays so for this session."""
    if not argument.strip():
        return _busy_mode(conversation)
    mode = MODES.get(argument.strip().lower())
    if mode is None:
        return Reply(False, text=f"`/busy {argument}`: it is one of {', '.join(MODES)}.")
    answer = conversation.ask(PolicyChange(busy_mode=mode))
    is_ok = bool(answer.get("ok", True))
    said = f"A message during a turn now follows `{mode}`."
    data = {**answer, "busy_input_mode": mode}
    return Reply(is_ok, data, said if is_ok else str(answer.get("reason")))


def _busy_mode(conversation: Conversation) -> Reply:
    live = conversation.runtime.sessions.get(conversation.session)
    policy = policy_of(conversation.record(), live.environment.policy if live else Policy())
    said = f"A message during a turn follows `{policy.busy_mode}`. There are: {', '.join(MODES)}."
    return Reply(True, {"ok": True, "busy_input_mode": policy.busy_mode}, said)


def undo_command(conversation: Conversation, argument: str) -> Reply:
    """Take back how the last message was read: it waits in the queue instead.

    One that stopped a turn and runs already is stopped in turn, and goes behind what it displaced.
    """
    answer = conversation.ask(TakeBack())
    if not answer.get("ok"):
        return Reply(False, answer, f"{answer.get('reason', 'There is nothing to take back')}.")
    if key := answer.pop("key", ""):
        item = conversation.item_of(key)
        answer["number"] = item.number if item else None
        if item is None:
            return Reply(False, answer, "The queue has no room for it.")
    said = f"Taken back: #{answer['number']} waits in the queue."
    if turn := answer.get("stop"):
        conversation.ask(Interrupt("stop", turn))
        conversation.ask(QueueChange("move", answer["number"], position=LAST))
        said = f"Taken back: #{answer['number']} was stopped, too, and waits in the queue."
    if answer.get("offered"):
        said += f"\n#{answer['offered']} was stopped already: /queue resume goes on with it."
    return Reply(True, answer, said)


def receipts_command(conversation: Conversation, argument: str) -> Reply:
    """Tell what became of each message and interrupt, or of the one with an id."""
    record = conversation.record()
    said = {"items": asdict(record.queue)["items"]}
    said["interrupts"] = {one.id: asdict(one) for one in record.interrupts.values()}
    found = receipts(conversation.redacted(said))
    name = argument.strip()
    if name:
        found = [one for one in found if name in (one["id"], f"#{one.get('number')}")]
        if not found:
            return Reply(False, {"receipts": []}, f"No receipt `{name}`. /receipts lists them.")
    lines = [_line(one) for one in found]
    return Reply(True, {"receipts": found}, "\n".join(lines) or "Nothing was said yet.")


def receipts(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Read the receipts off a session's `items` and `interrupts`, in this order."""
    return [
        *(_of_item(one) for one in data["items"].values()),
        *(_of_cancel(one) for one in data["interrupts"].values()),
    ]


def _of_item(item: dict[str, Any]) -> dict[str, Any]:
    state = item.get("state", "pending")
    became = item.get("deferred_to") or None
    return {
        "id": item["id"],
        "kind": "message",
        "number": item["number"],
        "state": "handed back" if became else BECAME.get(state, state),
        "became": became,
        "turn": item.get("turn") or item.get("for_turn") or None,
        "step": item.get("step") or None,
        "why": item.get("why") or None,
        "text": item["text"],
    }


def _of_cancel(cancel: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": cancel["id"],
        "kind": "interrupt",
        "state": cancel.get("state", "stopping"),
        "turn": cancel["turn"],
        "cause": cancel["cause"],
        "matched": cancel.get("matched") or None,
        "text": cancel.get("text", ""),
        "told": [cancel["turn"], *cancel.get("told", ())],
        "killed": list(cancel.get("killed", ())),
        "survivors": list(cancel.get("survivors", ())),
        "checkpoint": cancel.get("checkpoint"),
        "kept": list(cancel.get("kept", ())),
    }


def _line(receipt: dict[str, Any]) -> str:
    """Write a receipt as one line for people."""
    if receipt["kind"] == "message":
        at = f" ({receipt['turn']}" if receipt["turn"] else ""
        at += f", step {receipt['step']}" if receipt["step"] else ""
        at += ")" if at else ""
        at += f", waits as {receipt['became']}" if receipt["became"] else ""
        why = f": {receipt['why']}" if receipt["why"] else ""
        return (
            f"{receipt['id']} #{receipt['number']} {receipt['state']}{at}{why}  {receipt['text']}"
        )
    killed = f", killed {len(receipt['killed'])}" if receipt["killed"] else ""
    left = f", left {receipt['survivors']}" if receipt["survivors"] else ""
    told = ", ".join(receipt["told"])
    kept = f", kept {len(receipt['kept'])}" if receipt["kept"] else ""
    return (
        f"{receipt['id']} {receipt['state']} ({receipt['cause']}): told {told}{killed}{left}{kept}"
    )
