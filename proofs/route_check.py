"""Proofs about the two routing tables, by looking at every combination.

- Totality: each combination has a row; no row is dead, that is, decides nothing.
- Talk stops no other session: no chain that starts with a conversational message ends in the cancel or
  finalize of anything but the turn it was sent to. A chain runs through both tables: a message has a
  cause, the cause reaches relations, a cancelled turn ends, and that is the next cause; a child
  that is steered has its own deliveries.
- Cancels reach all: where a person wants work to stop (`CANCELS`), it ends for the session and for
  everybody below it, but for children whose agents the person declared to go on, which a row names
  with its reason. Any other cause that cancels or finalizes a session, such as a time limit, does
  so to everybody below it, or its row says why not. It then holds for the whole tree, since a
  child's cause (`parent`, `finalize`) is under the same rule.
- Control is never dropped: a message that wants to stop or command something is refused only while
  the session is being finalized, and then with a reason. While anything runs it stops it, unless the
  strategy is `never` and only words ask for it.
- No steer is lost: a recipient that exists takes it in; and a message at rest runs.
- Rows do what they say: an interrupt stops the turn, a steer has a recipient, and no row asks for
  what cannot be: to run a message beside a running turn, or to steer where none runs.
- What the table promises is what runs: no delivery that nothing carries out (`NEVER_ASKED`), and no
  row that decides only what never arises.
- Acknowledgements are true (`ACK_USES`), and none is missing where a message waits, steers, or stops.

The rules look at every cause that the program raises, also at those that no message has:
a steer that names a child, limits of time and tokens, the end of a turn.

Every fault names a counterexample and a hint. Faults of a kind in `SAFETY` break a promise to people,
so a table that has them may be looked at and compared, and used by a person who confirms it; all
others are mistakes.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from ..machines.delivery import (
    ENDS,
    FINAL,
    IN_A_HURRY,
    STEERS,
    Cause,
    Delivery,
    DeliveryRow,
    Relation,
    never_asked,
)
from ..machines.disposition import (
    ACKS,
    Action,
    DispositionRow,
    Intent,
    Situation,
    Strategy,
)
from ..machines.routing import Key, Table
from .acknowledgements import ACK_USES, ACKNOWLEDGED, NEVER_SAID, AckUse
from .machine_check import MachineFault

Dispositions = Table[DispositionRow]
Deliveries = Table[DeliveryRow]

BELOW: Final = (Relation.FOREGROUND_CHILD, Relation.BACKGROUND_CHILD, Relation.SIDE_TALK)
"""The relations that are sessions below this one, whatever their agents are declared to do."""

CONVERSATIONAL: Final = (
    Intent.CONVERSE,
    Intent.ACKNOWLEDGEMENT,
    Intent.STEER_WORD,
    Intent.INTERRUPT_MORE,
    Intent.EXPLICIT_QUEUE,
    Intent.EXPLICIT_TURN,
    Intent.EXPLICIT_STEER,
)
"""Intents that may stop the turn itself and pause the session's own goal, and nothing else."""

CONTROL: Final = (
    Intent.INTERRUPT_BARE,
    Intent.REVERT,
    Intent.EXPLICIT_INTERRUPT,
    Intent.COMMAND,
)
"""Intents that are never dropped."""

CANCELS: Final = (
    Cause.STOP,
    Cause.NEW,
    Cause.BARE_WORD,
    Cause.SIGNAL,
    Cause.PARENT,
    Cause.PARENT_BOUNDARY,
    Cause.FINALIZE,
)
"""Causes by which a person wants work to stop, here or further up."""

DECLARED: Final = (Cause.STOP, Cause.BARE_WORD)
"""Of these, those that may leave a child whose agent the person declared so; the row says why."""

LIMITS: Final = (Cause.TIMEOUT, Cause.BUDGET, Cause.NO_PROGRESS)
"""Causes without a message: a limit is reached, or a turn repeats itself."""

_ANYWAY: Final = (Action.QUEUE, Action.REFUSE)

POSSIBLE: Final = {
    Situation.IDLE: (*_ANYWAY, Action.RUN),
    Situation.HELD: (*_ANYWAY, Action.RUN),
    Situation.UNATTENDED: (*_ANYWAY, Action.RUN, Action.INTERRUPT),
    Situation.BUSY: (*_ANYWAY, Action.STEER, Action.INTERRUPT),
    Situation.ACCOMPANIED: (*_ANYWAY, Action.STEER, Action.INTERRUPT),
    Situation.DELEGATING: (*_ANYWAY, Action.STEER, Action.INTERRUPT),
    Situation.INTERRUPTING: (*_ANYWAY, Action.INTERRUPT),
    Situation.OVERTAKEN: _ANYWAY,
    Situation.FINALIZING: (Action.REFUSE,),
}
"""The actions that are possible in each situation; a slash command is carried out."""

_AT_WORK: Final = (
    Situation.UNATTENDED,
    Situation.BUSY,
    Situation.ACCOMPANIED,
    Situation.DELEGATING,
)

SAFETY: Final = {
    "kills-child": "a converse message never stops a child",
    "spared": "a limit that does not stop a child gives the reason",
    "unheard": "a stop reaches every descendant",
    "dropped-control": "a control message is never dropped, and a refusal gives the reason",
    "dropped-talk": "a message at rest runs, and a steer is taken somewhere",
    "lost": "no steer is lost",
}
"""The kinds of faults that break a promise, in contrast to mere mistakes, and the promises."""

HINTS: Final = {
    "dead-row": "Remove the row, or put it before those that match the same cases.",
    "dropped-control": "Let it interrupt; `refuse` needs an `ack`, and `finalizing` or talk.",
    "dropped-talk": "Narrow the row with `when = { session = … }`, or let it `run` or `steer`.",
    "hole": "Add a row that matches, at the end.",
    "impossible": "Narrow the row with `when = { session = … }`, or choose an action possible there.",
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


def check_routes(dispositions: Dispositions, deliveries: Deliveries) -> tuple[MachineFault, ...]:
    """Find everything that is wrong with the two tables together."""
    return tuple(
        chain(
            check_table(dispositions),
            check_table(deliveries),
            _talk_that_kills(dispositions, deliveries),
            _cancels_that_spare(deliveries),
            _unheard_cancels(deliveries),
            _unheard_messages(dispositions, deliveries),
            _dropped_control(dispositions),
            _dropped_talk(dispositions),
            _empty_words(dispositions, deliveries),
            _impossible(dispositions),
            _lost_steers(dispositions, deliveries),
            _lost_named_steers(deliveries),
            _not_carried_out(deliveries),
            _never_raised(dispositions, deliveries),
            _never_said(dispositions),
            _untrue_acks(dispositions, deliveries),
        )
    )


def check_table(table: Table[Any]) -> tuple[MachineFault, ...]:
    """Find holes and dead rows of one table, whatever it decides."""
    return (*_holes(table), *_dead_rows(table))


def fault(table: str, kind: str, where: str, message: str, hint: str = "") -> MachineFault:
    """Return a fault; its hint is that of its kind, unless it has a better one."""
    return MachineFault(
        machine=table, kind=kind, where=where, message=message, hint=hint or HINTS[kind]
    )


def given(deliveries: Deliveries, cause: str) -> dict[str, Delivery]:
    """Map each relation that has a row for a cause to what it gets."""
    rows = {relation: deliveries.find((cause, relation)) for relation in Relation}
    return {str(relation): row.action for relation, row in rows.items() if row is not None}


# Promises that nothing keeps ----------------------------------------------------------------------
# A delivery that nothing at run time carries out, and a row that no cause or message reaches, are
# mistakes, whether or not they do harm.


_BY_PARENT: Final = (Cause.PARENT, Cause.PARENT_BOUNDARY)
_AT_ONCE: Final = (Relation.SIDE_TALK, Relation.GOAL)


def _not_carried_out(deliveries: Deliveries) -> Iterator[MachineFault]:
    """Report deliveries that nothing at run time carries out; one fault for each row."""
    reported = set[str]()
    for cause, relation in deliveries.keys():
        row = deliveries.find((cause, relation))
        is_spared = relation == Relation.SELF and cause in _BY_PARENT
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
    if cause in _BY_PARENT and relation == Relation.SELF and action not in ENDS:
        return "A session stopped by its parent begins nothing more, whatever its own table says."
    if cause in STEERS:
        return "A steer delivers a text and ends nothing."
    if action == Delivery.BOUNDARY and (cause in IN_A_HURRY or relation in _AT_ONCE):
        return "Nothing waits there for the end of a tool: use `cancel`."
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
    """Report rows that decide only what nothing asks for."""
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
            kind, problem = "missing-ack", f"{row.action}, and the sender gets no acknowledgement"
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


# Holes and dead rows ------------------------------------------------------------------------------


def _holes(table: Table[Any]) -> Iterator[MachineFault]:
    """Report the first combination without a row, and how many more there are."""
    holes = [key for key in table.keys() if table.find(key) is None]
    if holes:
        more = f", and for {len(holes) - 1} other combinations" if len(holes) > 1 else ""
        message = f"no row matches {table.in_words(holes[0])}{more}"
        yield fault(table.name, "hole", "table", message)


def _dead_rows(table: Table[Any]) -> Iterator[MachineFault]:
    """Report rows that decide nothing; a shipped row may well be dead because of an override."""
    overrides, shipped = table.rows[: table.overrides], table.rows[table.overrides :]
    for layer in (overrides, shipped):
        alive = {row.name for row in table.lay_out(layer).values()}
        for row in layer:
            if row.name not in alive:
                message = "never decides anything: earlier rows match wherever it does"
                yield fault(table.name, "dead-row", f"row `{row.name}`", message)


# Talk, stops and steers ---------------------------------------------------------------------------


def _talk_that_kills(dispositions: Dispositions, deliveries: Deliveries) -> Iterator[MachineFault]:
    """Follow every conversational message to whatever it causes; one fault for each row."""
    victims = {cause: _victim(deliveries, cause) for cause in deliveries.space["cause"]}
    for key, row in _first_talk(dispositions):
        victim = victims.get(row.cause, "")
        if victim:
            message = f"{dispositions.in_words(key)}: {row.action}, cause {victim}"
            yield fault(dispositions.name, "kills-child", f"row `{row.name}`", message)
    # Whatever the message, the turn that takes it in ends some day; and any steer may name a child.
    for cause, said in (
        (Cause.TURN_ENDED, "any message, run to its end"),
        (Cause.STEER_NAMED, "`/steer @NAME TEXT`"),
        (Cause.PROVIDER_LIMIT, "a provider's limit, which is no limit of a child"),
    ):
        if victims[cause]:
            message = f"{said}: cause {victims[cause]}"
            yield fault(deliveries.name, "kills-child", f"cause `{cause}`", message)


def _first_talk(dispositions: Dispositions) -> Iterator[tuple[Key, DispositionRow]]:
    """Give each row that takes conversational messages, with the first combination it takes."""
    seen = set[str]()
    for key in dispositions.keys():
        row = dispositions.find(key)
        if row is not None and key[0] in CONVERSATIONAL and row.name not in seen:
            seen.add(row.name)
            yield key, row


def _victim(deliveries: Deliveries, cause: str) -> str:
    """Describe the shortest chain by which a cause stops another session; empty if there is none.

    A place in the search is (whether it is the session that was spoken to, cause there).
    """
    waiting = deque([(True, cause, f"`{cause}`")])
    seen = {(True, cause)}
    while waiting:
        is_own, here, path = waiting.popleft()
        for relation in Relation:
            row = deliveries.find((here, relation))
            if row is None or row.action == Delivery.NONE:
                continue
            told = f"{path} -> {row.action} {relation} (row `{row.name}`)"
            stays_own = is_own and relation in (Relation.SELF, Relation.GOAL)
            if row.action in ENDS and not stays_own:
                return told
            following = (stays_own, _next_cause(row.action))
            if following not in seen:
                seen.add(following)
                waiting.append((*following, f"{told} -> `{following[1]}`"))
    return ""


def _next_cause(action: Delivery) -> Cause:
    """Say what a delivery gives rise to where it arrives."""
    match action:
        case Delivery.FINALIZE:
            return Cause.FINALIZE
        case Delivery.STEER:
            return Cause.STEER
        case _:
            return Cause.TURN_ENDED


def _cancels_that_spare(deliveries: Deliveries) -> Iterator[MachineFault]:
    """Report descendants that a limit forgets without saying why."""
    for cause in deliveries.space["cause"]:
        if cause in CANCELS:
            continue
        own = deliveries.find((cause, Relation.SELF))
        if own is not None and cause in LIMITS and own.action not in ENDS and not own.why.strip():
            message = f"`{cause}` gives self {own.action}, without a why: the limit limits nothing"
            yield fault(deliveries.name, "spared", f"row `{own.name}`", message)
        if own is None or own.action not in ENDS:
            continue
        for relation in (*BELOW, Relation.DETACHED_CHILD):
            row = deliveries.find((cause, relation))
            if row is not None and row.action not in ENDS and not row.why.strip():
                message = (
                    f"`{cause}` gives self {own.action} but {relation} {row.action}, without a why"
                )
                yield fault(deliveries.name, "spared", f"row `{row.name}`", message)


def _unheard_cancels(deliveries: Deliveries) -> Iterator[MachineFault]:
    """Report the sessions and goals that a stop does not end; only a declaration excuses that."""
    for cause in CANCELS:
        for relation in (Relation.SELF, *BELOW, Relation.DETACHED_CHILD, Relation.GOAL):
            row = deliveries.find((cause, relation))
            is_declared = relation == Relation.DETACHED_CHILD and cause in DECLARED
            if row is not None and row.action not in ENDS and not (is_declared and row.why.strip()):
                message = f"`{cause}` gives {relation} {row.action}: it continues"
                yield fault(deliveries.name, "unheard", f"row `{row.name}`", message)


def _unheard_messages(dispositions: Dispositions, deliveries: Deliveries) -> Iterator[MachineFault]:
    """Report messages that want work to stop, and leave some of it running; one for each row."""
    reported = set[str]()
    for key in dispositions.keys():
        row = dispositions.find(key)
        if row is None or row.name in reported or not _must_stop(key):
            continue
        if row.action == Action.INTERRUPT:
            left = "" if row.cause in CANCELS else _left_alone(deliveries, row.cause)
            problem = f"interrupt, cause `{row.cause}` leaves {left} alone" if left else ""
        else:
            problem = "" if row.action == Action.REFUSE else f"{row.action}: nothing stops"
        if problem:
            reported.add(row.name)
            message = f"{dispositions.in_words(key)}: {problem}"
            yield fault(dispositions.name, "unheard", f"row `{row.name}`", message)


def _must_stop(key: Key) -> bool:
    """Whether a message means a cancel: chosen, or by nothing but words where words count."""
    intent, situation, _, strategy, _ = key
    is_meant = intent == Intent.EXPLICIT_INTERRUPT or (
        intent in (Intent.INTERRUPT_BARE, Intent.REVERT) and strategy != Strategy.NEVER
    )
    return is_meant and situation in _AT_WORK


def _left_alone(deliveries: Deliveries, cause: str) -> str:
    """Name the first of the session and those below it that a cause does not end; empty if none."""
    for relation in (Relation.SELF, *BELOW):
        row = deliveries.find((cause, relation))
        if row is not None and row.action not in ENDS:
            return relation
    return ""


def _dropped_control(dispositions: Dispositions) -> Iterator[MachineFault]:
    """Report control messages that are refused while they could still be obeyed."""
    reported = set[str]()
    for key in dispositions.keys():
        row = dispositions.find(key)
        if row is None or row.action != Action.REFUSE or row.name in reported:
            continue
        is_late = key[1] == Situation.FINALIZING
        if not row.ack:
            problem = "refused without a reason"
        elif key[0] in CONTROL and not is_late:
            problem = "a control message is refused"
        else:
            continue
        reported.add(row.name)
        message = f"{dispositions.in_words(key)}: {problem}"
        yield fault(dispositions.name, "dropped-control", f"row `{row.name}`", message)


def _dropped_talk(dispositions: Dispositions) -> Iterator[MachineFault]:
    """Report talk that is refused though nothing runs, and steers that are refused wherever one runs."""
    reported = set[str]()
    refused: dict[Key, list[DispositionRow]] = {}
    for key in dispositions.keys():
        row = dispositions.find(key)
        if row is None or key[0] not in CONVERSATIONAL:
            continue
        is_refused = row.action == Action.REFUSE
        is_at_rest = key[1] in (Situation.IDLE, Situation.HELD)
        if is_refused and is_at_rest and row.name not in reported:
            reported.add(row.name)
            message = f"{dispositions.in_words(key)}: a message at rest is refused"
            yield fault(dispositions.name, "dropped-talk", f"row `{row.name}`", message)
        if key[0] == Intent.EXPLICIT_STEER and key[1] in _AT_WORK:
            refused.setdefault((key[0], *key[2:]), []).append(row)
    for rows in refused.values():
        first = rows[0]
        if all(row.action == Action.REFUSE for row in rows) and first.name not in reported:
            reported.add(first.name)
            message = "a steer that its sender chose is refused whatever runs"
            yield fault(dispositions.name, "dropped-talk", f"row `{first.name}`", message)


def _empty_words(dispositions: Dispositions, deliveries: Deliveries) -> Iterator[MachineFault]:
    """Report rows whose action and cause do not fit each other."""
    wanted: dict[Action, tuple[Delivery, ...]] = {
        Action.INTERRUPT: ENDS,
        Action.STEER: (Delivery.STEER,),
    }
    for row in dispositions.rows:
        reach = given(deliveries, row.cause) if row.cause else {}
        if row.action in wanted and set(reach.values()).isdisjoint(wanted[row.action]):
            message = f"action {row.action}, but its cause `{row.cause}` does not do that"
        elif row.action == Action.INTERRUPT and reach.get(Relation.SELF) not in ENDS:
            message = f"action interrupt, but its cause `{row.cause}` does not stop the turn"
        elif row.action in wanted and (other := _other(row.action, reach)):
            message = f"action {row.action}, but its cause `{row.cause}` gives {other}"
        elif row.action not in wanted and row.cause:
            message = f"action {row.action} causes nothing, but names the cause `{row.cause}`"
        else:
            continue
        yield fault(dispositions.name, "inert", f"row `{row.name}`", message)


def _impossible(dispositions: Dispositions) -> Iterator[MachineFault]:
    """Report rows that ask for what cannot be done; one fault for each."""
    reported = set[str]()
    for key in dispositions.keys():
        row = dispositions.find(key)
        if row is None or row.name in reported:
            continue
        is_command = key[0] == Intent.COMMAND
        if is_command and row.action == Action.REFUSE:
            continue  # dropped control, which is worse
        if is_command != (row.action == Action.COMMAND):
            problem = "a slash command is carried out, and nothing else is"
        elif not is_command and row.action not in POSSIBLE[Situation(key[1])]:
            problem = f"action {row.action} is not possible there"
        else:
            continue
        reported.add(row.name)
        message = f"{dispositions.in_words(key)}: {problem}"
        yield fault(dispositions.name, "impossible", f"row `{row.name}`", message)


def is_heard(situation: str, reach: Collection[str]) -> bool:
    """Whether a recipient of a steer is sure to exist."""
    there = {
        Situation.ACCOMPANIED: Relation.BACKGROUND_CHILD,
        Situation.DELEGATING: Relation.FOREGROUND_CHILD,
    }
    return Relation.SELF in reach or there.get(Situation(situation)) in reach


def _lost_steers(dispositions: Dispositions, deliveries: Deliveries) -> Iterator[MachineFault]:
    """Report steers whose recipients may not exist; one fault for each row."""
    reported = set[str]()
    for key in dispositions.keys():
        row = dispositions.find(key)
        if row is None or row.action != Action.STEER or row.name in reported:
            continue
        got = given(deliveries, row.cause)
        got.pop(Relation.DETACHED_CHILD, None)  # it is one of those that the turn waits for
        reach = [who for who, what in got.items() if what == Delivery.STEER]
        if reach and not is_heard(key[1], reach):
            reported.add(row.name)
            message = f"{dispositions.in_words(key)}: the steer is for {', '.join(reach)} alone"
            yield fault(dispositions.name, "lost", f"row `{row.name}`", message)


def _lost_named_steers(deliveries: Deliveries) -> Iterator[MachineFault]:
    """Report children that may be named in a steer, and do not take it in."""
    for relation in BELOW:
        row = deliveries.find((Cause.STEER_NAMED, relation))
        if row is not None and row.action != Delivery.STEER:
            message = (
                f"`/steer @NAME TEXT` for a {relation}: `steer_named` gives it {row.action}, "
                "so the text is refused"
            )
            hint = f"Give `steer` to {relation}."
            yield fault(deliveries.name, "lost", f"row `{row.name}`", message, hint)


def _other(action: Action, reach: Mapping[str, Delivery]) -> str:
    """Name a recipient of what the action of a message does not carry out; empty if there is none."""
    unfit = ENDS if action == Action.STEER else (Delivery.STEER,)
    return next((f"{what} to {who}" for who, what in reach.items() if what in unfit), "")
