"""The decisions of a turn when the model's window is nearly full: how room is made in it.

Where it wins enough, old large results of tools are left out. Otherwise the model sums up older turns:
the summary is asked for like any answer, can be stopped like one, and takes the place of what it sums up
in one journalled entry. Where there is none, the oldest results of tools are left out instead; and what
would be refused all the same is not sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from ...journal.entries import Compacted, CompactionBegun
from ...journal.record import SessionRecord
from ...machines import protocol as m
from ...machines.context import filled, older, pruned, tokens_of
from ...machines.conversation import ChatMessage
from ...machines.policy import CompactionPolicy
from ...machines.value import Value
from . import queueing
from .decision import NOTHING, Decision, answer
from .decision import refusal as rejected
from .turning import Ending, fill_of

if TYPE_CHECKING:
    from ..environment import Environment


SUMMARY = "[Summary of the conversation so far; the older messages are no longer here.]\n"
READ = "[I have read the summary, and go on from there.]"
ASK = """\
[The room for this conversation is nearly used up. Sum it up now, for yourself: from here on you will \
see your summary instead of what is above. Say what the person wants and has decided, in their own \
words where those matter; what was done, with names of files, commands and results; what is unfinished, \
and what the next step is; and every fact that will be needed again. Write it as plain text and call \
no tools.]"""
NOTHING_NEW = "there are no messages since the last summary"
CLOSE = 0.95
"""Share of the window from which on a call is likely to be refused."""
SURE = 1.25
"""Share of the window, as estimated, from which on it surely is."""
WORTH = 0.2
"""Share of the conversation that a summary must take the place of."""
NEWEST = 4
"""The newest results of tools, which are not left out in place of a summary."""
ROOM = 0.6
"""Share of the window that what is to be summed up may take."""

Room = Literal["", "asked", "full", "nothing_new", "done", "gives_up"]
"""The action of a boundary on the window: nothing, a summary and why, or an end of the turn."""


def is_for_summary(record: SessionRecord) -> bool:
    """Whether the newest turn is there to sum up the conversation."""
    item = record.queue.items.get(record.turns[record.turn].item)
    return item is not None and item.kind is m.ItemKind.SUMMARY


def filled_tokens(record: SessionRecord, policy: CompactionPolicy) -> int:
    """Return how many tokens a call takes with the conversation as it is."""
    return filled(fill_of(record), record.conversation, policy.overhead)


def room(record: SessionRecord, policy: CompactionPolicy) -> Room:
    """Say what is to be done about the window before the model is called."""
    turn = record.turns[record.turn]
    is_done = turn.compacted_at == turn.step
    if is_for_summary(record):
        if is_done:
            return "done"
        return "asked" if has_news(record.conversation) else "nothing_new"
    if not policy.window:
        return ""
    tokens = filled_tokens(record, policy)
    if is_done and tokens > SURE * policy.window:
        return "gives_up"
    share = policy.at if not turn.step else CLOSE
    if is_done or not policy.is_auto or tokens <= share * policy.window:
        return ""
    return "full"


def overflows(record: SessionRecord, message: m.ModelFailed, policy: CompactionPolicy) -> bool:
    """Whether to make room because the server found the conversation too long; once for each call."""
    turn = record.turns[record.turn]
    return message.is_too_long and policy.is_auto and turn.compacted_at != turn.step - 1


class _Cut(Value):
    """How many of the oldest messages are summed up, and how many tokens the whole takes."""

    dropped: int
    tokens: int


def _cut(record: SessionRecord, why: str, policy: CompactionPolicy) -> _Cut:
    tokens = filled_tokens(record, policy)
    keep = int(policy.keep * (policy.window or tokens))
    talk = list(record.conversation)
    is_amid = record.turns[record.turn].step > 0
    dropped = len(talk) if why == "asked" else older(talk, keep, is_amid)
    return _Cut(dropped=dropped, tokens=tokens)


def is_worth_it(record: SessionRecord, why: str, policy: CompactionPolicy) -> bool:
    """Whether what would be summed up is a good part of the whole; a person may want it anyway."""
    dropped = _cut(record, why, policy).dropped
    talk = list(record.conversation)
    return is_for_summary(record) or tokens_of(talk[:dropped]) > WORTH * tokens_of(talk)


def folded(record: SessionRecord, why: str, policy: CompactionPolicy) -> Decision:
    """Leave out old results of tools, where that alone wins room for a while; else decide nothing."""
    if why != "full":
        return NOTHING
    results = [at for at, said in enumerate(record.conversation) if said.role == "tool"]
    old = list(record.conversation[: results[-NEWEST]] if len(results) >= NEWEST else ())
    wanted = filled_tokens(record, policy) - int((policy.at - WORTH) * policy.window)
    changed, count = pruned(old, wanted, spare=0)
    if tokens_of(old[: len(changed)]) - tokens_of(changed) < wanted:
        return NOTHING
    return _replace(
        record,
        len(changed),
        tuple(changed),
        m.Summarised(turn=record.turn, epoch=record.epoch, step=record.turns[record.turn].step),
        policy,
        how="pruned",
        left_out=count,
    )


def begin(
    record: SessionRecord, why: str, policy: CompactionPolicy, refusal: str = "", *, asks: bool
) -> Decision:
    """Begin to make room; `asks` the model for a summary. `refusal` is what the server said."""
    turn = record.turns[record.turn]
    cut = _cut(record, why, policy)
    begun = CompactionBegun(
        turn=turn.id,
        step=turn.step,
        why=why,
        tokens=cut.tokens,
        window=policy.window,
        dropped=cut.dropped if asks else 0,
        refusal=refusal,
    )
    if not asks:
        return Decision(entries=(begun,))
    question = _question(record, cut, why == "refused", policy)
    most = policy.window // 5 or None
    call = m.CallModel(
        turn=turn.id,
        epoch=turn.epoch,
        step=turn.step,
        messages=question,
        max_tokens=most,
        is_summary=True,
    )
    return Decision(entries=(begun,), effects=(call,))


def _question(
    record: SessionRecord, cut: _Cut, is_too_long: bool, policy: CompactionPolicy
) -> tuple[ChatMessage, ...]:
    """Put together what is to be summed up, and the wish for it; shortened where it would not fit."""
    said = list(record.conversation[: cut.dropped])
    most = int(ROOM * (policy.window or cut.tokens))
    excess = policy.overhead + tokens_of(said) - most
    if is_too_long or cut.tokens > policy.window > 0:
        changed, _ = pruned(said, max(0, excess), spare=0)
        said[: len(changed)] = changed
    item = record.queue.items.get(record.turns[record.turn].item)
    wish = item.said.text if item is not None and item.kind is m.ItemKind.SUMMARY else ""
    ask = f"{ASK}\nWhat matters most: {wish}" if wish else ASK
    return (*said, ChatMessage(role="user", text=ask))


def compacted(
    record: SessionRecord, message: m.Summarised, policy: CompactionPolicy
) -> Decision | Ending:
    """Put the summary in place of what it sums up; without one, leave out old results, or end."""
    if not message.text:
        return _prune(record, message.reason or "the model gave no answer", message, policy)
    dropped = record.turns[record.turn].dropped
    kept = list(record.conversation[dropped:])
    is_step = bool(kept) and kept[0].role == "assistant"
    read = () if is_step else (ChatMessage(role="assistant", text=READ),)
    said = [ChatMessage(role="user", text=f"{SUMMARY}{message.text}", is_summary=True), *read]
    spared, count = pruned(kept, _excess([*said, *kept], policy))
    return _replace(
        record,
        dropped + len(spared),
        (*said, *spared),
        message,
        policy,
        how="summary",
        summary=message.text,
        left_out=count,
    )


def _excess(conversation: Sequence[ChatMessage], policy: CompactionPolicy) -> int:
    """Say how many tokens too many a conversation would take."""
    if not policy.window:
        return 0
    return policy.overhead + tokens_of(conversation) - int(policy.at * policy.window)


def _prune(
    record: SessionRecord, reason: str, message: m.Summarised, policy: CompactionPolicy
) -> Decision | Ending:
    """Leave out the oldest results of tools; where that is not enough, say so and end."""
    before = filled_tokens(record, policy)
    wanted = before - int(policy.at * policy.window) if policy.window else before // 2
    changed, count = pruned(list(record.conversation), wanted)
    refusal = record.turns[record.turn].refusal
    if not count and (is_for_summary(record) or refusal or before > policy.window):
        hint = "`/new` starts again; a model with a larger window accepts more"
        said = f"{refusal}; " if refusal else ""
        return Ending(
            status="failed", reason=f"{said}the conversation was not shortened: {reason}", hint=hint
        )
    return _replace(
        record,
        len(changed),
        tuple(changed),
        message,
        policy,
        how="pruned",
        reason=reason,
        left_out=count,
    )


def _replace(
    record: SessionRecord,
    dropped: int,
    said: tuple[ChatMessage, ...],
    message: m.Summarised,
    policy: CompactionPolicy,
    **more: Any,
) -> Decision:
    turn = record.turns[record.turn]
    before = filled_tokens(record, policy)
    after = before - tokens_of(list(record.conversation[:dropped])) + tokens_of(said)
    entry = Compacted(
        turn=turn.id,
        step=turn.step,
        dropped=dropped,
        before=before,
        after=max(0, after),
        usage=message.usage,
        messages=said,
        **more,
    )
    return Decision(entries=(entry,))


def gives_up(record: SessionRecord, policy: CompactionPolicy) -> Ending:
    """Say what would be refused, instead of sending it."""
    tokens = filled_tokens(record, policy)
    reason = (
        f"the conversation takes about {tokens:,} tokens, and the model's window {policy.window:,}"
    )
    hint = "`/new` begins afresh; or send less at once, or choose a model with a larger window"
    return Ending(status="failed", reason=reason, hint=hint)


def asked(record: SessionRecord, message: m.Compact, environment: Environment) -> Decision:
    """Have the conversation summed up by a turn of its own, before anything else runs."""
    if len(record.conversation) < 2:
        return rejected("there is nothing to summarise yet")
    is_free = record.state == "idle"
    if is_free and not has_news(record.conversation):
        return rejected(NOTHING_NEW)
    order = m.Enqueue(
        said=m.Said(text=message.wish.strip(), user=message.user),
        is_next=True,
        kind=m.ItemKind.SUMMARY,
    )
    queued = queueing.enqueue(record, order, environment)
    return queued + Decision(reply=answer(runs=is_free))


def has_news(conversation: Sequence[ChatMessage]) -> bool:
    """Whether there are messages since the last summary."""
    return not (len(conversation) == 2 and conversation[0].is_summary)
