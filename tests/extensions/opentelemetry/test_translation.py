"""The translation of a journal into spans, and what the SDK makes of them."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from steersman.extensions.opentelemetry.otlp import Meters, address, as_json, readable
from steersman.extensions.opentelemetry.spans import (
    LONGEST,
    MOMENTS,
    SessionTrace,
    TraceSpan,
    about_model,
)
from steersman.gateway.trace_context import SessionTraces, TurnContexts
from steersman.gateway.wording.redaction import Redactor
from steersman.journal import entries as e
from steersman.machines import protocol as m
from steersman.machines.conversation import ChatMessage, ToolRequest, Usage
from steersman.machines.errors import UsageError
from steersman.ports.models.provider import ModelConfig

USED = Usage(input=100, output=20, cache_read=60, cost=0.5)
ASKS = ChatMessage(
    role="assistant",
    text="I look.",
    tool_calls=(ToolRequest(call="t1.s1.c1", tool="shell", arguments={"command": "ls"}),),
)
OPENED = e.SessionOpened(
    session="abc",
    folder="/f",
    agent="assistant",
    model="main (test-model at 127.0.0.1:80)",
    system="s",
)
JOURNAL: tuple[e.Entry, ...] = (
    OPENED,
    e.TurnStarted(turn="t1", item="m1", number=1, epoch=1),
    e.ModelCalled(turn="t1", step=1),
    e.Answered(turn="t1", step=1, usage=USED, messages=(ASKS,)),
    e.QuestionAsked(turn="t1", call="t1.s1.c1", question="q", tool="shell", arguments={}),
    e.QuestionAnswered(turn="t1", question="q", choice="allow"),
    e.ToolIntended(turn="t1", step=1, call="t1.s1.c1", tool="shell", arguments={"command": "ls"}),
    e.ChildStarted(
        child="kid",
        session="abc-1",
        agent="assistant",
        task="x",
        relation="foreground_child",
        turn="t1",
        call="t1.s1.c1",
    ),
    e.ToolEnded(
        turn="t1", call="t1.s1.c1", tool="shell", end=m.CallEnd(status="failed", exit_code=1)
    ),
    e.ToolRefused(turn="t1", call="t1.s1.c2", tool="write", status="denied", reason="no"),
    e.CompactionBegun(turn="t1", step=2, why="full"),
    e.Compacted(turn="t1", step=2, dropped=1, how="summary", usage=USED),
    e.PolicyChanged(model="small"),
    e.ModelCalled(turn="t1", step=2),
    e.InterruptRequested(receipt="i1", turn="t1", order=m.StopOrder(cause="stop")),
    e.Interrupted(turn="t1", cause="stop"),
    e.Stopped(turn="t1"),
    e.LateResult(turn="t1", what="answer", usage=USED),
    e.TurnStarted(turn="t2", item="m1", number=1, epoch=2, resumes="t1"),
    e.ModelCalled(turn="t2", step=1),
    e.Recovered(cause="crash", items=1, last_active=19.0),
    e.TurnStarted(turn="t3", item="m2", number=2, epoch=3),
    e.ModelCalled(turn="t3", step=1),
    e.ModelCallFailed(turn="t3", step=1, reason="secret words"),
    e.TurnEnded(turn="t3", status="failed", reason="secret words"),
    e.JudgingBegun(goal="g1", turn="t3"),
    e.GoalJudged(goal="g1", turn="t3", verdict="continue", usage=USED),
    e.SessionSuspended(),
)
"""One of everything; entry N happens at second N."""


def trace(content: bool = False, environ: Mapping[str, str] | None = None) -> SessionTrace:
    """Return the translation of the session."""
    models = {
        name: ModelConfig(name=name, provider=provider)
        for name, provider in (("main", "acme"), ("small", "tiny"))
    }
    redactor = Redactor(environ or {})
    return SessionTrace(SessionTraces(session="abc"), models, redactor, with_content=content)


def told(to: SessionTrace, journal: tuple[e.Entry, ...] = JOURNAL) -> Iterator[TraceSpan]:
    """Translate a journal."""
    for seq, entry in enumerate(journal, 1):
        yield from to.take(seq, float(seq), entry)


def story(spans: list[TraceSpan]) -> list[tuple[str, float, float, str, str]]:
    """Return each span as its name, beginning, end, error, and the name of what it is below."""
    names = {span.context.span: span.name for span in spans}
    return [
        (span.name, span.start, span.end, span.error, names.get(span.parent, span.parent))
        for span in spans
    ]


def test_every_entry_has_its_place() -> None:
    """Turns, model calls, tools, a compaction, a late answer, a judge and a crash, in one story."""
    spans = list(told(trace()))
    turn = "invoke_agent assistant"
    assert story(spans) == [
        ("chat test-model", 3, 4, "", turn),
        ("execute_tool shell", 7, 9, "failed", turn),
        ("execute_tool write", 10, 10, "denied", turn),
        ("chat test-model", 11, 12, "", turn),
        ("chat small", 14, 16, "", turn),
        (turn, 2, 17, "", ""),
        ("chat small", 18, 18, "", turn),
        ("chat small", 20, 20, "lost", turn),
        (turn, 19, 19, "lost", ""),
        ("chat small", 23, 24, "failed", turn),
        (turn, 22, 25, "failed", ""),
        ("invoke_agent judge", 26, 27, "", turn),
    ]
    assert len({span.context for span in spans}) == len(spans)
    first, second, third = [span for span in spans if span.name == turn]
    assert [span.attributes["steersman.turn.status"] for span in (first, second, third)] == [
        "interrupted",
        "lost",
        "failed",
    ]
    assert first.attributes["gen_ai.usage.input_tokens"] == 200
    names = ["question", "answer", "child started", "interrupt"]
    assert [event.name for event in first.events] == names
    assert second.links == (first.context,)
    assert "secret words" not in repr(spans)
    assert spans[-1].attributes["steersman.verdict"] == "continue"
    models = {span.attributes["gen_ai.provider.name"] for span in spans if "chat" in span.name}
    assert models == {"acme", "tiny"}


def test_it_does_not_matter_where_a_process_begins() -> None:
    """Whoever takes a session up after any entry gives the rest of the same spans."""
    whole = list(told(trace()))
    for split in range(len(JOURNAL)):
        early, late = trace(), trace()
        before = list(told(early, JOURNAL[:split]))
        list(told(late, JOURNAL[:split]))
        after = [
            span
            for seq, entry in enumerate(JOURNAL[split:], split + 1)
            for span in late.take(seq, float(seq), entry)
        ]
        assert before + after == whole


def test_a_crash_ends_the_same_before_and_after_it_is_known() -> None:
    """A turn that was cut off has the span that it gets when somebody resumes the session."""
    crashed = trace()
    list(told(crashed, JOURNAL[:20]))
    recovered = [span for span in told(trace()) if span.error == "lost"]
    cut = crashed.lost()
    assert [span.context for span in cut] == [span.context for span in recovered]
    assert [span.name for span in cut] == [span.name for span in recovered]


def test_a_child_and_its_log_lines_are_in_the_parents_trace() -> None:
    """Its place is the span of the call; without a turn, as a side talk, it has traces of its own."""
    parent = trace()
    spans = list(told(parent))
    call = next(span for span in spans if span.name == "execute_tool shell")
    place = parent.children["abc-1"]
    assert place == SessionTraces(session="abc-1", above=call.context)
    assert place.context("t1").trace == call.context.trace
    contexts = TurnContexts()
    started = e.TurnStarted(turn="t1", item="m1", number=1, epoch=1)
    for entry in JOURNAL[:8]:
        contexts.take("abc", entry, is_child=False)
    contexts.take("abc-1", started, is_child=True)
    contexts.take("abc-7", started, is_child=True)  # resumed: its place is not known here
    assert contexts.of("abc-1") == place.context("t1")
    assert contexts.of("abc") == SessionTraces(session="abc").context("t1")
    assert contexts.of("abc-7") is None
    contexts.take("abc", e.TurnEnded(turn="t1", status="completed"), is_child=False)
    assert contexts.of("abc") is None
    assert contexts.of("abc", "t1") == SessionTraces(session="abc").context("t1")
    talk = e.ChildStarted(child="k", session="x", agent="a", task="t", relation="side_talk")
    assert SessionTraces(session="abc").of_child(talk) == SessionTraces(session="x")


def test_contents_are_redacted_whole_and_then_cut() -> None:
    """A secret at the place of the cut is not half there; names are redacted without `content`, too."""
    secret = "hunter2-hunter2"
    text = "x" * (LONGEST - 5) + secret
    asks = ChatMessage(role="assistant", text=text)
    journal = (
        OPENED,
        e.TurnStarted(turn="t1", item="m1", number=1, epoch=1),
        e.ModelCalled(turn="t1", step=1),
        e.Answered(turn="t1", step=1, messages=(asks,)),
        e.ToolIntended(turn="t1", step=1, call="c", tool=secret, arguments={"token": "abc"}),
        e.ToolEnded(turn="t1", call="c", tool=secret, end=m.CallEnd(status="ok")),
        e.TurnEnded(turn="t1", status="completed"),
    )
    spans = list(told(trace(True, {"MY_TOKEN": secret}), journal))
    assert "hunter2"[:5] not in repr(spans)
    said = str(spans[0].attributes["gen_ai.output.messages"])
    assert LONGEST - 10 < len(said) < LONGEST + 200
    assert spans[1].name == "execute_tool …"
    assert spans[1].attributes["gen_ai.tool.call.arguments"] == '{"token": "…"}'
    quiet = list(told(trace(False, {"MY_TOKEN": secret}), journal))
    assert "hunter2"[:5] not in repr(quiet)
    assert "xxx" not in repr(quiet)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("main (gpt-9 at api.acme.example)", ("acme", "gpt-9", "api.acme.example")),
        ("other (gpt-9 at 127.0.0.1:8080)", ("openai", "gpt-9", "127.0.0.1")),
        ("claude-9 at api.anthropic.com", ("anthropic", "claude-9", "api.anthropic.com")),
        ("small (qwen, embedded)", ("local", "qwen", "")),
        ("qwen (embedded)", ("local", "qwen", "")),
        ("main", ("acme", "main", "")),
        ("somebody else", ("_OTHER", "somebody else", "")),
        ("", ("", "", "")),
    ],
)
def test_a_model_is_named_as_the_conventions_want(
    said: str, expected: tuple[str, str, str]
) -> None:
    """Its provider is the configured one, or what its server tells."""
    settings = ModelConfig(name="main", provider="acme", max_tokens=99, temperature=0.0)
    about = about_model(said, {"main": settings})
    names = ("gen_ai.provider.name", "gen_ai.request.model", "server.address")
    assert tuple(about.get(name, "") for name in names) == expected
    assert about.get("server.port") == (8080 if "8080" in said else None)
    asked = [about.get(f"gen_ai.request.{name}") for name in ("max_tokens", "temperature")]
    assert asked == ([99, 0.0] if said.startswith("main") else [None, None])


def test_the_sdk_sends_what_is_printed_as_json() -> None:
    """What the exporter of the SDK encodes is our OTLP/JSON, ids, times, links and all."""
    spans = list(told(trace(True)))
    exporter = InMemorySpanExporter()
    exporter.export(list(map(readable, spans)))
    made = exporter.get_finished_spans()
    assert [span.name for span in made] == [span.name for span in spans]
    theirs = MessageToDict(encode_spans(made), use_integers_for_enums=True)
    ours = as_json(spans)
    assert list(map(plain, spans_in(theirs))) == list(map(plain, spans_in(ours)))
    assert len(spans_in(ours)) == len(spans)
    call = spans_in(ours)[0]
    assert (call["startTimeUnixNano"], call["endTimeUnixNano"]) == ("3000000000", "4000000000")


def spans_in(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the spans of a request as JSON."""
    found: list[dict[str, Any]] = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return found


def plain(span: dict[str, Any]) -> dict[str, Any]:
    """Return a span without what the two forms write differently: flags, and ids of bytes in base64."""

    def same(name: str, value: Any) -> Any:
        if name.endswith("Id") and len(value) % 16:
            return base64.b64decode(value).hex()
        if name == "links":
            return [plain(link) for link in value]
        return value

    return {name: same(name, value) for name, value in span.items() if value and name != "flags"}


def test_a_span_has_so_many_events_and_the_sdk_leaves_none_out() -> None:
    """A turn of many thousand children can be sent, and has as many events as it is printed with."""
    steps = (e.ProgressMade(turn="t1", done=done, total=5_000) for done in range(5_000))
    over = e.TurnEnded(turn="t1", status="completed")
    (turn,) = told(trace(), (*JOURNAL[:2], *steps, over))
    assert len(readable(turn).events) == len(turn.events) == MOMENTS


def test_metrics_are_sums_of_the_spans() -> None:
    """A turn's tokens are not counted besides those of its calls."""
    reader = InMemoryMetricReader()
    meters = Meters(reader)
    for span in told(trace()):
        meters.count(span)
    data = reader.get_metrics_data()
    assert data is not None
    metrics = {metric.name: metric for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    tokens: Any = metrics["gen_ai.client.token.usage"].data
    sums = [(p.attributes["gen_ai.token.type"], p.sum, p.count) for p in tokens.data_points]
    kinds = {kind: sum(n for k, n, _ in sums if k == kind) for kind, _, _ in sums}
    assert kinds == {"input": 400, "output": 80}  # two answers, a late one, a judge
    turns: Any = metrics["steersman.turns"].data
    assert sum(point.value for point in turns.data_points) == 3
    stops: Any = metrics["steersman.interrupts"].data
    assert [(dict(p.attributes), p.value) for p in stops.data_points] == [
        ({"steersman.cause": "stop"}, 1)
    ]


def test_an_address_is_one_of_a_collector() -> None:
    """The path of the signal is added; what is no address is refused."""
    assert address("http://a:4318", "traces") == "http://a:4318/v1/traces"
    assert address("https://a/otlp/", "metrics") == "https://a/otlp/v1/metrics"
    assert address("http://a/v1/traces", "metrics") == "http://a/v1/metrics"
    with pytest.raises(UsageError, match="http://"):
        address("localhost:4318", "traces")
