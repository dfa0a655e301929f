"""The story of one message: every journal entry that concerns it, where it stands, and why.

The story is found by reading the journal from the entry that accepted the message. An entry belongs to
the story if it names the message, the turn that runs it or received it as a steer, or the interrupt that
the message is; and, as long as the message waits, if it changes what the message waits for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NotRequired, TypedDict

from msgspec import Struct, field

from ...journal.history import record_at, seq_at
from ...journal.queue_record import ItemRecord
from ...journal.record import CancelRecord, SessionRecord
from ...journal.store import SessionRow, Store, StoredEntry
from ...journal.turn_record import TurnRecord
from ...machines.disposition import DEFAULT_DISPOSITIONS
from ...machines.errors import UsageError
from ...machines.lifecycles import ITEM, TURN
from ...machines.protocol import exit_words
from ..wording.formats import iso, one_line, plain_words
from ..wording.redaction import Redactor
from .trace import Trace

# Entries as sentences -----------------------------------------------------------------------------


_WHY = {row.name: row.doc for row in DEFAULT_DISPOSITIONS.rows}
_PLAIN = {
    "model_called": "the model was asked, step {step}",
    "answer_grew": "part of the answer was kept",
    "answer_cut": "the answer was cut off, so that a steer enters at once",
    "model_call_failed": "the model gave no answer: {reason}",
    "question_asked": "asked whether {tool} may run (question {question})",
    "question_answered": "question {question}: {choice}",
    "tool_refused": "{tool} did not run ({status}): {reason}",
    "steer_addressed": "handed to turn {turn}, as a steer",
    "steered": "delivered to turn {turn}, step {step}: the model sees it from here on",
    "requeued": "waits as a separate message: {why}",
    "deferred": "the model handed it back: {why}",
    "withdrawn": "removed by a person",
    "edited": 'edited: "{text}"',
    "moved": "moved to another place",
    "queue_held": "the queue is held: waiting messages do not run",
    "queue_released": "the queue runs again",
    "session_suspended": "the program was left ({cause}); everything is kept",
    "session_leaving": "the program is being left ({cause})",
    "session_resumed": "the session was resumed",
    "session_finalized": "the session was finalized ({cause})",
    "recovered": "the session was resumed after a {cause}: nothing runs until a person resumes it",
    "interrupted": "turn {turn} was interrupted ({cause})",
    "stopped": "everything that turn {turn} started is dead",
    "child_cancelled": "subagent {child} was asked to end",
    "child_started": "subagent {child} was given a task",
    "child_interrupted": "subagent {child} was interrupted, and can be resumed",
    "child_resumed": "subagent {child} was resumed",
    "child_ended": "subagent {child} is over: {status}",
    "offered": "is offered in the queue, and never runs automatically",
    "offer_answered": "the answer arrived",
    "offer_wanted": "decided before the answer arrived: {wants}",
    "kept": "kept: it runs in its turn",
    "steer_arrived": "entered the context of subagent {child}",
}


_CODES = frozenset({"cause", "status"})
"""The fields of entries whose values are names for programs."""


class _Fields(dict[str, Any]):
    """The fields of an entry; missing ones are empty, since defaults are not stored."""

    def __missing__(self, key: str) -> str:
        return ""


def sentence(data: dict[str, Any]) -> str:
    """Return a sentence about an entry, without a capital at its start."""
    kind = data["kind"]
    data = {**data, **{name: plain_words(data[name]) for name in _CODES & data.keys()}}
    match kind:
        case "queued":
            return _queued(data)
        case "interrupt_requested" | "interrupt_planned":
            return _interrupt(data)
        case "turn_started":
            again = f", going on from {data['resumes']}" if data.get("resumes") else ""
            return f"turn {data['turn']} began with it{again}"
        case "answered":
            return _answered(data)
        case "tool_intended":
            words = ", ".join(str(argument) for argument in data.get("arguments", {}).values())
            return f"{data['tool']} starts: {_short(words)}"
        case "tool_ended":
            end = data["end"]
            code = end.get("exit_code")
            return f"{data['tool']} ended: {end['status']}" + (
                f", {exit_words(code)}" if code is not None else ""
            )
        case "progress_made":
            return f"{data.get('unit', '')} {data['done']}/{data['total']}".strip()
        case "turn_ended":
            reason = f": {data['reason']}" if data.get("reason") else ""
            return f"turn {data['turn']} ended: {data['status']}{reason}"
        case _:
            form = _PLAIN.get(kind) or str(kind).replace("_", " ")
            return form.format_map(_Fields(data)).replace(" ()", "")


def _queued(data: dict[str, Any]) -> str:
    position = data.get("position", 1)
    routed = data.get("routed", {})
    said_as = routed.get("said_as", "turn")
    where = "" if said_as == "turn" else f", place {position}"
    parts = [f"accepted as {said_as} #{data['number']}{where}"]
    if matched := routed.get("matched"):
        parts.append(f'by the word "{matched}"')
    return " ".join(parts) + _row(routed.get("rule", ""))


def _interrupt(data: dict[str, Any]) -> str:
    order, routed = data["order"], data["order"].get("routed", {})
    word = f' by the word "{routed["matched"]}"' if routed.get("matched") else ""
    when = " when the running tools have ended" if data["kind"] == "interrupt_planned" else ""
    turn = f" turn {data['turn']}" if data.get("turn") else ""
    return f"an order to stop{turn}{when} ({order['cause']}){word}{_row(routed.get('rule', ''))}"


def _row(rule: str) -> str:
    if not rule:
        return ""
    why = _WHY.get(rule, "").rstrip(".")
    return f", by row `{rule}`" + (f" ({why[:1].lower()}{why[1:]})" if why else "")


def _answered(data: dict[str, Any]) -> str:
    messages: list[dict[str, Any]] = data.get("messages", [])
    answer = next(
        (message for message in messages if message["role"] == "assistant"), dict[str, Any]()
    )
    calls = len(answer.get("tool_calls", ()))
    text = f'the model answered: "{_short(str(answer["text"]))}"' if answer.get("text") else ""
    wants = f"the model wants {calls} tool call{'s' if calls != 1 else ''}" if calls else ""
    return ", and ".join(part for part in (text, wants) if part) or "the model answered nothing"


def _short(text: str) -> str:
    return one_line(text, 100)


# Where a message stands ---------------------------------------------------------------------------


Outlook = tuple[str, str]
"""A sentence that says where a message stands and why, and the next step, empty if there is none."""


def outlook(record: SessionRecord, name: str, *, is_owned: bool) -> Outlook:
    """Return the outlook of an item or an interrupt; `is_owned`: a live process owns the session."""
    if (interrupt := record.interrupts.get(name)) is not None:
        return _of_interrupt(interrupt, is_owned)
    item = record.queue.items.get(name)
    if item is None:
        return "It ended long ago: only its entries are remembered.", ""
    match item.state:
        case "pending":
            return _pending(record, item, is_owned)
        case "running":
            return _running(record, item, is_owned)
        case "interrupted":
            cause = _turn(record, item).cause if item.turn in record.turns else "an interrupt"
            cause = plain_words(cause)
            text = f"Its turn was interrupted ({cause}) and can be resumed where it stopped."
            return text, _resume(record, is_owned)
        case "superseded":
            how = f"`/queue resume {item.number}`" if is_owned else ""
            return "Another message replaced its turn, which can be resumed where it stopped.", how
        case "steered":
            return _steered(record, item)
        case "done":
            return f"It was answered by turn {item.turn}.", ""
        case "failed":
            reason = _turn(record, item).reason if item.turn in record.turns else item.why
            return f"Its turn failed: {reason or 'reason unknown'}.", "send it again"
        case "withdrawn":
            return "It was removed.", ""
        case "offered":
            return _offered(record, item, is_owned)
        case _:
            return f"It is {item.state}.", ""


def _offered(record: SessionRecord, item: ItemRecord, is_owned: bool) -> Outlook:
    child = record.children.get(item.child)
    if child is not None and child.state == "interrupted" and not item.answer:
        return "The side talk was interrupted, and can be resumed.", _resume(record, is_owned)
    if child is not None and not child.is_at_work and not item.answer:
        text = f"The side talk is {child.state}: there will be no answer."
        return text, f"ask again, or `/queue pop {item.number}`"
    answer = "The answer has arrived" if item.answer else "The answer has not arrived yet"
    how = f"`/queue keep {item.number}`, `steer` or `pop` decides"
    return f"{answer}; it never runs automatically.", how


def _pending(record: SessionRecord, item: ItemRecord, is_owned: bool) -> Outlook:
    if record.state == "finalized":
        return "It waits in a finalized session.", "send it to another session"
    if not is_owned:
        text = "It waits, and no program has the session open."
        return text, f"`steersman chat --resume {record.id}`, and there `/queue resume`"
    if item.editor:
        return "A person edits it: it does not start until that is over.", ""
    if item.for_turn:
        turn = record.turns.get(item.for_turn)
        if turn is not None and turn.state == "interrupted":
            return f"It enters when turn {turn.id} is resumed.", _resume(record, is_owned)
        doing = f", which {_doing(turn)}" if turn else ""
        return f"It enters turn {item.for_turn} at its next boundary{doing}.", ""
    if item.for_children:
        waits = [child for child, place in item.for_children.items() if not place]
        return f"It enters subagent {', '.join(waits)} at the next boundary.", ""
    running = record.turns.get(record.turn)
    is_running = running is not None and running.state not in TURN.final
    if record.queue.holds(item):
        text = "It waits because the queue is held"
        text += ": a turn was interrupted, and nothing continues automatically."
        return text, _resume(record, is_owned)
    ahead = _ahead(record, item)
    if is_running and running is not None:
        behind = f" and {ahead} more" if ahead else ""
        text = f"It waits behind turn {running.id}, which {_doing(running)}{behind}."
        return (
            text,
            f"`steersman queue steer {item.number} --session {record.id}` hands it over now",
        )
    return f"It is the next to run{f', after {ahead} more' if ahead else ''}.", ""


def _running(record: SessionRecord, item: ItemRecord, is_owned: bool) -> Outlook:
    if not is_owned:
        text = "Its turn was cut off: the program that ran it is gone."
        return text, f"`steersman chat --resume {record.id}`, and there `/queue resume`"
    turn = record.turns.get(item.turn) or record.turns.get(record.turn)
    return f"It is being answered: turn {item.turn} {_doing(turn) if turn else 'runs'}.", ""


def _steered(record: SessionRecord, item: ItemRecord) -> Outlook:
    if item.deferred_to:
        again = record.queue.items.get(item.deferred_to)
        now = f", which is {again.state}" if again else ""
        return f"The model handed it back: it waits as {item.deferred_to}{now}.", ""
    if item.for_children:
        return f"It entered the work of {', '.join(item.for_children)}.", ""
    text = f"The model has it since turn {item.turn}, step {item.step}"
    turn = record.turns.get(item.turn)
    if turn is None:
        return f"{text}.", ""
    if turn.state in TURN.final:
        return f"{text}; that turn is {turn.state}.", ""
    return f"{text}; that turn {_doing(turn)}.", ""


def _of_interrupt(interrupt: CancelRecord, is_owned: bool) -> Outlook:
    killed = f" {len(interrupt.killed)} processes were ended." if interrupt.killed else ""
    match interrupt.state:
        case "planned" if is_owned:
            return "It takes effect when the running tools have ended.", ""
        case "stopping" if is_owned:
            told = f" ({', '.join(interrupt.told)} were told)" if interrupt.told else ""
            return f"The stop is still in progress{told}.", ""
        case "planned" | "stopping":
            return "The program ended, and its processes with it.", ""
        case "overtaken":
            return "The turn ended before it took effect.", ""
        case "stopped":
            survivors = f" {len(interrupt.survivors)} survived!" if interrupt.survivors else ""
            return f"It was obeyed: everything that it stopped is dead.{killed}{survivors}", ""
        case _:
            return f"It is {interrupt.state}.{killed}", ""


def _doing(turn: TurnRecord) -> str:
    match turn.state:
        case "calling":
            return f"waits for the model (step {turn.step})"
        case "acting":
            at_work = [
                f"an answer to question {call.question}"
                if call.state == "asking"
                else f"{call.tool} ({call.id})"
                for call in turn.calls.values()
                if call.state in ("asking", "running", "stopping")
            ]
            return f"waits for {', '.join(at_work) or 'its tools'}"
        case "boundary":
            return "is between two calls"
        case "paused":
            return f"waits for an answer to question {turn.question}: its model calls are used up"
        case _:
            return f"is {turn.state}"


def _ahead(record: SessionRecord, item: ItemRecord) -> int:
    queue = record.queue
    waiting = [
        pending.id for pending in queue.pending() if queue.holds(pending) == queue.holds(item)
    ]
    return waiting.index(item.id) if item.id in waiting else 0


def _turn(record: SessionRecord, item: ItemRecord) -> TurnRecord:
    return record.turns[item.turn]


def _resume(record: SessionRecord, is_owned: bool) -> str:
    if is_owned:
        return f"`/queue resume` there, or `steersman queue resume --session {record.id}`"
    return f"`steersman chat --resume {record.id}`, and there `/queue resume`"


# The story ----------------------------------------------------------------------------------------


_ACCEPTED = ("queued", "deferred", "offered")
_INTERRUPTS = ("interrupt_requested", "interrupt_planned")
_OF_WAITING = (
    *("queue_held", "queue_released", "session_suspended", "session_resumed", "recovered"),
    *("session_finalized", "turn_ended", "interrupted", "stopped", "session_leaving"),
)
"""Entries that decide over queued messages, whichever message they name."""
_OF_SEVERAL = ("queue_released", "steered")
"""Entries whose `items` are ids; in other entries `items` is a number."""
_ENDS = ("turn_ended", "stopped")


class AboutMessage(TypedDict):
    """A message, or an interrupt, which has no number."""

    id: str
    kind: str
    number: NotRequired[int]
    text: str
    user: str
    state: NotRequired[str]


Move = TypedDict("Move", {"what": str, "from": str, "to": str})
"""A part that changed its state; an empty `from` is of a new one."""


class Hop(TypedDict):
    """An entry of the journal about a message; `after` is in seconds since the message came."""

    seq: int
    time: str
    after: float
    kind: str
    text: str
    moved: list[Move]


class StoryView(TypedDict):
    """The history of a message and where it stands."""

    session: str
    message: AboutMessage
    hops: list[Hop]
    outlook: str
    turn: NotRequired[str]
    hint: NotRequired[str]


class Story(Struct, kw_only=True):
    """A message (an item or an interrupt) and its hops; `entries` are those of the hops, redacted."""

    session: str
    message: AboutMessage
    hops: list[Hop] = field(default_factory=list[Hop])
    entries: list[StoredEntry] = field(default_factory=list[StoredEntry])
    turn: str = ""
    outlook: str = ""
    hint: str = ""

    def view(self) -> StoryView:
        """Return the story as programs see it."""
        view = StoryView(
            session=self.session, message=self.message, hops=self.hops, outlook=self.outlook
        )
        if self.turn:
            view["turn"] = self.turn
        if self.hint:
            view["hint"] = self.hint
        return view


def story_of(
    store: Store, row: SessionRow, name: str, redactor: Redactor, *, is_owned: bool
) -> Story:
    """Return the story of a message by its number, `last`, its id, its receipt, or its client id.

    Of several messages with one number it is the newest. Raises `UsageError` if there is none.
    """
    now = record_at(store, row.session, row.seq)
    first = _first(store, row, now, name.removeprefix("#"))
    if first is None:
        raise UsageError(
            f"no message `{name}` is known in session `{row.session}`",
            "give the number, the id or the receipt of its acknowledgement; refused messages are "
            "not journalled",
        )
    story = Story(session=row.session, message=_message(first))
    for stored, moved in _walk(store, row, first):
        if not _belongs(story, stored, now):
            continue
        _follow(story, stored)
        since = stored.time - first.time
        shown = redactor.entry(stored)
        hop = Hop(
            seq=stored.seq,
            time=iso(stored.time),
            after=round(since, 3),
            kind=stored.data["kind"],
            text=sentence(shown.data),
            moved=moved,
        )
        story.hops.append(hop)
        story.entries.append(shown)
    story.outlook, story.hint = outlook(now, story.message["id"], is_owned=is_owned)
    story.message["state"] = _state(now, story.message["id"])
    return story


def _first(store: Store, row: SessionRow, now: SessionRecord, name: str) -> StoredEntry | None:
    """Find the entry that accepted the message; for an item of the record near its time only."""
    items = list(now.queue.items.values())
    known = [
        candidate
        for candidate in items
        if name in (candidate.id, str(candidate.number), candidate.said.client_id)
    ]
    if name == "last" and items:
        known = items
    after = 0
    if known:
        newest = max(known, key=lambda item: item.created)
        name = newest.id
        after = max(0, seq_at(store, row.session, row.seq, newest.created - 1e-3) - 1)
    found = None
    for stored in store.entries(row.session, after, row.seq):
        if stored.data["kind"] in (*_ACCEPTED, *_INTERRUPTS) and name in _names(stored.data):
            if found is None or stored.data["kind"] not in _INTERRUPTS:
                found = stored
            if known:
                break
    return found


def _names(data: dict[str, Any]) -> tuple[str, ...]:
    """Return the names by which a message can be found."""
    if data["kind"] in _INTERRUPTS:
        return (data["receipt"], _said(data).get("client_id") or data["receipt"])
    item = str(data.get("new_item") or data["item"])
    return (item, str(data["number"]), _said(data).get("client_id") or item)


def _said(data: dict[str, Any]) -> dict[str, Any]:
    """Return what was said by an entry that accepted it."""
    found: dict[str, Any] = (
        data["order"].get("said", {}) if data["kind"] in _INTERRUPTS else data["said"]
    )
    return found


def _message(first: StoredEntry) -> AboutMessage:
    data = first.data
    is_interrupt = data["kind"] in _INTERRUPTS
    message = AboutMessage(
        id=data["receipt"] if is_interrupt else str(data.get("new_item") or data["item"]),
        kind="interrupt" if is_interrupt else _way(data),
        text=_said(data).get("text", ""),
        user=_said(data).get("user", ""),
    )
    if not is_interrupt:
        message["number"] = data["number"]
    return message


def _way(data: dict[str, Any]) -> str:
    if data["kind"] != "queued":
        return str(data["kind"])
    return str(data.get("routed", {}).get("said_as", "turn"))


def _walk(
    store: Store, row: SessionRow, first: StoredEntry
) -> Iterator[tuple[StoredEntry, list[Move]]]:
    trace = Trace(record_at(store, row.session, first.seq - 1))
    for stored in store.entries(row.session, first.seq - 1, row.seq):
        moved = trace.take(stored)
        yield (
            stored,
            [{"what": one["what"], "from": one["from"], "to": one["to"]} for one in moved],
        )


def _belongs(story: Story, stored: StoredEntry, now: SessionRecord) -> bool:
    data, name = stored.data, story.message["id"]
    item = now.queue.items.get(name)
    if item is not None and item.child and data.get("child") == item.child:
        return True  # entries of the child that answers the message
    if name in (
        data.get("item"),
        data.get("new_item"),
        data.get("receipt"),
        data.get("before"),
        *(data.get("items", ()) if data["kind"] in _OF_SEVERAL else ()),
    ):
        return True
    if story.turn:
        is_of_it = data.get("turn") == story.turn or data["kind"] == "recovered"
        return is_of_it and not _is_over(story)
    return data["kind"] in _OF_WAITING and not _is_over(story)


def _is_over(story: Story) -> bool:
    """Whether the message had ended before the current entry."""
    if story.turn:
        return any(
            stored.data["kind"] in _ENDS and stored.data.get("turn") == story.turn
            for stored in story.entries
        )
    ended = {f"item {story.message['id']}", f"interrupt {story.message['id']}"}
    return any(
        transition["what"] in ended
        and transition["to"] in (*ITEM.final, "done", "overtaken", "called_off")
        for hop in story.hops
        for transition in hop["moved"]
    )


def _follow(story: Story, stored: StoredEntry) -> None:
    """Follow the turn that runs the message, received it as a steer, or is stopped by it."""
    data, name = stored.data, story.message["id"]
    is_started = data["kind"] == "turn_started" and data["item"] == name
    is_steered = data["kind"] == "steered" and name in data["items"]
    is_interrupt = data["kind"] in _INTERRUPTS and data["receipt"] == name
    if is_started or is_steered or is_interrupt:
        story.turn = data.get("turn", "")


def _state(now: SessionRecord, name: str) -> str:
    found = now.queue.items.get(name) or now.interrupts.get(name)
    return found.state if found else "forgotten"
