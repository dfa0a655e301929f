"""Two sessions side by side: where they part, and what was asked, called, changed and spent in each.

What is compared is what was said, answered, called and returned, in order; not when, and under which ids.
Paths in the sessions' own folders count as the same, so that a session can be compared with one that did
the same elsewhere. A fork begins with the steps of the session that it was forked from.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice, zip_longest
from typing import Any

from msgspec.structs import replace

from ...journal import entries as e
from ...journal.codec import decode_entry, encode_entry, encode_whole
from ...journal.store import SessionRow, Store, StoredEntry
from ...journal.turn_facts import TurnFacts
from ...machines import protocol as m
from ...machines.conversation import Usage
from ...machines.errors import UnknownSession
from ...machines.value import Value
from ...ports.tools.text import counted
from ..wording.formats import one_line
from ..wording.redaction import Redactor

_SHOWN = 300  # characters of a step
_OTHERS = {True: "maybe, by commands", False: "-"}
_LONGEST, _MOST = 4_000, 5_000  # characters of a step, and steps of a session, on the page


class SessionStep(Value):
    """One step of a session: entry `seq` of `turn`; `kind` is said, answered, asked, called or ended."""

    seq: int
    turn: str
    kind: str
    text: str


class SessionFacts(Value):
    """What a session came to: turns, calls by tool, lines by file, tokens and cost, seconds in all.

    What was restored is no file of it; `is_blind`: commands may have changed files beside these.
    """

    session: str
    turns: int
    model_calls: int
    calls: dict[str, int]
    files: dict[str, tuple[int, int]]
    is_blind: bool
    usage: Usage
    seconds: float


class Comparison(Value):
    """How many steps are the same; the first that are not, none where one ends before; the facts."""

    common: int
    first: tuple[SessionStep | None, SessionStep | None]
    facts: tuple[SessionFacts, SessionFacts]

    @property
    def is_same(self) -> bool:
        """Whether the sessions do not part."""
        return self.first == (None, None)


def compared(store: Store, left: SessionRow, right: SessionRow) -> Comparison:
    """Compare two sessions of a home."""
    count = 0
    parted: tuple[SessionStep | None, SessionStep | None] = (None, None)
    for one, other in zip_longest(_steps(store, left), _steps(store, right)):
        if one is None or other is None or (one.kind, one.text) != (other.kind, other.text):
            parted = one, other
            break
        count += 1
    return Comparison(common=count, first=parted, facts=(_facts(store, left), _facts(store, right)))


def _steps(store: Store, row: SessionRow) -> Iterator[SessionStep]:
    for part, upto in _with_origins(store, row):
        for stored in store.entries(part.session, upto=upto):
            entry = decode_entry(stored.data)
            for kind, text in _told(entry):
                own = text.replace(part.folder, ".") if part.folder else text
                turn = getattr(entry, "turn", "")
                yield SessionStep(seq=stored.seq, turn=turn, kind=kind, text=own)


def _with_origins(store: Store, row: SessionRow) -> list[tuple[SessionRow, int | None]]:
    """Return a session behind those that it was forked from, each with its last entry that counts."""
    found: list[tuple[SessionRow, int | None]] = [(row, None)]
    while True:
        first = next(iter(store.entries(found[0][0].session, upto=1)), None)
        opened = decode_entry(first.data) if first is not None else None
        origin, _, seq = getattr(opened, "forked_from", "").partition("@")
        if not origin or any(origin == part.session for part, _ in found):
            return found
        try:
            found.insert(0, (store.row(origin), int(seq)))
        except UnknownSession:  # it was deleted
            return found


def _told(entry: e.Entry) -> Iterator[tuple[str, str]]:
    """Yield what an entry adds to what is compared; the ids of calls are ours, and left out."""
    match entry:
        case e.TurnStarted() | e.Steered():
            yield from (("said", message.text) for message in entry.messages)
        case e.Answered() | e.AnswerCut():
            yield from (("answered", message.text) for message in entry.messages if message.text)
        case e.ToolIntended():
            yield "called", f"{entry.tool} {json.dumps(entry.arguments, sort_keys=True)}"
        case e.ToolRefused():
            yield "ended", f"{entry.tool}: {entry.status}"
        case e.ToolEnded():
            texts = "\n".join(message.text for message in entry.messages)
            yield "ended", f"{entry.tool}: {entry.end.status}\n{texts}"
        case e.QuestionAnswered():
            yield "asked", entry.choice
        case e.TurnEnded():
            yield "ended", f"turn: {entry.status} {entry.reason}".rstrip()
        case e.Interrupted():
            yield "ended", f"turn: interrupted, {entry.cause}"
        case _:
            return


def _facts(store: Store, row: SessionRow) -> SessionFacts:
    turns = model_calls = 0
    calls, changes, usage = Counter[str](), TurnFacts(), Usage()
    back = dict[str, m.ChangedFile]()
    first: StoredEntry | None = None
    last: StoredEntry | None = None
    for stored in store.entries(row.session):
        first, last = first or stored, stored
        match decode_entry(stored.data):
            case e.TurnStarted():
                turns += 1
            case e.Answered(usage=spent):
                model_calls, usage = model_calls + 1, usage + spent
            case e.ToolIntended(tool=tool):
                calls[tool] += 1
            case e.ToolEnded() as ended:
                changes = changes.after(ended, None)
            case e.Reverted(is_dry_run=False, scope="undo", restored=restored):
                again = {path: back[path] for path in restored if path in back}
                changes = replace(changes, files={**changes.files, **again})
            case e.Reverted(is_dry_run=False, restored=restored):
                back |= {path: changes.files[path] for path in restored if path in changes.files}
                changes = changes.resumed(restored)
            case _:
                continue
    return SessionFacts(
        session=row.session,
        turns=turns,
        model_calls=model_calls,
        calls=dict(calls),
        files={path: (file.added, file.removed) for path, file in changes.files.items()},
        is_blind=changes.is_blind,
        usage=usage,
        seconds=last.time - first.time if first and last else 0.0,
    )


def all_steps(store: Store, row: SessionRow, redactor: Redactor) -> list[SessionStep]:
    """Return the steps that are compared, for people: with texts of bounded length, and as many."""
    return [
        replace(step, text=redactor.text(step.text[:_LONGEST]))
        for step in islice(_steps(store, row), _MOST)
    ]


def facts_rows(found: Comparison, redactor: Redactor) -> list[tuple[str, str, str]]:
    """Return the facts of both, each with its name."""
    return [
        (redactor.line(name), redactor.line(one), redactor.line(other))
        for name, one, other in _side_by_side(*found.facts)
    ]


# For people and programs --------------------------------------------------------------------------


def comparison_data(found: Comparison, redactor: Redactor) -> dict[str, Any]:
    """Write a comparison as data."""
    whole = {**encode_whole(found), "is_same": found.is_same}
    data: dict[str, Any] = redactor.data(whole)
    return data


def comparison_text(found: Comparison, redactor: Redactor) -> str:
    """Write a comparison for people: where the sessions part, then their facts side by side."""
    names = [facts.session for facts in found.facts]
    lines = [f"The same in all {counted(found.common, 'step')}."]
    if not found.is_same:
        lines = [f"The same for {counted(found.common, 'step')}, then:"]
        lines += [
            f"  {name}  {_shown(step, redactor) if step is not None else 'ends here'}"
            for name, step in zip(names, found.first, strict=True)
        ]
    lines.append("")
    cells = [("", *names), *facts_rows(found, redactor)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(line.rstrip())
    return "\n".join(lines)


def step_text(entry: e.Entry, redactor: Redactor) -> str:
    """Write one entry for people: what it adds to a session, or else what it is."""
    for kind, text in _told(entry):
        return f"{kind}: {one_line(redactor.text(text), _SHOWN)}"
    data = encode_entry(entry)
    kind = str(data.pop("kind")).replace("_", " ")
    known = {name: value for name, value in data.items() if name not in ("turn", "messages")}
    return f"{kind} {one_line(redactor.text(json.dumps(known, default=str)), _SHOWN)}"


def _shown(step: SessionStep, redactor: Redactor) -> str:
    place = f"{step.turn} " if step.turn else ""
    return f"{place}(entry {step.seq}) {step.kind}: {one_line(redactor.text(step.text), _SHOWN)}"


def _side_by_side(left: SessionFacts, right: SessionFacts) -> Iterator[tuple[str, str, str]]:
    def row(name: str, *values: object) -> tuple[str, str, str]:
        one, other = map(str, values)
        return name, one, other

    yield row("turns", left.turns, right.turns)
    yield row("model calls", left.model_calls, right.model_calls)
    for tool in dict.fromkeys([*left.calls, *right.calls]):
        yield row(tool, left.calls.get(tool, 0), right.calls.get(tool, 0))
    for path in dict.fromkeys([*left.files, *right.files]):
        yield row(path, *(_lines(facts.files.get(path)) for facts in (left, right)))
    if left.is_blind or right.is_blind:
        yield row("other files", *(_OTHERS[facts.is_blind] for facts in (left, right)))
    yield row("tokens in", left.usage.input, right.usage.input)
    yield row("tokens out", left.usage.output, right.usage.output)
    if left.usage.cost or right.usage.cost:
        yield row("cost", *(f"{facts.usage.cost:.4g}" for facts in (left, right)))
    yield row("seconds", *(f"{facts.seconds:.1f}" for facts in (left, right)))


def _lines(changed: tuple[int, int] | None) -> str:
    return f"+{changed[0]} -{changed[1]}" if changed is not None else "-"
