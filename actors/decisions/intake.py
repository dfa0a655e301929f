"""Messages that enter a running turn, and those that the model hands back.

Pure: the texts that a boundary adds to the conversation, and the search for the message that a call
of `defer` means.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ...journal import entries as e
from ...journal.queue_record import ItemRecord, QueueRecord
from ...machines import protocol as m
from ...machines.conversation import ToolRequest
from ...machines.pattern import lazy_pattern
from .decision import Decision, answer
from .wording import words

HAND_BACK = "defer"
"""The tool by which a model gives a message back; the queue carries it out."""

LEAD = lazy_pattern(r"^\s*\[New message from [^\]\n]*\]\s*")


def taken_in(steers: Sequence[ItemRecord]) -> str:
    """Write the steers that enter together, in order, each under the name of its sender."""
    return "\n\n".join(words(steer, is_named=True) for steer in steers)


def handing_back(turn: str, epoch: int, step: int, request: ToolRequest) -> m.HandBack:
    """Ask the queue to carry out a call of `defer`."""
    given = request.arguments
    words, why = given.get("message") or "", given.get("why") or ""
    return m.HandBack(turn=turn, epoch=epoch, step=step, call=request.call, words=words, why=why)


def hand_back(record: QueueRecord, message: m.HandBack) -> Decision:
    """Find the message that is meant; the reply's `text` is what the model reads."""
    mine = _taken_in(record, message.turn)
    there = [item for item in mine if not item.deferred_to]
    found = _meant(there, message.words)
    if len(found) == 1:
        return _deferred(record, found[0], message)
    if not there:
        again = " any more: all were handed back already" if mine else ""
        return _no(f"no message that came during this turn can be handed back{again}")
    said = "; ".join(f"`{item.text.strip()[:60]}`" for item in there)
    which = "several messages begin" if found else "no message of this turn begins"
    problem = f"{which} like that" if message.words.strip() else "there are several messages"
    return _no(f"{problem}: say in `message` how the one that you mean begins. There are: {said}")


def _taken_in(record: QueueRecord, turn: str) -> list[ItemRecord]:
    return [
        item
        for item in record.items.values()
        if item.state == "steered" and item.turn == turn and not (item.child or item.for_children)
    ]


def can_hand_back(record: QueueRecord, turn: str) -> bool:
    """Whether a message that came during the turn is still with it."""
    return any(not item.deferred_to for item in _taken_in(record, turn))


def _meant(there: list[ItemRecord], words: str) -> list[ItemRecord]:
    """Return the messages that words name: exactly, else by their begin, else by a part."""
    wanted = _comparable(LEAD.sub("", words))
    if not wanted:
        return there
    texts = [(item, _comparable(item.text)) for item in there]
    for fits in (str.__eq__, str.startswith, str.__contains__):
        if found := [item for item, text in texts if fits(text, wanted)]:
            return found
    return []


def _comparable(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".…")


def _deferred(record: QueueRecord, item: ItemRecord, message: m.HandBack) -> Decision:
    """Make it the first of what waits, behind those that were handed back before it."""
    ahead = 0
    for waiting in record.waiting():
        if not waiting.deferred_from:
            break
        ahead += 1
    number, past_hold = record.number + 1, record.runs_past_hold()
    entry = e.Deferred(
        item=item.id,
        new_item=f"m{record.made + 1}",
        number=number,
        turn=message.turn,
        step=message.step,
        why=message.why,
        said=replace(item.said, client_id=""),
        position=ahead + 1,
        past_hold=past_hold,
    )
    is_held = record.state == "held" and not past_hold
    later = " once the person lets the queue go on" if is_held else ""
    text = f"Handed back. It waits as #{number} and is taken up after this turn{later}."
    return Decision(reply=answer(text=text), entries=(entry,))


def _no(reason: str) -> Decision:
    return Decision(reply={"ok": False, "text": f"[nothing was handed back: {reason}]"})
