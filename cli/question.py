"""Questions of agents: as a terminal shows them, and how typed text answers them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from ..gateway.commands.permissions import allow
from ..gateway.events.contract import (
    AnsweredEvent,
    Event,
    QuestionEvent,
    StepEvent,
    StepQuestionEvent,
)
from ..gateway.interface import ChatSession
from ..gateway.typed_text import TextReader
from ..gateway.wording.formats import form_lines, shortened
from ..gateway.wording.terminal import exposed
from ..machines.form import fields_of
from ..machines.steps import chosen
from ..machines.value import Value
from ..ports.tools.permission import offered_pattern
from ..workflows.tools import TOOLS, kind_of

CHOICES = {
    **{"y": "allow", "yes": "allow", "a": "always", "always": "always"},
    **{"n": "deny", "no": "deny"},
}
POLITE = {"please", "thanks"}
SHOWN = 2_000
"""Characters of a call that a question shows."""


class QuestionAnswer(Value):
    """An answer to a question; `report` says it in the transcript.

    `reason` is why not, or with `always` the pattern that is allowed, which `tools` get as well.
    """

    choice: str
    report: str
    reason: str = ""
    tools: tuple[str, ...] = ()

    def send(self, conversation: ChatSession, question: QuestionEvent) -> bool:
        """Send the answer; False if the question is not open any more."""
        for tool in self.tools:
            conversation.run(allow.call({"tool": tool, "pattern": self.reason}))
        return conversation.answer(question["id"], self.choice, self.reason)


def waits_for(question: QuestionEvent | None) -> bool:
    """Whether a message waits while a question is open; one to a workflow's step is refused instead."""
    return question is not None and question["kind"] != "ask"


class AnswerKey(NamedTuple):
    """A key that answers a question, as its card shows it; without an answer it begins a line for one."""

    key: str
    words: str
    answer: QuestionAnswer | None


def answer_keys(question: QuestionEvent, folder: Path) -> tuple[AnswerKey, ...]:
    """Return the keys for a tool call's question: once, two or three widths of always, no.

    A call that is held may run, with other arguments, or not. A workflow's step has its options.
    """
    if question["kind"] == "ask":
        return tuple(
            AnswerKey(str(number), _named(question, option), _of_step(question, option))
            for number, option in enumerate(question["options"][:9], 1)
        )
    tool, arguments = exposed(question["tool"]), dict(question["arguments"])
    no = QuestionAnswer(choice="deny", report=f"You denied `{tool}`.")
    if question["kind"] == "form":
        declined = QuestionAnswer(choice="deny", report="You declined to answer.")
        return AnswerKey("e", "answer", None), AnswerKey("n", "decline", declined)
    if question["kind"] == "hold":
        run = QuestionAnswer(choice="allow", report=f"You let `{tool}` run.")
        change = AnswerKey("e", "change its arguments", None)
        return AnswerKey("y", "let it run", run), change, AnswerKey("n", "no", no)
    pattern = offered_pattern(question["tool"], arguments, folder)
    kind = kind_of(question["tool"])
    what = f"{tool} {exposed(pattern)}" if pattern else _always(question)
    once = QuestionAnswer(choice="allow", report=f"You allowed `{tool}` once.")
    always = QuestionAnswer(
        choice="always",
        reason=pattern,
        report=f"You allowed {f'`{what}`' if pattern else what} for this session.",
    )
    keys = [AnswerKey("y", "yes, once", once), AnswerKey("a", f"always {what}", always)]
    if kind == "edit" and not question["outside"]:
        others = tuple(name for name in TOOLS.built_in if kind_of(name) == "edit")
        every = QuestionAnswer(
            choice="always",
            reason="*",
            tools=tuple(name for name in others if name != question["tool"]),
            report="You allowed every edit in this folder for this session.",
        )
        keys.append(AnswerKey("e", "every edit in this folder", every))
    return (*keys, AnswerKey("n", "no", no))


def _named(question: StepQuestionEvent, option: str) -> str:
    """Name an option of a step's question, and mark the one that holds if no person answers."""
    return f"{option} (default)" if option == question["default"] else option


def _of_step(question: QuestionEvent, text: str) -> QuestionAnswer:
    """Return the answer to the question of a workflow's step."""
    return QuestionAnswer(choice=text, report=f"{exposed(str(question.get('step')))}: {text}")


def _always(question: QuestionEvent) -> str:
    """Say which calls `always` covers without a pattern."""
    kinds = ("read", "edit", "search")
    is_exact = question["tool"] == "shell" or kind_of(question["tool"]) in kinds
    return "this exact call" if is_exact else f"any call of {exposed(question['tool'])}"


def argument_lines(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a call is about as it is, then all else that it was given behind its name."""
    named = ("command", "path")
    for name in sorted(arguments, key=lambda name: name not in named):
        yield str(arguments[name]) if name in named else f"{name}: {arguments[name]}"


def changing(question: QuestionEvent) -> str:
    """Return the line, to be edited, that lets a held call run with other arguments, or answers."""
    if question["kind"] == "form":
        fields = fields_of(question["arguments"].get("schema") or {})
        blank = {field.name: field.blank for field in fields}
        given = json.dumps(blank, ensure_ascii=False) if len(blank) > 1 else ""
        return f"/answer {question['id']} answer {given}"
    arguments = json.dumps(dict(question["arguments"]), ensure_ascii=False)
    return f"/answer {question['id']} change {arguments}"


_ELSEWHERE = {
    "change": "`{}` was let run with other arguments{}.",
    "answer": "A person answered in place of `{}`{}.",
    "allow": "`{}` was allowed once{}.",
    "always": "`{}` was allowed for this session{}: /permissions says how much else.",
    "deny": "`{}` was denied{}.",
}
"""Reports of answers by another terminal or program, by `/answer`, or by a setting that decides now."""
_OF_FORM = {"answer": "`{}` got an answer{}.", "deny": "`{}` got no answer{}."}


def is_over(question: QuestionEvent, event: StepEvent) -> bool:
    """Whether a question is that of a workflow's step, or of an item of it, which has ended."""
    if event["state"] in ("running", "retrying", "unknown"):
        return False
    is_item = "index" not in event or question.get("index") == event["index"]
    return question.get("step") == event["step"] and is_item


class Questions:
    """The open questions, of the agent and of its subagents, oldest first."""

    def __init__(self) -> None:
        self._open: list[QuestionEvent] = []
        self._given: dict[str, tuple[QuestionEvent, QuestionAnswer]] = {}

    @property
    def first(self) -> QuestionEvent | None:
        """The next question to answer."""
        return self._open[0] if self._open else None

    @property
    def all(self) -> list[QuestionEvent]:
        """All open questions."""
        return list(self._open)

    def give(self, question: QuestionEvent, answer: QuestionAnswer) -> None:
        """Note the answer that is given here, before it is sent."""
        self._given[question["id"]] = question, answer

    def hear(self, event: Event) -> str:
        """Take in an event that opens or closes a question; return the report of an answer."""
        match event["type"]:
            case "question":
                self._open.append(event)
            case "answered":
                return self._settle(event)
            case "step":
                return self._step_ended(event)
            case "turn_ended":
                self._keep(lambda question: question["session"] != event["session"])
            case "tool_started" | "tool_ended":
                call = event["session"], event["call"]
                self._keep(lambda asked: (asked["session"], asked["id"].rpartition("-")[2]) != call)
            case _:
                pass
        return ""

    def _settle(self, event: AnsweredEvent) -> str:
        """Say how a question was answered, here or elsewhere; nothing of one that was withdrawn."""
        asked = next((asked for asked in self._open if asked["id"] == event["id"]), None)
        self._keep(lambda question: question["id"] != event["id"])
        if event["id"] in self._given:
            asked, given = self._given.pop(event["id"])
            if given.choice == event["choice"]:  # else another one was quicker
                return given.report
        if asked is None:
            return ""
        if asked["kind"] == "form":
            reports, asker = _OF_FORM, asked["arguments"].get("server", "")
        else:
            reports, asker = _ELSEWHERE, asked["tool"]
            if asked["kind"] != "ask":
                first = next(argument_lines(asked["arguments"]), "")
                asker = f"{asker} {shortened(' '.join(first.split()))}".rstrip()
        who = exposed(event.get("user", "") or event.get("rule", ""))
        by = f" by {who}" if who else ""
        if not who and reports is _ELSEWHERE and event["choice"] in ("allow", "always", "deny"):
            by = ", not by an answer here"
        return reports.get(event["choice"], "").format(exposed(str(asker)), by)

    def drop(self, question: QuestionEvent) -> None:
        """Drop a question that was answered."""
        self._keep(lambda other: other is not question)

    def _step_ended(self, event: StepEvent) -> str:
        """Drop the questions of a workflow's step, or of an item of it; report the answer given here."""
        self._keep(lambda question: not is_over(question, event))
        mine = [known for known, (question, _) in self._given.items() if is_over(question, event)]
        return "\n".join(self._given.pop(known)[1].report for known in mine)

    def _keep(self, is_open: Callable[[QuestionEvent], bool]) -> None:
        self._open = [question for question in self._open if is_open(question)]


def asked(question: QuestionEvent) -> str:
    """Return the text of a question."""
    if question["kind"] == "ask":
        return "\n".join((*step_lines(question), ""))
    if question["kind"] == "form":
        lines = "\n".join(form_lines(question["arguments"]))
        return f"{lines}\nAnswer with {changing(question)}TEXT, or [n]o, then Enter\n"
    words = exposed("\n".join(argument_lines(question["arguments"]))).replace("\n", "\n  ")
    left = len(words) - SHOWN
    what = f"{words[:SHOWN]} … {left} more characters, /inspect shows all" if left > 0 else words
    why = f"{said}\n" if (said := why_asked(question)) else ""
    ways = f"[y]es, [a]lways {_always(question)}, [n]o, then Enter"
    if question["kind"] == "hold":
        why += f"It is held; this lets it run with other arguments: {changing(question)}\n"
        ways = "[y]es, [n]o, then Enter"
    return f"{exposed(question['tool'])}: {what}\n{why}May it run? {ways}\n"


def step_lines(question: StepQuestionEvent) -> Iterator[str]:
    """Yield what a workflow's step asks, and a line for each option."""
    yield exposed(f"{question['step']} asks: {question['arguments']['text']}")
    default = question["default"]
    for number, option in enumerate(question["options"], 1):
        yield exposed(f"  {number}. {_named(question, option)}")
    if default is not None and default not in question["options"]:
        yield exposed(f"  (default: {default})")


def why_asked(question: QuestionEvent) -> str:
    """Say why a call is asked about, if that is not clear from the rules; else empty."""
    return exposed(str(question.get("why") or ""))


def answering(
    texts: TextReader, question: QuestionEvent, text: str, keys: tuple[AnswerKey, ...] = ()
) -> QuestionAnswer | None:
    """Read a text as the answer to a question; `None` if it is a message.

    One of a workflow's step is answered by its options, their numbers or initials, or by any text.
    Else a word or a letter for a choice answers, `please` and `thanks` aside; `n`, `deny` or `no` may be
    followed by a reason, which goes to the agent, unless `no` begins words that would stop the turn. The
    letters of `keys` answer as their cards say.
    """
    if question["kind"] == "ask":
        options = question["options"]
        is_answer = chosen(options, text) is not None if options else texts.is_answer(text)
        return _of_step(question, text.strip()) if is_answer else None
    words = text.strip().lower().strip(".!").replace(",", " ").split()
    if not words:
        return None
    name = exposed(question["tool"])
    denying = ("n", "deny") if texts.would_stop(text) else ("n", "deny", "no")
    if words[0] in denying and len(words) > 1 and words[1] not in POLITE:
        reason = text.strip().partition(" ")[2].strip()
        report = f"You denied `{name}`: {exposed(reason)}"
        return QuestionAnswer(choice="deny", reason=reason, report=report)
    choice = CHOICES.get(words[0], words[0])
    if not set(words[1:]) <= POLITE:
        return None
    for known in keys:
        given = known.answer
        if given and (words[0] == known.key or (choice == given.choice and known.key != "e")):
            return given
    if choice in ("change", "answer"):
        return None  # it needs words of its own, which `/answer` takes
    return QuestionAnswer(choice=choice, report="") if choice in question["options"] else None


def quoted(answer: QuestionAnswer, text: str) -> QuestionAnswer:
    """Return an answer whose report has the words that a person sent, where they were more than a key."""
    words = exposed(" ".join(text.split()))
    if len(words) == 1 or answer.reason or answer.choice == text.strip():
        return answer
    return replace(answer, report=f"{answer.report} (You wrote: {words})")


def answered(conversation: ChatSession, question: QuestionEvent, text: str) -> bool:
    """Answer the open question with a text; False if the text is a message."""
    answer = answering(conversation.texts, question, text)
    if answer is not None:
        answer.send(conversation, question)
    return answer is not None
