"""Custom routes: what people write as `[[route]]`, put in front of a pair of tables.

A route is for a message, or for a cause. One for a message says when it applies and which relation gets
what; it becomes a row of the first table. Where a cause of the second table has just this reach, the
row names it; otherwise the route brings a cause of its own, with rows for it. A route for a cause
becomes rows of the second table.

A route without `when.session` applies wherever what it asks for is possible. Everything that cannot
be translated is reported at once, with the place in the route; whether the result is safe is for
`route_check.py` to say.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Final

from msgspec import field
from msgspec.structs import replace

from ..machines.delivery import ENDS, Cause, Delivery, DeliveryRow, Relation
from ..machines.disposition import ACKS, Action, DispositionRow, Intent, Situation
from ..machines.routes import Routes
from ..machines.routing import Row, Table
from ..machines.value import Value
from .route_check import POSSIBLE, is_heard

_CHILDREN: Final = (Relation.FOREGROUND_CHILD, Relation.BACKGROUND_CHILD)

TARGETS: Final[Mapping[str, tuple[Relation, ...]]] = {
    "self": (Relation.SELF,),
    "children": _CHILDREN,
    "children.active": (Relation.FOREGROUND_CHILD,),
    "children.background": (Relation.BACKGROUND_CHILD,),
    "children.detached": (Relation.DETACHED_CHILD,),
    "side_talks": (Relation.SIDE_TALK,),
    "goal": (Relation.GOAL,),
    "everybody": (Relation.SELF, *_CHILDREN, Relation.SIDE_TALK, Relation.GOAL),
}
"""The targets that can be named. `children.active` are those the turn waits for.

Of these, `children.detached` are declared to go on without it; a route that does not name them gives them
what it gives to the others.
"""

_EVERYTHING: Final = (Relation.SELF, *_CHILDREN, Relation.SIDE_TALK)

_TO_QUEUE: Final = {"turn": Action.RUN, "queue": Action.QUEUE, "refuse": Action.REFUSE}

OUTCOMES: Final = (*_TO_QUEUE, *Delivery)
"""The values of `what`: as a turn, into the queue, back to the sender; or a delivery."""

_DEFAULT_ACKS: Final = {
    Action.RUN: "",
    Action.QUEUE: "queued",
    Action.REFUSE: "",
    Action.INTERRUPT: "interrupting",
}
_ASKED: Final = (*_EVERYTHING, Relation.DETACHED_CHILD, Relation.GOAL)
_BY_INTENT: Final = {
    Intent.INTERRUPT_BARE: Cause.BARE_WORD,
    Intent.REVERT: Cause.BARE_WORD,
    Intent.INTERRUPT_MORE: Cause.MORE_WORD,
    Intent.EXPLICIT_INTERRUPT: Cause.STOP,
}


class RouteOutcome(Value):
    """A delivery to some targets: keys of `TARGETS`, one of `OUTCOMES`."""

    to: tuple[str, ...]
    what: str


class Override(Value):
    """One `[[route]]`; exactly one of `message` (intents) and `causes` is not empty.

    `when` narrows it to some values of the other dimensions of the first table.
    """

    name: str
    message: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    deliver: tuple[RouteOutcome, ...] = ()
    ack: str = ""
    why: str = ""


class InvalidRoute(Value):
    """Something that a route cannot mean: which route, which of its keys, and why."""

    route: int
    key: str
    message: str


def put_in_front(
    routes: Routes, overrides: Sequence[Override]
) -> tuple[Routes, tuple[InvalidRoute, ...]]:
    """Put routes before the rows of two tables, in their order.

    Returns the tables as far as the routes could be translated, without rows that never decide
    anything any more, and whatever could not.
    """
    invalid_routes = [*_taken_names(routes, overrides)]
    for number, one in enumerate(overrides):
        invalid_routes += [
            InvalidRoute(route=number, key=key, message=message) for key, message in _faults_of(one)
        ]
    if invalid_routes:
        return routes, tuple(invalid_routes)
    given = [
        (number, row)
        for number, one in enumerate(overrides)
        if one.causes
        for row in _delivery_rows(one, one.causes)
    ]
    deliveries = routes.deliveries.override([row for _, row in given])
    told = replace(routes, deliveries=deliveries)
    said: list[tuple[int, DispositionRow]] = []
    own: list[DeliveryRow] = []
    for number, one in enumerate(overrides):
        if one.message:
            row, more = _disposition_row(told, one)
            said.append((number, row))
            own += more
    dispositions = routes.dispositions.override([row for _, row in said])
    dead = [*_dead(routes.dispositions, said), *_dead(routes.deliveries, given)]
    result = replace(
        routes,
        dispositions=dispositions.settled(),
        deliveries=_with_causes(deliveries, own).settled(),
    )
    return result, tuple(dead)


def _taken_names(routes: Routes, overrides: Sequence[Override]) -> Iterable[InvalidRoute]:
    """Report names that another row or route has, or that a route's rows would have."""
    rows = (*routes.dispositions.rows, *routes.deliveries.rows)
    seen = {row.name: "a shipped row" for row in rows}
    for number, one in enumerate(overrides):
        parts = [f"{one.name}-{n}" for n in (*range(1, len(one.deliver) + 1), "else")]
        for name in (one.name, *parts):
            if name in seen:
                yield InvalidRoute(
                    route=number,
                    key="name",
                    message=f"`{name}` is the name of {seen[name]} already",
                )
        seen |= dict.fromkeys((one.name, *parts), "another route")


def _faults_of(route: Override) -> Iterable[tuple[str, str]]:
    """Report what the parts of a route cannot mean together, with the key that is to blame."""
    if bool(route.message) == bool(route.causes):
        yield "", "a route is for a `message` or for a `cause`: name one of them"
        return
    if not route.deliver:
        yield "", "`deliver` is missing"
        return
    if route.causes:
        yield from _faults_of_cause(route)
    else:
        yield from _faults_of_message(route)


def _faults_of_cause(route: Override) -> Iterable[tuple[str, str]]:
    for key in ("when", "ack"):
        if getattr(route, key):
            yield key, f"`{key}` belongs to a route for a message, not to one for a cause"
    for gift in route.deliver:
        if gift.what in _TO_QUEUE:
            yield "deliver", f"a cause has no text for a `{gift.what}`"
        elif gift.what == Delivery.NONE and not route.why.strip():
            yield "deliver", "`none` needs the reason in `why`"


def _faults_of_message(route: Override) -> Iterable[tuple[str, str]]:
    plain = [gift for gift in route.deliver if gift.what in _TO_QUEUE]
    if plain and (len(route.deliver) > 1 or plain[0].to != ("self",)):
        yield "deliver", f"`{plain[0].what}` goes only to `self`"
        return
    action = _action(route)
    if action is None:
        yield "deliver", "there is no recipient: the message would be lost"
        return
    given = _reach(route)
    if action is Action.INTERRUPT and Delivery.STEER in given.values():
        yield "deliver", "a message interrupts or steers, and does not do both"
    if action is Action.STEER and Relation.SELF in given and len(given) > 1:
        yield "deliver", "a steer is for the turn or for others, and not for both"
    if action is Action.INTERRUPT and given.get(Relation.SELF) is Delivery.FINALIZE:
        yield "deliver", "a message can stop the session; `/finalize` ends it permanently"
    if action is Action.REFUSE and not route.ack:
        yield "deliver", "a refusal needs an `ack` with the reason"
    if Intent.COMMAND in route.message:
        yield "message", "a slash command is carried out before any route is asked"
    for situation in route.when.get("situation", ()):
        if action not in POSSIBLE[Situation(situation)]:
            yield "when", f"while the session is {situation} a message cannot be {_DONE[action]}"


_DONE: Final = {
    Action.RUN: "run",
    Action.QUEUE: "queued",
    Action.STEER: "a steer: no turn runs that could take it in",
    Action.INTERRUPT: "an interrupt: there is nothing to stop",
    Action.REFUSE: "refused",
}


def _action(route: Override) -> Action | None:
    """Return the action on a message that fits its deliveries."""
    gifts = {gift.what for gift in route.deliver}
    for what, action in _TO_QUEUE.items():
        if what in gifts:
            return action
    if not gifts.isdisjoint(ENDS):
        return Action.INTERRUPT
    return Action.STEER if Delivery.STEER in gifts else None


def _disposition_row(
    routes: Routes, route: Override
) -> tuple[DispositionRow, Sequence[DeliveryRow]]:
    """Translate a route for a message; also the rows of its own cause, if it needs one."""
    action = _action(route)
    assert action is not None
    wanted = _reach(route)
    when = {"intent": route.message, "situation": _possible(action, wanted), **route.when}
    rows: Sequence[DeliveryRow] = ()
    cause = ""
    if action in (Action.STEER, Action.INTERRUPT):
        cause = _known_cause(routes, route, action, wanted) or f"route.{route.name}"
        if cause not in routes.deliveries.space["cause"]:
            rows = _delivery_rows(route, (cause,))
    return DispositionRow(
        name=route.name,
        when=when,
        action=action,
        cause=cause,
        ack=_ack(route, action),
        doc=route.why,
    ), rows


def _possible(action: Action, reach: Mapping[Relation, Delivery]) -> tuple[str, ...]:
    """List the situations in which an action can be done, and a steer is sure to have a recipient."""
    return tuple(
        key
        for key, actions in POSSIBLE.items()
        if action in actions and (action is not Action.STEER or is_heard(key, reach))
    )


def _ack(route: Override, action: Action) -> str:
    if route.ack:
        return route.ack
    if action is Action.STEER:
        return "steered" if Relation.SELF in _reach(route) else "steered_child"
    return _DEFAULT_ACKS[action]


def _reach(route: Override) -> dict[Relation, Delivery]:
    """Map each relation to what it gets; the first delivery that names it wins."""
    reach: dict[Relation, Delivery] = {}
    for gift in route.deliver:
        for target in gift.to:
            for relation in TARGETS[target]:
                if gift.what not in _TO_QUEUE:
                    reach.setdefault(relation, Delivery(gift.what))
    if all(reach.get(relation) in (Delivery.CANCEL, Delivery.BOUNDARY) for relation in _EVERYTHING):
        reach.setdefault(Relation.GOAL, Delivery.CANCEL)  # nothing is left to work for it
    return {relation: what for relation, what in reach.items() if what != Delivery.NONE}


def _known_cause(
    routes: Routes, route: Override, action: Action, wanted: Mapping[Relation, Delivery]
) -> str:
    """Find a cause that reaches just these in just this way, the most fitting first."""
    own = _BY_INTENT.get(Intent(route.message[0]), Cause.MESSAGE)
    causes = [own, Cause.MESSAGE, Cause.MORE_WORD, Cause.BARE_WORD, Cause.STOP]
    if action is Action.STEER:
        causes = [Cause.STEER, Cause.STEER_THROUGH]
    return next((cause for cause in causes if _reach_of(routes, cause, wanted) == wanted), "")


def _reach_of(
    routes: Routes, cause: str, wanted: Mapping[Relation, Delivery]
) -> Mapping[str, Delivery]:
    """Return the reach of a cause, without children that are declared so, unless they are wanted."""
    reach = dict(routes.reach(cause))
    if Relation.DETACHED_CHILD not in wanted:
        reach.pop(Relation.DETACHED_CHILD, None)
    return reach


def _delivery_rows(route: Override, causes: tuple[str, ...]) -> list[DeliveryRow]:
    """Translate what a route gives; a cause of its own gives the others nothing."""
    rows: list[DeliveryRow] = []
    why = route.why or f"Route `{route.name}`."
    named = {target for gift in route.deliver for target in gift.to}
    for number, gift in enumerate(route.deliver, 1):
        relations = tuple(dict.fromkeys(_relations(gift, named)))
        name = route.name if len(route.deliver) == 1 else f"{route.name}-{number}"
        where = {"cause": causes, "relation": relations}
        rows.append(DeliveryRow(name=name, when=where, action=Delivery(gift.what), why=why))
    reached = {relation for gift in route.deliver for relation in _relations(gift, named)}
    others = tuple(relation for relation in _ASKED if relation not in reached)
    if route.message and others:
        spared = f"Route `{route.name}` is not for them."
        where = {"cause": causes, "relation": others}
        rows.append(
            DeliveryRow(name=f"{route.name}-else", when=where, action=Delivery.NONE, why=spared)
        )
    return rows


def _relations(gift: RouteOutcome, named: Collection[str]) -> Iterable[Relation]:
    """Give the relations that a delivery names, and those that go with them; `named` are all targets."""
    for target in gift.to:
        for relation in TARGETS[target]:
            yield relation
            if relation is Relation.FOREGROUND_CHILD and "children.detached" not in named:
                yield Relation.DETACHED_CHILD


def _with_causes(table: Table[DeliveryRow], rows: list[DeliveryRow]) -> Table[DeliveryRow]:
    """Add causes that only these rows know, and the rows, in front."""
    new = [cause for row in rows for cause in row.when["cause"]]
    causes = tuple(dict.fromkeys((*table.space["cause"], *new)))
    space = {**table.space, "cause": causes}
    return Table(table.name, space, (*rows, *table.rows), table.overrides + len(rows))


def _dead(table: Table[Any], rows: Iterable[tuple[int, Row]]) -> Iterable[InvalidRoute]:
    """Report routes that earlier routes leave nothing to decide."""
    taken = set[tuple[str, ...]]()
    for number, row in rows:
        choices = [row.when.get(name, values) for name, values in table.space.items()]
        cases = set(product(*choices))
        if cases <= taken:
            message = "never decides anything: earlier routes match wherever it does"
            yield InvalidRoute(route=number, key="", message=message)
        taken |= cases


assert set(_DEFAULT_ACKS.values()) - {""} <= set(ACKS)
