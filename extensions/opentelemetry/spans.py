"""Translates the entries of a session's journal into spans: pure, and the same whenever it is done.

The ids of a span are made of its place in the journal (`gateway/trace_context.py`), so that a translation
that is repeated gives the same spans.

Names and attributes follow the semantic conventions for generative AI
(https://opentelemetry.io/docs/specs/semconv/gen-ai/); what those do not know begins with `steersman.`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, assert_never

from msgspec import Struct, field

from ...gateway.trace_context import SessionTraces, TraceContext
from ...gateway.wording.redaction import Redactor
from ...journal import entries as e
from ...journal.fold import EntryKinds
from ...journal.store import StoredEntry
from ...machines.conversation import ChatMessage, Usage
from ...machines.pattern import lazy_pattern
from ...machines.value import Value
from ...ports.models.provider import ModelConfig
from ...workflows.document import is_list, is_table

LONGEST = 8_192
"""Characters of one text of the conversation in an attribute, where contents are wanted."""
MOMENTS = 1_000
"""Events of one span; further ones are left out."""
_NAME = 200  # characters of any other text
_SERVED = lazy_pattern(r"(?:(?P<name>\S+) \()?(?P<model>\S+) at (?P<host>[^\s()]+)\)?")
_EMBEDDED = lazy_pattern(r"(?:(?P<name>\S+) \()?(?P<model>\S+)(?:, embedded\)| \(embedded\))")

Attribute = str | bool | int | float | Sequence[str]
Attributes = Mapping[str, Attribute]


class SpanEvent(Value):
    """An event of a span; `time` in seconds since 1970."""

    name: str
    time: float
    attributes: Attributes


class TraceSpan(Struct, kw_only=True):
    """A span; times in seconds since 1970. `parent` is the id of a span of its trace.

    `is_client`: it is a call of a server. `error` is the kind of the error that it ended with. It has an
    end, and does not change any more, when the translation gives it.
    """

    context: TraceContext
    name: str
    start: float
    end: float = 0.0
    parent: str = ""
    is_client: bool = False
    error: str = ""
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    events: list[SpanEvent] = field(default_factory=list[SpanEvent])
    links: tuple[TraceContext, ...] = ()


# Models -------------------------------------------------------------------------------------------


def about_model(said: str, known: Mapping[str, ModelConfig]) -> dict[str, Attribute]:
    """Return the attributes of a model that the journal names; `known` are configured ones, by name."""
    found = _SERVED.fullmatch(said) or _EMBEDDED.fullmatch(said)
    settings = known.get(said if found is None else found["name"] or "")
    host = found.groupdict().get("host") or "" if found is not None else ""
    usual = "anthropic" if "anthropic" in host else "openai" if host else "local"
    if found is None:
        usual = "_OTHER" if said else ""
    name, _, port = host.rpartition(":")
    given = {
        "gen_ai.provider.name": (settings.provider if settings is not None else usual) or None,
        "gen_ai.request.model": (said if found is None else found["model"]) or None,
        "gen_ai.request.max_tokens": settings.max_tokens if settings is not None else None,
        "gen_ai.request.temperature": settings.temperature if settings is not None else None,
        "server.address": name or host or None,
        "server.port": int(port) if name and port.isdecimal() else None,
    }
    return {name: value for name, value in given.items() if value is not None}


# The translation ----------------------------------------------------------------------------------

_Traced = (
    e.SessionOpened
    | e.PolicyChanged
    | e.Recovered
    | e.SessionSuspended
    | e.SessionFinalized
    | e.InterruptPlanned
    | e.InterruptRequested
    | e.Steered
    | e.AnyTurnEntry
    | e.AnyChildEntry
    | e.JudgingBegun
    | e.GoalJudged
    | e.JudgingStopped
    | e.AnyRunEntry
)
_TRACED = EntryKinds[_Traced](_Traced)
_FINE = ("", "ok", "done", "completed", "interrupted", "skipped", "retry")
"""Results that are no error: an interrupt is what a person wanted, and `retry` is not the end."""
_JUDGE = "judge"
NONE: Attributes = {}


class SessionTrace:
    """Translates one session's entries, in order; `seq` is the newest, `children` are their places.

    `models` as for `about_model`. Every text passes `redactor`. `with_content`: also what was said, and
    arguments and results of tools.
    """

    def __init__(
        self,
        place: SessionTraces,
        models: Mapping[str, ModelConfig],
        redactor: Redactor,
        *,
        with_content: bool = False,
    ) -> None:
        self.place = place
        self.seq = 0
        self.children: dict[str, SessionTraces] = {}
        self._models = models
        self._redactor = redactor
        self._with_content = with_content
        self._agent = ""
        self._is_run = False
        self._model: dict[str, Attribute] = {}
        self._turn = ""
        self._usage = Usage()
        self._open: dict[str, TraceSpan] = {}
        self._ended: list[TraceSpan] = []
        self._time = 0.0

    def take(self, seq: int, time: float, entry: e.Entry) -> list[TraceSpan]:
        """Take the next entry, of that number and time; return the spans that have ended with it."""
        self.seq, self._time, self._ended = seq, time, []
        if _TRACED.include(entry):
            self._take(entry)
        return self._ended

    def follow(self, stored: StoredEntry) -> list[TraceSpan]:
        """Take the next entry as it is stored. Raises `StoreDamaged`."""
        from ...journal.codec import decode_entry

        return self.take(stored.seq, stored.time, decode_entry(stored.data))

    def lost(self) -> list[TraceSpan]:
        """End what a crash has cut off, as `Recovered` will, at the time of the newest entry."""
        self._ended = []
        self._end_turn("lost", self._time)
        self._end(_JUDGE, "lost")
        return self._ended

    def _take(self, entry: _Traced) -> None:
        match entry:
            case e.SessionOpened():
                self._is_run = entry.workflow is not None
                self._agent = entry.workflow.name if entry.workflow else entry.agent
                self._model = about_model(entry.model, self._models)
            case e.PolicyChanged():
                if entry.model:
                    self._model = about_model(entry.model, self._models)
            case e.Recovered():
                self._end_turn("lost", entry.last_active)
                self._end(_JUDGE, "lost", at=entry.last_active)
            case e.SessionSuspended() | e.SessionFinalized():
                self._end_turn("interrupted", self._time)
            case e.InterruptPlanned() | e.InterruptRequested():
                is_now = isinstance(entry, e.InterruptRequested)
                cause = {"steersman.cause": entry.cause, "steersman.rule": entry.order.routed.rule}
                text = self._content("steersman.text", entry.order.said.text)
                self._note("interrupt" if is_now else "interrupt planned", {**cause, **text})
            case e.Steered():
                said = "\n".join(message.text for message in entry.messages)
                text = self._content("steersman.text", said)
                self._note("steer", {"steersman.messages": len(entry.items), **text})
            case e.TurnEntry():
                self._take_of_turn(entry)
            case e.ChildEntry():
                self._take_of_child(entry)
            case e.JudgingBegun() | e.GoalJudged() | e.JudgingStopped():
                self._take_of_judge(entry)
            case e.RunEntry():
                self._take_of_run(entry)
            case _:
                assert_never(entry)

    # Turns: their beginning and end, calls of the model, calls of tools ---------------------------

    def _take_of_turn(self, entry: e.AnyTurnEntry) -> None:
        match entry:
            case e.TurnStarted():
                self._begin_turn(entry)
            case e.ModelCalled():
                self._begin_model()
            case e.Answered():
                asks = bool(entry.messages and entry.messages[0].tool_calls)
                self._answered(entry.usage, "tool_calls" if asks else "stop", entry.messages)
            case e.AnswerCut():
                self._answered(Usage(), "cut", entry.messages)
            case e.ModelCallFailed():
                self._end("model", "failed", self._content("steersman.reason", entry.reason))
            case e.CompactionBegun():
                self._end("model", "failed", {"steersman.reason": "the conversation is too long"})
                self._begin_model({"steersman.purpose": "compaction"})
            case e.Compacted():
                self._answered(entry.usage, "stop" if entry.how == "summary" else "error", ())
            case e.ToolIntended() | e.CallReported():
                self._begin_call(entry)
            case e.ToolRefused() | e.ToolEnded():
                self._end_call(entry)
            case e.QuestionAsked():
                tool = self._line(entry.tool)
                about = {"gen_ai.tool.name": tool, "gen_ai.tool.call.id": entry.call}
                self._note("question", about)
            case e.QuestionAnswered():
                self._note("answer", {"steersman.choice": self._line(entry.choice)})
            case e.ProgressMade():
                done = {"steersman.done": entry.done, "steersman.total": entry.total}
                self._note("progress", done)
            case e.ClaimDoubted():
                self._note("claim_doubted", {"steersman.fact": self._line(entry.fact)})
            case e.NoProgress():
                said = {"steersman.count": entry.count, "steersman.did": entry.did}
                self._note("no_progress", {"steersman.what": entry.what, **said})
            case e.LimitReached():
                self._note("limit", {"steersman.reason": self._line(entry.what)})
            case e.Interrupted():
                self._answered(Usage(), "interrupted", ())
            case e.Stopped():
                if entry.turn == self._turn:
                    self._end_turn("interrupted", self._time)
            case e.TurnEnded():
                self._end_turn(entry.status, self._time, entry.reason)
            case e.LateResult():
                self._note_late(entry)
            case _:  # the rest takes no time of its own
                return

    def _begin_turn(self, entry: e.TurnStarted) -> None:
        self._end_turn("lost", self._time)  # no journal has this: a turn ends before the next
        self._turn, self._usage = entry.turn, Usage()
        operation = "invoke_workflow" if self._is_run else "invoke_agent"
        named = "gen_ai.workflow.name" if self._is_run else "gen_ai.agent.name"
        resumed = (self.place.context(entry.resumes),) if entry.resumes else ()
        said = self._messages("gen_ai.input.messages", entry.messages)
        opened = self._begin("turn", operation, self._agent)
        opened.parent = self.place.above.span if self.place.above else ""
        opened.links = resumed
        opened.attributes |= {
            named: self._line(self._agent),
            "steersman.turn": entry.turn,
            **self._model,
            **said,
        }

    def _end_turn(self, status: str, time: float, reason: str = "") -> None:
        """End the turn that runs, and before it what runs in it: that shares its fate."""
        within = [key for key in self._open if key not in ("turn", _JUDGE)]
        for key in reversed(within):
            inner = "interrupted" if status == "completed" else status
            self._end(key, inner, at=time)
        why = self._content("steersman.reason", reason)
        more = {"steersman.turn.status": status, **_tokens(self._usage), **why}
        self._end("turn", status, more, at=time)
        self._turn = ""

    def _begin_model(self, more: Attributes = NONE) -> None:
        opened = self._begin("model", "chat", self._model_name, part=f"model@{self.seq}")
        opened.is_client = "server.address" in self._model
        opened.attributes |= {**self._model, **more}

    def _answered(self, usage: Usage, finish: str, messages: tuple[ChatMessage, ...]) -> None:
        """End the call of the model; an answer that was not whole is no error."""
        if "model" not in self._open:
            return
        self._usage += usage
        said = self._messages("gen_ai.output.messages", messages, finish)
        finished = {"gen_ai.response.finish_reasons": (finish,)}
        self._end("model", "", {**finished, **_tokens(usage), **said})

    def _note_late(self, entry: e.LateResult) -> None:
        """Count the tokens of an answer that came after its turn, in a span of its own."""
        if entry.usage.tokens:
            opened = self._begin(
                "late", "chat", self._model_name, turn=entry.turn, part=f"late@{self.seq}"
            )
            opened.attributes |= {**self._model, "steersman.late": True}
            self._end("late", "", _tokens(entry.usage))

    def _begin_call(self, entry: e.ToolIntended | e.CallReported | e.ToolRefused) -> None:
        """Begin a tool's call; one that was reported may be intended, too."""
        key = f"call {entry.call}"
        if key in self._open:
            return
        within = f"call {entry.within}" if isinstance(entry, e.CallReported) else "turn"
        opened = self._begin(key, "execute_tool", entry.tool, part=entry.call, below=within)
        opened.attributes |= {
            "gen_ai.tool.name": self._line(entry.tool),
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": entry.call,
        }
        if not isinstance(entry, e.ToolRefused):
            opened.attributes |= self._content("gen_ai.tool.call.arguments", entry.arguments)

    def _end_call(self, entry: e.ToolEnded | e.ToolRefused) -> None:
        if isinstance(entry, e.ToolRefused):
            self._begin_call(entry)
        said = "\n".join(message.text for message in entry.messages)
        result = self._content("gen_ai.tool.call.result", said)
        status = entry.end.status if isinstance(entry, e.ToolEnded) else entry.status
        code = _exit_code(entry.end.exit_code if isinstance(entry, e.ToolEnded) else None)
        more = {"steersman.tool.status": status, **code, **result}
        self._end(f"call {entry.call}", status, more)

    # Children, the judge, the steps of a run ------------------------------------------------------

    def _take_of_child(self, entry: e.AnyChildEntry) -> None:
        name: Attributes = {"steersman.child": self._line(entry.child)}
        match entry:
            case e.ChildStarted():
                self.children[entry.session] = self.place.of_child(entry)
                self._note("child started", {**name, "steersman.child.session": entry.session})
            case e.ChildResumed():
                self._note("child resumed", name)
            case e.ChildEnded():
                self._note("child ended", {**name, "steersman.status": entry.status})
            case e.ChildInterrupted():
                self._note("child ended", {**name, "steersman.status": "interrupted"})
            case _:
                return

    def _take_of_judge(self, entry: e.JudgingBegun | e.GoalJudged | e.JudgingStopped) -> None:
        """The judge looks at a turn that has ended; its span is below that one."""
        match entry:
            case e.JudgingBegun():
                part = f"{_JUDGE}@{self.seq}"
                opened = self._begin(_JUDGE, "invoke_agent", _JUDGE, turn=entry.turn, part=part)
                opened.attributes |= {"gen_ai.agent.name": _JUDGE, "steersman.goal": entry.goal}
            case e.GoalJudged():
                verdict = {"steersman.verdict": entry.verdict, "steersman.by": entry.by}
                self._end(_JUDGE, "", {**verdict, **_tokens(entry.usage)})
            case e.JudgingStopped():
                self._end(_JUDGE, "interrupted")

    def _take_of_run(self, entry: e.AnyRunEntry) -> None:
        match entry:
            case e.RunOverdue():
                self._note("overdue", {})
            case e.StepStarted():
                self._begin_step(entry.step)
            case e.ItemStarted():
                name = f"attempt {entry.step}"
                key, below = f"step {entry.step} {entry.index}", f"step {entry.step}"
                opened = self._begin(key, "", name, part=entry.call, below=below)
                opened.attributes |= {
                    "steersman.step": self._line(entry.step),
                    "steersman.index": entry.index,
                    "steersman.attempt": entry.attempt,
                }
            case e.ItemEnded():
                code = _exit_code(entry.result.exit_code)
                said = self._content("steersman.output", entry.result.output)
                more = {"steersman.status": entry.status, **code, **said}
                self._end(f"step {entry.step} {entry.index}", entry.status, more)
            case e.StepAsked():
                self._note("question", {"steersman.step": self._line(entry.step)})
            case e.StepEnded():
                step = f"step {entry.step}"
                if step not in self._open:
                    self._begin_step(entry.step)
                self._end(step, entry.status, {"steersman.status": entry.status})
            case _:
                return

    def _begin_step(self, name: str) -> None:
        key = f"step {name}"
        opened = self._begin(key, "", key, part=f"{key}@{self.seq}")
        opened.attributes |= {"steersman.step": self._line(name)}

    # Spans ----------------------------------------------------------------------------------------

    def _begin(
        self,
        key: str,
        operation: str,
        name: str,
        *,
        part: str = "",
        turn: str = "",
        below: str = "turn",
    ) -> TraceSpan:
        """Begin a span below another one; `part` is what its id is made of, if not `key`."""
        turn = turn or self._turn
        above = self._open.get(below) or self._open.get("turn")
        common = {"gen_ai.operation.name": operation} if operation else {}
        opened = self._open[key] = TraceSpan(
            context=self.place.context(turn, part or key),
            name=self._line(f"{operation} {name}".strip()),
            start=self._time,
            parent=above.context.span
            if above is not None and turn == self._turn
            else self.place.context(turn).span,
            attributes={**common, "gen_ai.conversation.id": self.place.session},
        )
        return opened

    def _end(
        self, key: str, status: str, more: Attributes = NONE, *, at: float | None = None
    ) -> None:
        """End a span, if it has begun."""
        span = self._open.pop(key, None)
        if span is not None:
            span.end = max(
                span.start, self._time if at is None else at
            )  # the clock may be set back
            span.attributes |= more
            if status not in _FINE:
                span.error = span.attributes["error.type"] = status
            self._ended.append(span)

    def _note(self, name: str, attributes: Attributes) -> None:
        """Add an event to the turn that runs; between turns nothing is traced."""
        opened = self._open.get("turn")
        if opened is not None and len(opened.events) < MOMENTS:
            given = {key: value for key, value in attributes.items() if value != ""}
            opened.events.append(SpanEvent(name=name, time=self._time, attributes=given))

    # Texts ----------------------------------------------------------------------------------------

    @property
    def _model_name(self) -> str:
        return str(self._model.get("gen_ai.request.model", ""))

    def _line(self, text: str) -> str:
        return self._redactor.line(text)[:_NAME]

    def _content(self, name: str, value: Any) -> Attributes:
        """Return an attribute with what was said, if that is wanted: a text, or data as JSON."""
        if not self._with_content or not value:
            return {}
        safe = _cut(self._redactor.data(value))
        return {name: safe if isinstance(safe, str) else json.dumps(safe, ensure_ascii=False)}

    def _messages(self, name: str, messages: Iterable[ChatMessage], finish: str = "") -> Attributes:
        """Return messages in the form of the conventions, if contents are wanted."""
        return self._content(name, [_message(message, finish) for message in messages])


def _message(message: ChatMessage, finish: str) -> dict[str, Any]:
    calls = [
        {
            "type": "tool_call",
            "id": request.call,
            "name": request.tool,
            "arguments": dict(request.arguments),
        }
        for request in message.tool_calls
    ]
    texts = [{"type": "text", "content": message.text}] if message.text else []
    more = {"finish_reason": finish} if finish else {}
    return {"role": message.role, "parts": [*texts, *calls], **more}


def _cut(value: Any) -> Any:
    """Shorten the texts in data, which are redacted already."""
    match value:
        case str():
            return value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
        case _ if is_table(value):
            return {key: _cut(item) for key, item in value.items()}
        case _ if is_list(value):
            return [_cut(item) for item in value]
        case _:
            return value


def _exit_code(code: int | None) -> Attributes:
    return NONE if code is None else {"process.exit.code": code}


def _tokens(usage: Usage) -> Attributes:
    """Return the attributes of a usage; empty if nothing was used, or it is not known."""
    if not usage.tokens:
        return {}
    more = {
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
        "steersman.cost": usage.cost,
    }
    return {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
        **{name: value for name, value in more.items() if value},
    }
