"""The commands that steer, stop and answer a running turn, and that show the outcome of messages."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from msgspec.structs import replace

from ...journal.queue_record import ItemRecord
from ...journal.record import StopRecord
from ...machines import protocol as m
from ...machines.disposition import Intent
from ...ports.tools.text import counted
from ..client import SessionClient
from ..open_questions import open_questions
from ..wording.formats import plain_words, sender, shortened
from .command import Argument, Reply, Text, command
from .revert import revert

BusyMode = Literal["interrupt", "steer", "queue"]
MODES = get_args(BusyMode)
LAST = 10_000
"""A position after all waiting messages."""

BECAME = {"pending": "waiting", "steered": "taken in"}


@command(
    "stop",
    "talk",
    "Stop the running turn and everything it started, now.",
    is_urgent=True,
    is_shared=True,
)
def stop(
    client: SessionClient, text: Annotated[str, Argument("and revert", is_rest=True)] = ""
) -> Reply:
    """Interrupt the session, its children and its goal; a text behind it delays nothing.

    `/stop and revert` restores the files of what it stopped, too.
    """
    is_reverting = client.texts.classify(f"stop {text}").intent is Intent.REVERT
    answer = client.interrupt()
    children: list[str] = answer.get("children") or []
    if is_reverting and (answer.get("interrupted") or children):
        return revert.function(client)
    if answer.get("interrupted") or children:
        turn = [f"turn {answer['interrupted']}"] if answer.get("interrupted") else []
        said = f"Stopping {', '.join([*turn, *children])}."
    elif answer.get("goal"):
        said = "Goal paused. /goal resume continues."
    else:
        said = f"Nothing to stop: {answer.get('reason', 'nothing runs')}."
    if is_reverting:
        said += " /revert restores the files of the turn before."
    elif text:
        said += f" `{text}` was not sent: /stop takes no message."
        answer = {**answer, "unsent": text}
    return Reply(data=answer, text=said, news=said if answer.get("interrupted") or children else "")


@command(
    "steer",
    "talk",
    "Send a message to the running turn, or to the subagent that it waits for.",
    says="steer",
    is_shared=True,
)
def steer(
    client: SessionClient, text: Annotated[str, Argument("[@NAME|@parent] TEXT", is_rest=True)]
) -> Reply:
    """Send a steer; its outcome comes as an event."""
    return Reply()  # a client sends it as a message, and runs no command


@command(
    "smalltalk",
    "talk",
    "Ask a question without disturbing the work.",
    says="side_talk",
    is_shared=True,
)
def smalltalk(client: SessionClient, text: Text) -> Reply:
    """Start a side talk; its outcome comes as an event."""
    return Reply()


@command(
    "answer",
    "talk",
    "Answer the question of a tool call (once, for this session, or no, and why), a hold or a step.",
    is_urgent=True,
)
def answer(
    client: SessionClient,
    question: Annotated[
        str,
        Argument("QUESTION", of="question", help="Its id, or `q1`: the first one that is open."),
    ],
    choice: Annotated[
        str, Argument("allow|always|deny|change|ANSWER", of="choice", help="The answer.")
    ],
    reason: Annotated[
        str,
        Argument(
            "PATTERN|REASON|JSON",
            is_rest=True,
            help="What is always allowed, or why not; of a call that is held its new arguments.",
        ),
    ] = "",
) -> Reply:
    """Answer a question of a tool call, of the session or of a subagent, or of a workflow's step.

    The answer to a step may have several words. `q1` is the first question that is open.

    Example: steersman sessions answer last q1 allow
    """
    record = client.record() if client.is_open else None
    run = record.run if record is not None else None
    is_there = tuple(open_questions(client.host.runtime, client.session))
    number = question.removeprefix("q")
    if question not in is_there and number.isdecimal() and 0 < int(number) <= len(is_there):
        question = is_there[int(number) - 1]
    asking = run.questions.get(question) if run is not None else None
    reply = client.ask(m.Answer(question=question, choice=choice, reason=reason))
    if not reply.get("ok"):
        why = str(reply.get("reason", f"no question `{question}` is open"))
        text = f"{why[:1].upper()}{why[1:]}."
        if is_there and question not in is_there:
            text += f" Open: {', '.join(is_there)}."
        return Reply(ok=False, data={"id": question, "reason": why}, text=text)
    text = f"{question}: {choice}."
    if asking is not None:
        text = f"{asking.step}: {' '.join(filter(None, (choice, reason)))}."
    return Reply(data={"id": question, "choice": choice}, text=text)


@command("busy", "settings", "Show or set what a message during a turn does.", is_shared=True)
def busy(
    client: SessionClient,
    mode: Annotated[BusyMode | None, Argument("MODE", help="If left out, show it.")] = None,
) -> Reply:
    """Show what a message during a turn does, or change it for the rest of the session.

    Example: steersman sessions busy last steer
    """
    if mode is None:
        current = client.describe().policy.busy_mode
        text = (
            f"A message during a turn follows `{current}`. There are: {', '.join(MODES)}. "
            'Words like "stop" and "cancel" stop the turn in every mode.'
        )
        return Reply(data={"ok": True, "busy_input_mode": current}, text=text)
    answer = client.ask(m.PolicyChange(busy_mode=mode))
    is_ok = bool(answer.get("ok", True))
    text = f"A message during a turn now follows `{mode}`."
    data = {**answer, "busy_input_mode": mode}
    return Reply(ok=is_ok, data=data, text=text if is_ok else str(answer.get("reason")), news=text)


@command("undo", "talk", "Queue the last message instead.", is_shared=True)
def undo(client: SessionClient) -> Reply:
    """Undo the routing of the last message: the message waits in the queue instead.

    A message that stopped a turn and runs already is stopped, and queued after the turn's message.

    Example: steersman sessions undo last
    """
    answer = client.ask(m.TakeBack())
    if not answer.get("ok"):
        reason = answer.get("reason", "There is nothing to take back")
        text = f"{reason}.\n`/revert` takes back changes of files."
        return Reply(ok=False, data=answer, text=text)
    if key := answer.pop("key", ""):
        item = client.item_of(key)
        answer["number"] = item.number if item else None
        if item is None:
            return Reply(ok=False, data=answer, text="The queue has no room for it.")
    text = f"#{answer['number']} waits in the queue instead."
    if turn := answer.get("stop"):
        client.ask(m.Interrupt(order=m.StopOrder(cause="stop"), turn=turn))
        client.ask(m.QueueChange(op="move", number=answer["number"], position=LAST))
        text = f"#{answer['number']} was stopped and waits in the queue instead."
    if answer.get("offered"):
        text += f"\n#{answer['offered']} was stopped already: /queue resume continues it."
    return Reply(data=answer, text=text)


@command("receipts", "talk", "Show the outcome of each message.", is_shared=True)
def show_receipts(
    client: SessionClient, name: Annotated[str, Argument("ID", help="A receipt, or `#N`.")] = ""
) -> Reply:
    """Show the outcome of each message and interrupt, or of the one with an id.

    Example: steersman sessions receipts last
    """
    record = client.record()
    items = list(record.queue.items.values())
    if client.describe().is_offline:  # what ran when its program died
        items = [
            replace(item, state="interrupted") if item.state == "running" else item
            for item in items
        ]
    there = [
        *map(_of_item, items),
        *(_of_stop(stop) for stop in record.stops.values()),
    ]
    found: list[dict[str, Any]] = client.view.redacted({"receipts": there})["receipts"]
    if name:
        found = [
            receipt for receipt in found if name in (receipt["id"], f"#{receipt.get('number')}")
        ]
        if not found:
            return Reply(
                ok=False, data={"receipts": []}, text=f"No receipt `{name}`. /receipts lists them."
            )
    lines = [_line(receipt) for receipt in found]
    return Reply(data={"receipts": found}, text="\n".join(lines) or "There are no messages yet.")


def _of_item(item: ItemRecord) -> dict[str, Any]:
    return {
        "id": item.id,
        "kind": "message",
        "number": item.number,
        "state": "handed back" if item.deferred_to else BECAME.get(item.state, item.state),
        "became": item.deferred_to or None,
        "children": list(item.for_children),
        "turn": item.turn or item.for_turn or None,
        "step": item.step or None,
        "why": item.why or None,
        "text": item.text,
        "user": item.said.user or None,
    }


def _of_stop(cancel: StopRecord) -> dict[str, Any]:
    order = cancel.order
    return {
        "id": cancel.id,
        "kind": "interrupt",
        "state": cancel.state,
        "turn": cancel.turn,
        "cause": order.cause,
        "matched": order.routed.matched or None,
        "text": order.said.text,
        "user": order.said.user or None,
        "told": [one for one in (cancel.turn, *cancel.told) if one],
        "spared": list(cancel.spares),
        "killed": list(cancel.killed),
        "survivors": list(cancel.survivors),
        "checkpoint": cancel.checkpoint,
        "kept": list(cancel.kept),
    }


def _line(receipt: dict[str, Any]) -> str:
    """Write a receipt as one line for people."""
    by = f" from {who}" if (who := sender(receipt["user"] or "")) else ""
    if receipt["kind"] == "message":
        whose = f"{' and '.join(receipt['children'])}: " if receipt["children"] else ""
        at = f" ({whose}{receipt['turn']}" if receipt["turn"] else ""
        at += f", step {receipt['step']}" if receipt["step"] else ""
        at += ")" if at else ""
        at += f", waits as {receipt['became']}" if receipt["became"] else ""
        why = f": {plain_words(receipt['why'])}" if receipt["why"] else ""
        text = shortened(" ".join(receipt["text"].split()))
        return f"{receipt['id']} #{receipt['number']} {receipt['state']}{at}{by}{why}  {text}"
    parts = [
        f"reached {', '.join(receipt['told']) or 'nothing'}",
        receipt["spared"] and f"left {', '.join(receipt['spared'])} at work",
        receipt["killed"] and f"ended {counted(len(receipt['killed']), 'process')}",
        receipt["survivors"] and f"could not end {', '.join(map(str, receipt['survivors']))}",
        receipt["kept"] and f"held {counted(len(receipt['kept']), 'message')}",
    ]
    what = f"stop {receipt['state']} ({plain_words(receipt['cause'])})"
    return f"{receipt['id']} {what}{by}: {'; '.join(filter(None, parts))}"
