"""The story of one message: every journal entry that concerns it, where it stands, and why.

The story is found by reading the journal from the entry that accepted the message. An entry belongs to
the story if it names the message, the turn that runs it or received it as a steer, or the interrupt that
the message is; and, as long as the message waits, if it changes what the message waits for.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NotRequired, TypedDict

from ...journal.entries import MOVED
from ...journal.history import record_at, seq_at
from ...journal.queue_record import AT_REST, NOT_YET, ItemRecord
from ...journal.record import SessionRecord, StopRecord
from ...journal.revert_record import OVER, result_of
from ...journal.store import SessionRow, Store, StoredEntry
from ...journal.turn_record import TurnRecord
from ...machines.disposition import DEFAULT_DISPOSITIONS
from ...machines.errors import UsageError
from ...machines.lifecycles import ITEM, TURN
from ...machines.protocol import exit_words
from ..wording.acknowledgement import discarding
from ..wording.formats import call_words, clock, iso, one_line, plain_words, sender
from ..wording.redaction import Redactor
from .dump import Trace

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
    "moved": "moved to another place",
    "queue_held": "the queue is held: waiting messages do not run",
    "queue_released": "the queue runs again",
    "session_suspended": "the program was left ({cause}); everything is kept",
    "session_leaving": "the program is being left ({cause})",
    "session_resumed": "the session was resumed",
    "session_finalized": "the session was finalized ({cause})",
    "recovered": "the session was resumed ({cause} before): nothing runs until a person resumes it",
    "interrupted": "turn {turn} was interrupted ({cause})",
    "stopped": "everything that was to stop with turn {turn} is dead",
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


def sentence(data: dict[str, Any]) -> str:
    """Return a sentence about an entry, without a capital at its start."""
    kind = data["kind"]
    data = {**data, **{name: plain_words(data[name]) for name in _CODES & data.keys()}}
    match kind:
        case "queued":
            routed = data.get("routed", {})
            said_as, matched = routed.get("said_as", "turn"), routed.get("matched")
            where = "" if said_as == "turn" else f", place {data.get('position', 1)}"
            word = f' by the word "{matched}"' if matched else ""
            rule = _row(routed.get("rule", ""))
            return f"accepted as {said_as} #{data['number']}{where}{word}{rule}"
        case "edited":
            by = f" by {who}" if (who := sender(data.get("user", ""))) else ""
            return f'edited{by}: "{_short(data["said"]["text"])}"'
        case "interrupt_requested" | "interrupt_planned":
            return _interrupt(data)
        case "withdrawn" if data.get("moved_to"):
            return f"{MOVED}{data['moved_to']}"
        case "turn_started":
            again = f", going on from {data['resumes']}" if data.get("resumes") else ""
            return f"turn {data['turn']} began with it{again}"
        case "answered":
            return _answered(data)
        case "tool_intended":
            words = ", ".join(call_words(data.get("arguments", {})))
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
            fields = defaultdict[str, Any](str, data)  # defaults are not stored
            return form.format_map(fields).replace(" ()", "")


def _interrupt(data: dict[str, Any]) -> str:
    order, routed = data["order"], data["order"].get("routed", {})
    word = f' by the word "{routed["matched"]}"' if routed.get("matched") else ""
    when = " when the running tools have ended" if data["kind"] == "interrupt_planned" else ""
    turn = f" turn {data['turn']}" if data.get("turn") else ""
    why = f"{plain_words(order['cause'])}){word}{_row(routed.get('rule', ''))}"
    return f"an order to stop{turn}{when} ({why}"


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
    if (interrupt := record.stops.get(name)) is not None:
        return _of_interrupt(interrupt, is_owned)
    item = record.queue.items.get(name)
    if item is None:
        return "It ended long ago: only its entries are remembered.", ""
    if record.state == "finalized" and item.state in ("interrupted", "superseded", "unanswered"):
        return "Its turn did not end, and the session is finalized.", "send it to another session"
    match item.state:
        case "pending":
            return _pending(record, item, is_owned)
        case "running":
            if not is_owned:
                gone = "Its turn was cut off: the program that ran it is gone."
                return gone, _resume(record, is_owned)
            turn = record.turns.get(item.turn) or record.turns.get(record.turn)
            doing = _doing(record, turn) if turn else "runs"
            return f"It is being answered: turn {item.turn} {doing}.", ""
        case "interrupted":
            turn = record.turns.get(item.turn)
            cause = plain_words(turn.cause) if turn is not None else "an interrupt"
            text = f"Its turn was interrupted ({cause}) and can be resumed where it stopped."
            if item.is_next:
                return f"Its turn was interrupted ({cause}); it goes on after what runs.", ""
            return text, _resume(record, is_owned)
        case "superseded":
            how = f"`/queue resume {item.number}`" if is_owned else ""
            return "Another message replaced its turn, which can be resumed where it stopped.", how
        case "unanswered":
            how = f"`/queue resume {item.number}`" if is_owned else _resume(record, is_owned)
            return f"Its model gave no answer ({item.why}), and it can be resumed.", how
        case "steered":
            return _steered(record, item, is_owned)
        case "done":
            return f"It was answered by turn {item.turn}.", ""
        case "failed" | "withdrawn" if item.why.startswith(MOVED):
            return f"It was {item.why}.", ""
        case "failed":
            turn = record.turns.get(item.turn)
            reason = turn.reason if turn is not None else item.why
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
        return "It waits, and no program has the session open.", _resume(record, is_owned)
    if item.editor:
        return "A person edits it: it does not start until that is over.", ""
    if item.for_turn:
        turn = record.turns.get(item.for_turn)
        if turn is not None and turn.state == "interrupted":
            aside = [other for other in record.queue.superseded() if other.turn == turn.id]
            how = f"`/queue resume {aside[0].number}`" if aside and is_owned else ""
            return f"It enters when turn {turn.id} is resumed.", how or _resume(record, is_owned)
        doing = f", which {_doing(record, turn)}" if turn else ""
        return f"It enters turn {item.for_turn} at its next boundary{doing}.", ""
    if item.for_children:
        at_rest = [child for child, place in item.for_children.items() if place == AT_REST]
        if at_rest:
            return f"It enters subagent {', '.join(at_rest)} when that goes on.", _resume(
                record, is_owned
            )
        waits = [child for child, place in item.for_children.items() if place == NOT_YET]
        return f"It enters subagent {', '.join(waits)} at the next boundary.", ""
    queue = record.queue
    if queue.holds(item):
        text = "It waits because the queue is held"
        text += ": a turn was interrupted, and nothing continues automatically."
        return text, _resume(record, is_owned)
    waiting = [pending.id for pending in queue.pending() if not queue.holds(pending)]
    ahead = waiting.index(item.id) if item.id in waiting else 0
    if (running := record.running) is not None:
        behind = f" and {ahead} more" if ahead else ""
        text = f"It waits behind turn {running.id}, which {_doing(record, running)}{behind}."
        how = f"`steersman queue steer {item.number} --session {record.id}` hands it over now"
        return text, how
    return f"It is the next to run{f', after {ahead} more' if ahead else ''}.", ""


def _steered(record: SessionRecord, item: ItemRecord, is_owned: bool) -> Outlook:
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
    if not is_owned:
        return f"{text}; that turn was cut off: its program is gone.", _resume(record, is_owned)
    return f"{text}; that turn {_doing(record, turn)}.", ""


def _of_interrupt(interrupt: StopRecord, is_owned: bool) -> Outlook:
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


def _doing(record: SessionRecord, turn: TurnRecord) -> str:
    asked = ", ".join(record.run.questions) if record.run is not None else ""
    match turn.state:
        case _ if asked and turn.id == record.turn:
            return f"waits for an answer to question {asked}"
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
        case "waiting":
            return f"waits for its provider, and asks again at {clock(iso(turn.until), 'minutes')}"
        case "paused":
            return f"waits for an answer to question {turn.question}: its model calls are used up"
        case _:
            return f"is {turn.state}"


def _resume(record: SessionRecord, is_owned: bool) -> str:
    if is_owned:
        return f"`/queue resume` there, or `steersman queue resume --session {record.id}`"
    if record.run is not None:
        result = result_of(record.run, record.reverts)
        resumes = f"`steersman run --resume {record.id}`"
        return discarding(record.id, result) if result in OVER else resumes
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
_ENDS = (*ITEM.final, "done", "overtaken", "called_off")
"""States in which an item or an interrupt has ended."""


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
    """The history of a message and where it stands; `turn` is the one that ran it last, or took it in."""

    session: str
    message: AboutMessage
    hops: list[Hop]
    outlook: str
    turn: NotRequired[str]
    hint: NotRequired[str]


def story_of(
    store: Store, row: SessionRow, name: str, redactor: Redactor, *, is_owned: bool
) -> tuple[StoryView, list[StoredEntry]]:
    """Return the story of a message by its number, `last`, its id, its receipt, or its client id.

    With it come the entries of its hops, redacted. Of several messages with one number it is the
    newest. Raises `UsageError` if there is none.
    """
    now = record_at(store, row.session, row.seq)
    found = _first(store, row, now, name.removeprefix("#"))
    if found is None:
        raise UsageError(
            f"no message `{name}` is known in session `{row.session}`",
            "give the number, the id or the receipt of its acknowledgement; refused messages are "
            "not journalled",
        )
    first, message = found
    item = now.queue.items.get(message["id"])
    pursuit = _Pursuit(message["id"], item.child if item is not None else "")
    trace = Trace(record_at(store, row.session, first.seq - 1))
    hops, entries = list[Hop](), list[StoredEntry]()
    for stored in store.entries(row.session, first.seq - 1, row.seq):
        moved: list[Move] = [
            {"what": move["what"], "from": move["from"], "to": move["to"]}
            for move in trace.take(stored)
        ]
        if pursuit.follows(stored.data, moved):
            shown, kind = redactor.entry(stored), stored.data["kind"]
            after, text = round(stored.time - first.time, 3), sentence(shown.data)
            at = iso(stored.time)
            hops.append(
                Hop(seq=stored.seq, time=at, after=after, kind=kind, text=text, moved=moved)
            )
            entries.append(shown)
    if item is not None and item.said.text != message["text"]:
        hops[0]["text"] += f', as "{_short(message["text"])}"'
        message["text"] = item.said.text  # as it was edited last
    said, hint = outlook(now, message["id"], is_owned=is_owned)
    of_it = item or now.stops.get(message["id"])
    message["state"] = of_it.state if of_it is not None else "forgotten"
    view = StoryView(session=row.session, message=message, hops=hops, outlook=said)
    if pursuit.turn:
        view["turn"] = pursuit.turn
    if hint:
        view["hint"] = hint
    return view, entries


class _Pursuit:
    """Follows a message through the entries: `turn` runs it, received it as a steer, or is stopped by it.

    `child` is the subagent that answers it, if one does.
    """

    def __init__(self, message: str, child: str) -> None:
        self.turn = ""
        self._message, self._child = message, child
        self._is_over = False

    def follows(self, data: dict[str, Any], moved: list[Move]) -> bool:
        """Whether an entry, which made these moves, belongs to the story."""
        kind, name, turn = data["kind"], self._message, data.get("turn", "")
        items = data.get("items", ()) if kind in _OF_SEVERAL else ()
        is_named = name in (*(data.get(key) for key in _NAMING), *items)
        if self.turn:
            is_of_it = turn == self.turn or kind == "recovered"
        else:
            is_of_it = kind in _OF_WAITING
        is_of_child = bool(self._child) and data.get("child") == self._child
        if not (is_named or is_of_child or (is_of_it and not self._is_over)):
            return False
        is_run = kind == "turn_started" and data["item"] == name
        is_steer = kind == "steered" and name in items
        if is_run or is_steer or (kind in _INTERRUPTS and data["receipt"] == name):
            self.turn, self._is_over = turn, False
        if self.turn:
            self._is_over |= kind in ("turn_ended", "stopped") and turn == self.turn
        else:
            own = (f"item {name}", f"interrupt {name}")
            self._is_over |= any(move["what"] in own and move["to"] in _ENDS for move in moved)
        return True


_NAMING = ("item", "new_item", "receipt", "before")
"""The fields of entries that have the id of a message."""


def _first(
    store: Store, row: SessionRow, now: SessionRecord, name: str
) -> tuple[StoredEntry, AboutMessage] | None:
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
        kind = stored.data["kind"]
        if kind in _ACCEPTED or kind in _INTERRUPTS:
            message, names = _message(stored.data)
            if name in names and (found is None or kind in _ACCEPTED):
                found = stored, message
            if name in names and known:
                break
    return found


def _message(data: dict[str, Any]) -> tuple[AboutMessage, tuple[str, ...]]:
    """Return the message that an entry accepted, and the names by which it can be found."""
    kind = data["kind"]
    if kind in _INTERRUPTS:
        said, id, kind = data["order"].get("said", {}), data["receipt"], "interrupt"
    else:
        said, id = data["said"], str(data.get("new_item") or data["item"])
        kind = data.get("routed", {}).get("said_as", "turn") if kind == "queued" else kind
    message = AboutMessage(id=id, kind=kind, text=said.get("text", ""), user=said.get("user", ""))
    names = (id, said.get("client_id") or id)
    if data["kind"] in _INTERRUPTS:
        return message, names
    message["number"] = data["number"]
    return message, (*names, str(data["number"]))
