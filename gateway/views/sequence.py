"""One turn as a sequence diagram, made from its journal: the messages between the parts, in order.

Mermaid text: editors, code forges and documentation tools draw it. Syntax:
https://mermaid.js.org/syntax/sequenceDiagram.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...journal import entries as e
from ...journal.codec import decode_entry
from ...journal.history import record_at, seq_at
from ...journal.record import messages_of
from ...journal.store import Store, StoredEntry
from ...machines.errors import UsageError
from ...machines.protocol import exit_words, shown
from ...proofs.picture import label
from ..wording.formats import iso, one_line
from ..wording.redaction import Redactor

_CUT = 60  # characters of a text
_NAMES = {"P": "actor P as person", "Q": "participant Q as queue", "M": "participant M as model"}

Arrow = tuple[str, str, str, str]
"""The sender, the kind of arrow, the recipient, the text."""


def last_turn(store: Store, session: str, seq: int, redactor: Redactor) -> str:
    """Draw the newest turn up to entry `seq`. Raises `UsageError` if there is none yet."""
    record = record_at(store, session, seq)
    turn = record.turns.get(record.turn)
    if turn is None:
        raise UsageError(f"session `{session}` has had no turn yet", "send it a message")
    item, shown = record.queue.items.get(turn.item), list[StoredEntry]()
    since = item.created if item is not None else turn.started
    before = seq_at(store, session, seq, since - 1e-3) - 1
    is_begun = False
    for stored in store.entries(session, max(0, before), seq):
        is_begun |= stored.data["kind"] == "turn_started" and stored.data["turn"] == turn.id
        if is_begun or stored.data.get("item") == turn.item:
            shown.append(stored)
    return sequence(turn.id, map(redactor.entry, shown))


def sequence(turn: str, entries: Iterable[StoredEntry]) -> str:
    """Draw the redacted entries of a turn, and of the messages that entered it."""
    drawn = [(stored, list(_arrows(decode_entry(stored.data), turn))) for stored in entries]
    arrows = [(stored, arrow) for stored, found in drawn for arrow in found]
    names = dict.fromkeys(name for _, arrow in arrows for name in (arrow[0], arrow[2]))
    lines = ["sequenceDiagram"]
    for name in names:
        title = label(f"turn {name}" if name == turn else name)
        lines.append(f"    {_NAMES.get(name) or f'participant {_id(name)} as {title}'}")
    for stored, (source, how, target, text) in arrows:
        lines.append(f"    {_id(source)}{how}{_id(target)}: {label(text)}")
        lines.append(f"    %% entry {stored.seq}, {iso(stored.time)}, {stored.data['kind']}")
    return "\n".join(lines) + "\n"


def _arrows(entry: e.Entry, turn: str) -> Iterator[Arrow]:
    """Yield the arrows of an entry; entries about other parts of the session have none."""
    match entry:
        case e.Queued(child=""):
            text = _short(shown(entry.item_kind, entry.said.text))
            yield "P", "->>", "Q", f"{entry.number}: {text} ({entry.routed.said_as})"
        case e.Steered():
            yield "Q", "->>", turn, f"steered, step {entry.step}: {', '.join(entry.items)}"
        case e.InterruptPlanned() | e.InterruptRequested():
            yield "P", "->>", turn, f"interrupt {entry.receipt} ({entry.cause})"
        case e.TurnEntry() if entry.turn == turn:
            yield from _of_turn(entry, turn)
        case e.ChildStarted() if entry.turn == turn:
            yield turn, "->>", f"child {entry.child}", _short(entry.task)
        case e.ChildEnded():
            yield f"child {entry.child}", "-->>", turn, entry.status
        case _:
            return


def _of_turn(entry: e.AnyTurnEntry, turn: str) -> Iterator[Arrow]:
    match entry:
        case e.TurnStarted():
            resumed = f", resumes {entry.resumes}" if entry.resumes else ""
            yield "Q", "->>", turn, f"{entry.number} starts{resumed}"
        case e.ModelCalled():
            yield turn, "->>", "M", f"step {entry.step}"
        case e.Answered():
            yield "M", "-->>", turn, _answer(entry)
        case e.AnswerCut():
            yield "M", "-->>", turn, "cut off for a steer"
        case e.ModelCallFailed():
            yield "M", "--x", turn, f"failed: {entry.reason}"
        case e.QuestionAsked():
            yield turn, "->>", "P", f"may {entry.tool} run? ({entry.question})"
        case e.QuestionAnswered():
            yield "P", "-->>", turn, f"{entry.choice} ({entry.question})"
        case e.ToolIntended():
            words = ", ".join(str(argument) for argument in entry.arguments.values())
            yield turn, "->>", f"tool {entry.tool}", _short(words)
        case e.ToolEnded():
            end = entry.end
            code = f", {exit_words(end.exit_code)}" if end.exit_code is not None else ""
            yield f"tool {entry.tool}", "-->>", turn, f"{end.status}{code}"
        case e.ToolRefused():
            yield turn, "-x", f"tool {entry.tool}", f"{entry.status}: {entry.reason}"
        case e.ProgressMade():
            yield turn, "->>", "P", f"{entry.unit} {entry.done}/{entry.total}".strip()
        case e.NoProgress():
            yield turn, "->>", "M", f"no progress: {entry.what}, {entry.count} times"
        case e.ClaimDoubted():
            yield turn, "->>", "M", _short(entry.fact)
        case e.Interrupted():
            yield turn, "-->>", "P", f"interrupted ({entry.cause})"
        case e.Stopped():
            killed = f", killed {len(entry.killed)}" if entry.killed else ""
            yield turn, "-->>", "P", f"everything that was to stop is dead{killed}"
        case e.TurnEnded():
            why = f": {entry.reason}" if entry.reason else ""
            yield turn, "-->>", "P", f"{entry.status}{why}"
        case e.ModelAwaited():
            yield turn, "->>", turn, f"waits for the provider: {_short(entry.reason)}"
        case e.LimitReached():
            yield turn, "-->>", "P", f"limit: {entry.what}"
        case e.Compacted():
            yield "M", "-->>", turn, f"{entry.dropped} messages are summed up ({entry.how})"
        case _:
            return


def _answer(entry: e.Answered) -> str:
    answers = [message for message in messages_of(entry) if message.role == "assistant"]
    text = _short(answers[0].text) if answers and answers[0].text else ""
    calls = len(answers[0].tool_calls) if answers else 0
    wants = f"{calls} tool call{'s' if calls > 1 else ''}" if calls else ""
    return ", ".join(part for part in (text, wants) if part) or "answer"


def _id(name: str) -> str:
    return "".join(char if char.isalnum() and char.isascii() else "_" for char in name)


def _short(text: str) -> str:
    return one_line(text, _CUT)
