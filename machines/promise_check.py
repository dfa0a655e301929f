"""What the routing tables promise, against what runs; a part of `route_check.py`.

A delivery that nothing at run time carries out, a row that no cause or message reaches, and an
acknowledgement that contradicts what is done are mistakes, whether or not anybody is harmed.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from .check import MachineFault
from .delivery import ENDS, FINAL, STEERS, Cause, Delivery, DeliveryRow, Relation, never_asked
from .disposition import (
    ACK_USES,
    ACKNOWLEDGED,
    ACKS,
    NEVER_SAID,
    AckUse,
    Action,
    DispositionRow,
    Intent,
    Situation,
)
from .routing import Key, Table

Dispositions = Table[DispositionRow]
Deliveries = Table[DeliveryRow]

BELOW: Final = (Relation.FOREGROUND_CHILD, Relation.BACKGROUND_CHILD, Relation.SIDE_TALK)
"""The relations that are sessions below this one."""

HINTS: Final = {
    "dead-row": "Remove the row, or put it before those that match the same cases.",
    "dropped-control": "Let it interrupt; `refuse` needs an `ack`, and `finalizing` or talk.",
    "hole": "Add a row that matches, at the end.",
    "impossible": "Narrow the row by `situation`, or choose an action that is possible there.",
    "inert": "Name a cause that does what the action says.",
    "kills-child": "Use `none` or `steer` for the children.",
    "lost": "Deliver the steer to a recipient that always exists.",
    "missing-ack": "Name an `ack`.",
    "not-carried-out": "Use `none` there, or remove the row.",
    "spared": "Give the reason in `why`.",
    "unheard": "Let it interrupt, and deliver `cancel` to all descendants.",
    "unreachable": "Remove the row.",
    "untrue-ack": "Name another `ack`.",
}
"""The next step for each kind of fault, where the fault itself has no better one."""


def check_promises(dispositions: Dispositions, deliveries: Deliveries) -> tuple[MachineFault, ...]:
    """Find what the two tables promise and nothing does, and what they say and do not do."""
    return tuple(
        chain(
            _not_carried_out(deliveries),
            _never_raised(dispositions, deliveries),
            _never_said(dispositions),
            _untrue_acks(dispositions, deliveries),
        )
    )


def fault(table: str, kind: str, where: str, message: str, hint: str = "") -> MachineFault:
    """Return a fault; its hint is that of its kind, unless it has a better one."""
    return MachineFault(
        machine=table, kind=kind, where=where, message=message, hint=hint or HINTS[kind]
    )


def given(deliveries: Deliveries, cause: str) -> dict[str, Delivery]:
    """Map each relation that has a row for a cause to what it gets."""
    rows = {relation: deliveries.find((cause, relation)) for relation in Relation}
    return {str(relation): row.action for relation, row in rows.items() if row is not None}


# What runs is what the table promises -------------------------------------------------------------


def _not_carried_out(deliveries: Deliveries) -> Iterator[MachineFault]:
    """Report deliveries that nothing at run time carries out; one fault for each row."""
    reported = set[str]()
    for cause, relation in deliveries.keys():
        row = deliveries.find((cause, relation))
        is_spared = (cause, relation) == (Cause.PARENT, Relation.SELF)
        if row is None or row.name in reported or (row.action == Delivery.NONE and not is_spared):
            continue
        why = never_asked(cause, relation) or _why_not(deliveries, cause, relation, row.action)
        if why:
            reported.add(row.name)
            message = f"`{cause}` gives {relation} {row.action}, which nothing carries out: {why}"
            yield fault(deliveries.name, "not-carried-out", f"row `{row.name}`", message)


def _why_not(deliveries: Deliveries, cause: str, relation: str, action: Delivery) -> str:
    """Say why a delivery that is asked for is not carried out; empty if it is."""
    is_known = cause in tuple(Cause)
    if action == Delivery.STEER:
        return f"`{cause}` carries no text." if is_known and cause not in STEERS else ""
    if (cause, relation) == (Cause.PARENT, Relation.SELF) and action not in ENDS:
        return "A session stopped by its parent begins nothing more, whatever its own table says."
    if cause in STEERS:
        return "A steer delivers a text and ends nothing."
    if cause in FINAL and action == Delivery.CANCEL and relation != Relation.GOAL:
        return "The session ends permanently, and nothing of it can be resumed: use `finalize`."
    if cause not in FINAL and action == Delivery.FINALIZE:
        if relation == Relation.SELF:
            return "The turn is stopped; only `new` and `finalize` end the session."
        if relation == Relation.GOAL:
            return "The goal is paused; only the end of the session drops it."
    if cause == Cause.TIMEOUT and relation != Relation.SELF:
        own = deliveries.find((cause, Relation.SELF))
        if own is not None and own.action not in ENDS:
            return "A time limit that does not stop the child itself stops nothing else."
    return ""


def _never_raised(dispositions: Dispositions, deliveries: Deliveries) -> Iterator[MachineFault]:
    """Report rows that spare only those for whom nothing asks."""
    raised = {*Cause, *(row.cause for row in dispositions.rows)}
    decided: dict[str, list[Key]] = {}
    for key in deliveries.keys():
        row = deliveries.find(key)
        if row is not None:
            decided.setdefault(row.name, []).append(key)
    for name, keys in decided.items():
        causes = [cause for cause, _ in keys if cause not in raised]
        why = [never_asked(*key) for key in keys]
        if len(causes) == len(keys):
            message = f"no row raises the cause `{causes[0]}`"
        elif all(why) and all(_is_idle(deliveries, key) for key in keys):
            if not _is_needed(deliveries, name, keys):
                message = (
                    f"decides only what nothing asks, such as {' to '.join(keys[0])}: {why[0]}"
                )
            else:
                continue
        else:
            continue
        yield fault(deliveries.name, "unreachable", f"row `{name}`", message)


def _is_idle(deliveries: Deliveries, key: Key) -> bool:
    row = deliveries.find(key)
    return row is not None and row.action == Delivery.NONE


def _is_needed(table: Table[Any], name: str, keys: Iterable[Key]) -> bool:
    """Whether the table would have a hole without a row that decides these combinations."""
    others = table.lay_out([row for row in table.rows if row.name != name])
    return any(key not in others for key in keys)


def _never_said(dispositions: Dispositions) -> Iterator[MachineFault]:
    """Report rows for combinations of intent and situation that never arise."""
    decided: dict[str, list[Key]] = {}
    arising = set[str]()
    for key in dispositions.keys():
        row = dispositions.find(key)
        if row is None or row.name in arising:
            continue
        if (Intent(key[0]), Situation(key[1])) in NEVER_SAID:
            decided.setdefault(row.name, []).append(key)
        else:
            arising.add(row.name)
    for name, keys in decided.items():
        if name not in arising and not _is_needed(dispositions, name, keys):
            why = NEVER_SAID[Intent(keys[0][0]), Situation(keys[0][1])]
            message = f"{dispositions.in_words(keys[0])}: this never arises. {why}"
            yield fault(dispositions.name, "unreachable", f"row `{name}`", message)


# Acknowledgements ---------------------------------------------------------------------------------


def _untrue_acks(dispositions: Dispositions, deliveries: Deliveries) -> Iterator[MachineFault]:
    """Report acknowledgements that contradict what is done, or are missing; one fault for each row."""
    reported = set[str]()
    reach = {row.name: given(deliveries, row.cause) for row in dispositions.rows}
    for key in dispositions.keys():
        row = dispositions.find(key)
        if row is None or row.name in reported:
            continue
        if row.ack:
            kind, problem = "untrue-ack", _contradiction(row.ack, row, key, reach[row.name])
        elif row.action in ACKNOWLEDGED and row.action != Action.REFUSE:
            kind, problem = "missing-ack", f"{row.action}, and the sender is told nothing"
        else:
            continue
        if problem:
            reported.add(row.name)
            fitting = [ack for ack in ACKS if not _contradiction(ack, row, key, reach[row.name])]
            hint = f"True there: {', '.join(f'`{ack}`' for ack in fitting) or 'none'}."
            message = f"{dispositions.in_words(key)}: {problem}"
            yield fault(dispositions.name, kind, f"row `{row.name}`", message, hint)


def _contradiction(ack: str, row: DispositionRow, key: Key, reach: Mapping[str, Delivery]) -> str:
    """Say what an acknowledgement contradicts where a row decides; empty if it is true."""
    use = ACK_USES.get(ack)
    if use is None:
        return f"there is no acknowledgement `{ack}`"
    if row.action not in use.actions:
        what = f"action {row.action}"
    elif use.intents and key[0] not in use.intents:
        what = f"intent {key[0]}"
    elif use.situations and key[1] not in use.situations:
        what = f"situation {key[1]}"
    else:
        what = _contradicted_reach(use, row.cause, reach)
    return f"ack `{ack}` ({ACKS[ack]}) contradicts {what}" if what else ""


def _contradicted_reach(use: AckUse, cause: str, reach: Mapping[str, Delivery]) -> str:
    """Say what of a cause's reach an acknowledgement contradicts; empty if nothing."""
    children = {relation: reach.get(relation, Delivery.NONE) for relation in BELOW}
    if use.is_for_turn and reach.get(Relation.SELF) != Delivery.STEER:
        return f"cause `{cause}`, which does not steer the turn"
    if use.is_for_children and Delivery.STEER not in children.values():
        return f"cause `{cause}`, which steers no child"
    ended = [relation for relation, action in children.items() if action in ENDS]
    if use.spares_children and ended:
        return f"cause `{cause}`, which ends a {ended[0]}"
    return ""
