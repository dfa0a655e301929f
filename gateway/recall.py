"""The end of a session's conversation, for a person who resumes it, and for one who joins it."""

from __future__ import annotations

from collections.abc import Iterator

from ..journal.codec import decode_entry
from ..journal.entries import (
    AnswerCut,
    Answered,
    Deferred,
    Edited,
    Queued,
    Recovered,
    Steered,
    ToolEnded,
    ToolIntended,
    ToolRefused,
    TurnStarted,
)
from ..journal.record import messages_of
from ..journal.recovery import backwards, load_record
from ..journal.store import Store
from ..machines import protocol as m
from .events.contract import Event, NoticeEvent, Stamp, notice
from .events.translation import answer_event, call_ended, tool_started, translate
from .wording.formats import iso
from .wording.redaction import Redactor
from .wording.terminal import clean

SAID_LINES = 3
"""Lines of the last message that are shown: its first ones."""
ANSWER_LINES = 8
"""Lines of the last answer that are shown: its last ones."""

MOST_CALLS = 20
"""Ended calls of the turn that runs that are shown: its last ones."""
LONGEST = 400
"""Characters of a line that are shown."""


def recalled(store: Store, session: str, redactor: Redactor) -> str:
    """Return the last message and the end of its answer as lines of text; empty if nothing was said."""
    said = answer = ""
    for stored in backwards(store, session, store.load(session).row.seq):
        entry = decode_entry(stored.data)
        if isinstance(entry, TurnStarted | Steered):
            said = "\n".join(text for _, text in _people_said(store, session, stored.seq, entry))
            break
        if isinstance(entry, Answered | AnswerCut) and not answer:
            answer = "".join(message.text for message in messages_of(entry))
    if not said.strip():
        return ""
    shown, ended = (_lines(redactor.text(clean(text))) for text in (said, answer))
    if len(shown) > SAID_LINES:
        shown = [*shown[: SAID_LINES - 1], f"{shown[SAID_LINES - 1]} …"]
    if len(ended) > ANSWER_LINES:
        ended = ["…", *ended[-ANSWER_LINES:]]
    title = "Last said here (/history shows more):"
    return "\n".join([title, *_beside("you: ", shown), *_beside("agent: ", ended)])


def _lines(text: str) -> list[str]:
    lines = (line for line in text.splitlines() if line.strip())
    return [line if len(line) <= LONGEST else f"{line[:LONGEST]} …" for line in lines]


def _beside(who: str, lines: list[str]) -> list[str]:
    """Indent lines, the first of them behind a name."""
    return [f"  {'' if at else who}{line}" for at, line in enumerate(lines)]


def said_in(
    store: Store,
    session: str,
    upto: int,
    turns: int,
    redactor: Redactor,
    *,
    running: str = "",
    has_questions: bool,
) -> list[Event]:
    """Return what was said in the last turns up to an entry, as events: the whole answers in any case.

    `has_questions`: with a notice for each message of a person, the calls of the turn `running` that have
    ended, and what was recovered if nothing has run since.
    """
    found: list[Event] = []
    ended = dict[str, float]()
    """When each ended call of the turn that runs had ended, in seconds since the epoch."""
    begun = dict[str, NoticeEvent]()
    """The notice of each message whose turn began: one that began again is said where it began first."""
    has_run = False
    for stored in backwards(store, session, upto if turns else 0):
        entry = decode_entry(stored.data)
        at = Stamp(seq=stored.seq, time=iso(stored.time), session=session)
        if isinstance(entry, Answered | AnswerCut):
            for answer in answer_event(entry, at):
                answer["text"] = redactor.text(answer["text"])
                found.append(answer)
        elif isinstance(entry, ToolEnded | ToolRefused | ToolIntended):
            if has_questions and entry.turn == running:
                found += _ended_call(entry, stored.time, ended, at, redactor)
        elif has_questions and isinstance(entry, Recovered) and not has_run:
            events = translate(entry, load_record(store, session, upto), at)
            found += [event for event in events if event["type"] == "recovered"]
        elif has_questions and isinstance(entry, TurnStarted | Steered):
            people_said = _people_said(store, session, stored.seq, entry)
            notices = list(_notices(people_said, at, redactor))
            if isinstance(entry, TurnStarted) and notices:
                later = begun.get(entry.item)
                if later is not None and later["text"] == notices[0]["text"]:
                    found.remove(later)
                begun[entry.item] = notices[0]
            found += reversed(notices)
        if isinstance(entry, TurnStarted):
            has_run = True
            turns -= 1
            if not turns:
                break
    return found[::-1]


def _ended_call(
    entry: ToolEnded | ToolRefused | ToolIntended,
    time: float,
    ended: dict[str, float],
    at: Stamp,
    redactor: Redactor,
) -> Iterator[Event]:
    """Yield the event of a call's end, or of the beginning of one that has ended, with what it took."""
    if not isinstance(entry, ToolIntended):
        if len(ended) < MOST_CALLS:
            ended[entry.call] = time
            end = call_ended(entry, at)
            yield {**end, "output": redactor.text(end["output"])}
    elif entry.call in ended:
        begun = tool_started(entry, at)
        took = round(max(0.0, ended[entry.call] - time), 3)
        yield {**begun, "arguments": redactor.data(begun["arguments"]), "elapsed": took}


def _notices(
    people_said: Iterator[tuple[str, str]], at: Stamp, redactor: Redactor
) -> Iterator[NoticeEvent]:
    """Yield a notice for each message of a person that the model got with an entry."""
    for who, said in people_said:
        lines = _lines(redactor.text(clean(said)))
        rest = [f"{lines[SAID_LINES - 1]} …"] if len(lines) > SAID_LINES else []
        shown = [*lines[: SAID_LINES - 1], *rest] if rest else lines
        text = "\n".join(_beside(f"{who or 'user'}: ", shown)).removeprefix("  ")
        yield notice(at, text)


def _people_said(
    store: Store, session: str, upto: int, entry: TurnStarted | Steered
) -> Iterator[tuple[str, str]]:
    """Yield who said what that an entry hands on: in people's words, not as the model reads them.

    What a goal says of itself to go on is nobody's.
    """
    items = (entry.item,) if isinstance(entry, TurnStarted) else entry.items
    found = dict[str, tuple[str, str] | None]()
    for before in backwards(store, session, upto):
        match decode_entry(before.data):
            case (Queued() | Edited()) as said if said.item in items:
                kind = said.item_kind if isinstance(said, Queued) else m.ItemKind.MESSAGE
                words = (said.said.user, m.shown(kind, said.said.text))
                found.setdefault(said.item, None if kind is m.ItemKind.GOAL else words)
            case Deferred() as said if said.new_item in items:
                found.setdefault(said.new_item, (said.said.user, said.said.text))
            case _:
                continue
        if len(found) == len(items):
            break
    yield from filter(None, (found.get(item) for item in items))
