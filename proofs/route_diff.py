"""The differences of two pairs of tables: combinations with another outcome, as sentences.

Two tables are compared by the outcome of a message, not by how their rows are written: the action,
the acknowledgement, and what each recipient gets. Combinations that differ alike are covered by boxes,
the widest that are found first, and each box is one difference.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import product
from typing import Final

from ..machines.delivery import Cause, Delivery, Relation
from ..machines.disposition import Action
from ..machines.routes import Routes
from ..machines.routing import Key
from ..machines.value import Value
from .explanation import (
    CAUSES,
    RELATIONS,
    SITUATIONS,
    ExplainedDelivery,
    Explanation,
    everybody,
    explain,
)

Box = Mapping[str, tuple[str, ...]]
"""Some values of each dimension; one that is left out may have any."""

EXAMPLES: Final[Mapping[str, str]] = {
    "converse": "how is it going?",
    "acknowledgement": "ok, thanks",
    "steer_word": "actually, prefer the short form",
    "interrupt_bare": "please just stop",
    "interrupt_more": "make the exit code 2 instead",
    "revert": "stop and revert",
    "explicit_queue": "and the tests (to the queue)",
    "explicit_turn": "and the tests (as a turn of its own)",
    "explicit_steer": "prefer the short form (as a steer)",
    "explicit_interrupt": "do this first (as an interrupt)",
    "command": "/queue",
    **CAUSES,
}
"""Something to say, or to happen, for each intent and for each cause that no message has."""

SEEDS: Final = 24
"""How many combinations a box is tried to grow from."""

BY_THEMSELVES: Final = (
    Cause.STOP,
    Cause.NEW,
    Cause.SIGNAL,
    Cause.TIMEOUT,
    Cause.BUDGET,
    Cause.NO_PROGRESS,
    Cause.PARENT,
    Cause.FINALIZE,
    Cause.TURN_ENDED,
    Cause.STEER_NAMED,
)
"""Causes that come about without a message; what messages cause is compared with the message."""


class Difference(Value):
    """Combinations in which one outcome stands against another; `cells` counts them.

    `where` is over the first table's dimensions, or `cause` and `relation`. `ours` and `theirs` are
    the outcomes in words, `example` one thing that is treated differently.
    """

    where: Box
    cells: int
    ours: str
    theirs: str
    example: str


def differences(ours: Routes, theirs: Routes) -> list[Difference]:
    """List where two pairs of tables differ: on messages first, then on other causes."""
    return [*_said(ours, theirs), *_happening(ours, theirs)]


def _said(ours: Routes, theirs: Routes) -> Iterator[Difference]:
    space = ours.dispositions.space
    groups: dict[tuple[str, str], list[Key]] = {}
    for key in ours.dispositions.keys():
        here, there = (explain(routes, key, everybody(key[1])) for routes in (ours, theirs))
        if here.outcome != there.outcome:
            groups.setdefault(apart(here, there), []).append(key)
    for (mine, other), keys in groups.items():
        for box, cells in boxes(space, keys):
            example = EXAMPLES[box.get("intent", tuple(space["intent"]))[0]]
            yield Difference(where=box, cells=cells, ours=mine, theirs=other, example=example)


def _happening(ours: Routes, theirs: Routes) -> Iterator[Difference]:
    space = {"cause": tuple(BY_THEMSELVES), "relation": tuple(Relation)}
    groups: dict[tuple[Delivery, Delivery], list[Key]] = {}
    for key in product(*space.values()):
        pair = (ours.deliveries.decide(key).action, theirs.deliveries.decide(key).action)
        if pair[0] != pair[1]:
            groups.setdefault(pair, []).append(key)
    for actions, keys in groups.items():
        for box, cells in boxes(space, keys):
            cause = box.get("cause", space["cause"])[0]
            relations = box.get("relation", space["relation"])
            who = ", ".join(RELATIONS[relation] for relation in relations)
            told = [f"{who} {DELIVERED[action]}" for action in actions]
            yield Difference(
                where=box, cells=cells, ours=told[0], theirs=told[1], example=EXAMPLES[cause]
            )


DELIVERED: Final[Mapping[Delivery, str]] = {
    Delivery.CANCEL: "is stopped",
    Delivery.FINALIZE: "is finalized",
    Delivery.STEER: "receives it",
    Delivery.NONE: "continues",
}


_DONE: Final[Mapping[Action, str]] = {
    Action.RUN: "runs at once",
    Action.QUEUE: "is queued",
    Action.STEER: "steers",
    Action.INTERRUPT: "interrupts",
    Action.REFUSE: "is refused",
    Action.COMMAND: "is carried out",
}


def apart(here: Explanation, there: Explanation) -> tuple[str, str]:
    """Return both outcomes in words, and leave out the recipients that both treat alike."""
    if here.row.action != there.row.action:
        return _in_words(here, here.given, here.row.ack), _in_words(
            there, there.given, there.row.ack
        )
    actions = [
        {receipt.who.name: receipt.row.action for receipt in each.receipts}
        for each in (here, there)
    ]
    others = {name for name in actions[0] if actions[0][name] == actions[1].get(name)}
    told: list[str] = []
    for each, other in ((here, there), (there, here)):
        given = [receipt for receipt in each.receipts if receipt.who.name not in others]
        told.append(_in_words(each, given, each.row.ack if each.row.ack != other.row.ack else ""))
    return told[0], told[1]


def _in_words(explanation: Explanation, given: Iterable[ExplainedDelivery], ack: str) -> str:
    """Say what is done, and what each recipient gets."""
    action = explanation.row.action
    done = _DONE[action] if action else ""
    told = f" (`{ack}`)" if ack else ""
    got = ", ".join(f"{receipt.who.name} {DELIVERED[receipt.row.action]}" for receipt in given)
    return ": ".join(part for part in (f"{done}{told}", got) if part)


def place_in_words(difference: Difference) -> str:
    """Say where two tables differ, as the begin of a sentence."""
    where = dict(difference.where)
    if "cause" in where or "relation" in where:
        return "On " + ", ".join(where.get("cause", ("anything",)))
    said = " or ".join(where.pop("intent", ("anything",)))
    doing = where.pop("situation", ())
    while_ = f" while {' or '.join(SITUATIONS[situation] for situation in doing)}" if doing else ""
    rest = "".join(f", {name} {' or '.join(values)}" for name, values in where.items())
    return f"On {said}{while_}{rest}"


def boxes(space: Mapping[str, tuple[str, ...]], keys: Iterable[Key]) -> Iterator[tuple[Box, int]]:
    """Cover combinations with boxes that hold nothing else; each with how many it adds."""
    left = dict.fromkeys(keys)
    whole = frozenset(left)
    values = tuple(space.values())
    while left:
        step = max(1, len(left) // SEEDS)
        grown = (_grown(values, seed, whole, way) for seed in [*left][::step] for way in (1, -1))
        sides = max(grown, key=lambda side: sum(key in left for key in product(*side)))
        before = len(left)
        for key in product(*sides):
            left.pop(key, None)
        box = {
            name: tuple(value for value in known if value in side)
            for (name, known), side in zip(space.items(), sides, strict=True)
            if len(side) < len(known)
        }
        yield box, before - len(left)


def _grown(
    space: tuple[tuple[str, ...], ...], seed: Key, whole: Collection[Key], way: int
) -> list[list[str]]:
    """Widen a combination, one dimension after the other, as far as nothing else gets in."""
    sides = [[value] for value in seed]
    for number in range(len(space))[::way]:
        for value in space[number]:
            wider = [*sides[:number], [value], *sides[number + 1 :]]
            if value not in sides[number] and all(key in whole for key in product(*wider)):
                sides[number].append(value)
    return sides
