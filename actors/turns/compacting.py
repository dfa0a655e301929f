"""What a turn does when the model's window is nearly full: older turns are summed up, by the model.

The summary is asked for like any answer, can be stopped like one, and takes the place of what it sums
up in one journalled entry. Where there is none, the oldest results of tools are left out instead; and
what would be refused all the same is not sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...journal.compaction_entries import Compacted, CompactionBegun
from ...journal.entry import Entry
from ...machines.context import Fill, filled, older, pruned, tokens_of
from ...machines.conversation import ChatMessage, Usage
from ...machines.effects import Summarise
from ...machines.facts import Noticed
from ...machines.results import ModelFailed, Summarised
from .tool_calls import ToolCalls

__all__ = ["NOTHING", "Compacting", "has_news"]

SUMMARY = "[Summary of the conversation so far; the older messages are no longer here.]\n"
READ = "[I have read the summary, and go on from there.]"
ASK = """\
[The room for this conversation is nearly used up. Sum it up now, for yourself: from here on you will \
see your summary instead of what is above. Say what the person wants and has decided, in their own \
words where those matter; what was done, with names of files, commands and results; what is unfinished, \
and what the next step is; and every fact that will be needed again. Write it as plain text and call \
no tools.]"""
NOTHING = "nothing was said since the last summary"
CLOSE = 0.95
"""Share of the window from which on a call is likely to be refused."""
SURE = 1.25
"""Share of the window, as estimated, from which on it surely is."""
WORTH = 0.2
"""Share of the conversation that a summary must take the place of."""
ROOM = 0.6
"""Share of the window that what is to be summed up may take."""


class Compacting(ToolCalls):
    """The part of a turn that makes room."""

    _dropped = 0
    """How many messages are being summed up."""
    _compacted_at = -1
    """The step before which it was done last: once is enough."""
    _refusal = ""
    """What the server said of a conversation that is too long."""

    def _finish(
        self,
        event: str,
        status: str,
        reason: str = "",
        hint: str = "",
        said: str = "",
        before: tuple[Entry, ...] = (),
    ) -> None:
        """End the turn."""
        raise NotImplementedError

    def _may_call(self, tokens: int) -> bool:
        """Reserve a call that takes so many tokens; whether it may be made."""
        raise NotImplementedError

    def _settle_call(self, usage: Usage | None) -> None:
        """Count what a call took."""
        raise NotImplementedError

    @property
    def _filled(self) -> int:
        return filled(self._fill, self._conversation, self._environment.compaction.overhead)

    def _makes_room(self) -> bool:
        """Begin to make room if that is needed before the model is called; whether it has begun."""
        policy = self._environment.compaction
        is_done = self._compacted_at == self.step
        if self._purpose.kind:
            if is_done:
                self._finish("finish", "completed")
            elif not has_news(self._conversation):
                self._pass_on(Noticed(f"Not summed up: {NOTHING}."))
                self._finish("finish", "completed")
            else:
                self._compact("asked")
            return True
        if not policy.window:
            return False
        tokens = self._filled
        if is_done and tokens > SURE * policy.window:
            self._give_up(tokens)
            return True
        share = policy.at if not self.step else CLOSE
        if is_done or not policy.is_auto or tokens <= share * policy.window:
            return False
        self._compact("full")
        return True

    def _overflows(self, message: ModelFailed) -> bool:
        """Make room because the server found the conversation too long; once for each call."""
        policy = self._environment.compaction
        if not message.is_too_long or not policy.is_auto or self._compacted_at == self.step - 1:
            return False
        self._refusal = message.reason
        self._settle_call(Usage())
        self._compact("refused")
        return True

    def _compact(self, why: str) -> None:
        policy, tokens = self._environment.compaction, self._filled
        if not self._may_call(tokens):
            return
        self._move("overflow" if why == "refused" else "compact")
        self._compacted_at = self.step
        keep = int(policy.keep * (policy.window or tokens))
        talk = self._conversation
        is_amid = self.step > 0
        self._dropped = len(talk) if why == "asked" else older(talk, keep, is_amid)
        begun = CompactionBegun(self.turn, self.step, why, tokens, policy.window)
        if not self._is_worth_it():
            self._decide([begun])
            self._settle_call(Usage())
            self._prune("what is older takes little room")
            return
        question = self._question(why == "refused")
        most = policy.window // 5 or None
        call = Summarise(self.turn, self.epoch, self.step, question, most)
        self._decide([begun], [call])

    def _is_worth_it(self) -> bool:
        """Whether what would be summed up is a good part of the whole; a person may want it anyway."""
        said, whole = tokens_of(self._conversation[: self._dropped]), tokens_of(self._conversation)
        return bool(self._purpose.kind) or said > WORTH * whole

    def _question(self, is_too_long: bool) -> tuple[ChatMessage, ...]:
        """Put together what is to be summed up, and the wish for it; shortened where it would not fit."""
        policy, said = self._environment.compaction, self._conversation[: self._dropped]
        most = int(ROOM * (policy.window or self._filled))
        excess = policy.overhead + tokens_of(said) - most
        if is_too_long or self._filled > policy.window > 0:
            changed, _ = pruned(said, max(0, excess), spare=0)
            said[: len(changed)] = changed
        wish = self._purpose.wish
        ask = f"{ASK}\nWhat matters most: {wish}" if wish else ASK
        return (*said, ChatMessage("user", ask))

    def _summarised(self, message: Summarised) -> None:
        if self.state != "compacting" or message.step != self.step:
            self._late("summary", message.usage)
            return
        self._settle_call(message.usage)
        if not message.text:
            self._prune(message.reason or "the model said nothing", message)
            return
        text = f"{SUMMARY}{message.text}"
        kept = self._conversation[self._dropped :]
        is_step = bool(kept) and kept[0].role == "assistant"
        read = () if is_step else (ChatMessage("assistant", READ),)
        said = [ChatMessage("user", text), *read]
        spared, count = pruned(kept, self._excess([*said, *kept]))
        self._replace(
            self._dropped + len(spared),
            "summary",
            (*said, *spared),
            message,
            summary=message.text,
            left_out=count,
        )

    def _excess(self, conversation: list[ChatMessage]) -> int:
        """Say how many tokens too many a conversation would take."""
        policy = self._environment.compaction
        if not policy.window:
            return 0
        return policy.overhead + tokens_of(conversation) - int(policy.at * policy.window)

    def _prune(self, reason: str, message: Summarised | None = None) -> None:
        """Leave out the oldest results of tools; where that is not enough, say so and end."""
        policy, before = self._environment.compaction, self._filled
        wanted = before - int(policy.at * policy.window) if policy.window else before // 2
        changed, count = pruned(self._conversation, wanted)
        kind = self._purpose.kind
        if not count and (kind or self._refusal or before > policy.window):
            hint = "`/new` begins afresh; a model with a larger window takes more"
            said = f"{self._refusal}; " if self._refusal else ""
            self._finish(
                "fail", "failed", f"{said}the conversation was not shortened: {reason}", hint
            )
            return
        done = message or Summarised(self.turn, self.epoch, self.step)
        self._replace(len(changed), "pruned", tuple(changed), done, reason=reason, left_out=count)

    def _replace(
        self,
        dropped: int,
        how: str,
        said: tuple[ChatMessage, ...],
        done: Summarised,
        **more: Any,
    ) -> None:
        before = self._filled
        after = before - tokens_of(self._conversation[:dropped]) + tokens_of(said)
        self._move("compacted")
        self._fill = Fill()
        self._decide(
            [
                Compacted(
                    self.turn,
                    self.step,
                    dropped,
                    how,
                    before=before,
                    after=max(0, after),
                    usage=done.usage,
                    messages=said,
                    **more,
                )
            ]
        )
        self._ask_for_steers(is_closing=False)

    def _give_up(self, tokens: int) -> None:
        """Say what would be refused, instead of sending it."""
        window = self._environment.compaction.window
        reason = (
            f"the conversation takes about {tokens:,} tokens, and the model's window {window:,}"
        )
        hint = "`/new` begins afresh; or send less at once, or choose a model with a larger window"
        self._finish("fail", "failed", reason, hint)


def has_news(conversation: Sequence[ChatMessage]) -> bool:
    """Whether anything was said since the last summary."""
    is_summary = len(conversation) == 2 and conversation[0].text.startswith(SUMMARY)
    return not is_summary
