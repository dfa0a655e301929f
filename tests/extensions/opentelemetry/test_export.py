"""Traces of real sessions, in a real collector on loopback."""

import json
import time
from collections.abc import Generator, Iterable
from typing import Any

import pytest
from support.collector import Collector, Seen, of_json, paths
from support.driver import Chat, Gate, Place
from support.model_server import Hang, Status, Text, Tools
from support.patience import seconds
from support.ports import HeldPort

USED = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20}
PRICE = "[models.main.price]\ninput = 3.0\noutput = 15.0"


@pytest.fixture
def collector() -> Generator[Collector]:
    """A collector of this test's own."""
    with Collector() as made:
        yield made


@pytest.fixture
def closed() -> Generator[HeldPort]:
    """A port on which no collector listens."""
    with HeldPort() as held:
        yield held


def sent_to(collector: Collector, more: str = "") -> str:
    """Return the configuration that sends to a collector."""
    return f'[telemetry]\nendpoint = "{collector.url}"\n{more}'


def old(place: Place, session: str = "last") -> list[Seen]:
    """Return the spans of a session that is over, from `sessions trace`."""
    ran = place.run("sessions", "trace", session, "--json")
    assert ran.returncode == 0, ran.stderr
    return of_json(json.loads(ran.stdout))


def key(span: Seen) -> tuple[str, str]:
    """Return what identifies a span."""
    return span.trace, span.id


def the(spans: Iterable[Seen], name: str) -> Seen:
    """Return the only span of a name."""
    (found,) = [span for span in spans if span.name == name]
    return found


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """Return a call as a model makes it."""
    return {"tool": tool, "arguments": arguments}


def faults(chat: Chat) -> list[str]:
    """Return what was said of telemetry."""
    return [text for text in notices(chat) if text.startswith("No telemetry")]


def notices(chat: Chat) -> list[str]:
    """Return what was said beside the conversation."""
    return [str(event["text"]) for event in chat.seen("notice")]


def test_a_turn_is_a_trace_and_an_old_one_is_the_same(place: Place, serve, collector) -> None:
    """Live and afterwards the same spans come: of the turn, its model calls and its tool calls."""
    reads = Tools([call("read", path="notes.txt"), call("read", path="missing.txt")])
    place.environ["TEAM"] = "steers"
    rest = sent_to(collector, 'headers = { x-key = "$TEAM" }\n')
    serve(reads, Text("Done."), rest=rest + PRICE)
    (place.folder / "notes.txt").write_text("hello")
    chat = place.chat("--yes")
    chat.completes("look")
    spans = collector.wait("invoke_agent assistant")
    assert paths(spans) == [
        "invoke_agent assistant",
        *["invoke_agent assistant > chat test-model"] * 2,
        *["invoke_agent assistant > execute_tool read"] * 2,
    ]
    turn = the(spans, "invoke_agent assistant")
    assert turn.attributes["gen_ai.usage.input_tokens"] == 200
    assert turn.attributes["steersman.turn.status"] == "completed"
    assert turn.attributes["gen_ai.conversation.id"] == chat.session
    first, last = [span for span in spans if span.name == "chat test-model"]
    assert first.attributes.items() >= USED.items()
    assert first.attributes["gen_ai.operation.name"] == "chat"
    assert first.attributes["gen_ai.provider.name"] == "openai"
    assert first.attributes["gen_ai.usage.cache_read.input_tokens"] == 60
    assert first.attributes["steersman.cost"] == pytest.approx(0.0006)
    assert first.attributes["gen_ai.response.finish_reasons"] == ["tool_calls"]
    assert last.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    tools = [span for span in spans if span.name == "execute_tool read"]
    assert sorted(span.status for span in tools) == [0, 2]
    assert {span.attributes.get("error.type") for span in tools} == {None, "failed"}
    assert all(turn.start <= span.start <= span.end <= turn.end for span in spans)
    assert collector.resource["service.name"] == "steersman"
    assert {headers.get("x-key") for headers in collector.headers} == {"steers"}
    said = json.dumps([span.attributes for span in spans])
    assert "hello" not in said
    assert "notes.txt" not in said
    assert chat.close() == 0
    assert sorted(old(place), key=key) == sorted(spans, key=key)


@pytest.mark.nightly
@pytest.mark.checks_data("sessions trace")
def test_an_old_session_is_sent_on_demand(place: Place, serve, collector) -> None:
    """What ran without telemetry is sent by one command, twice the same, without other headers."""
    more = 'headers = { x-key = "$TEAM" }'
    serve(Tools([call("list", path=".")]), Text("Done."), rest="")
    assert place.run("chat", "look").returncode == 0
    ran = place.run("sessions", "trace", "last", "--endpoint", collector.url)
    assert ran.returncode == 0, ran.stderr
    assert "4 spans in 1 trace" in ran.stdout
    assert collector.spans == old(place)
    nowhere = place.run("sessions", "trace", "last")
    assert nowhere.returncode == 2
    assert "--endpoint URL" in nowhere.stderr
    with Collector() as other:
        serve(rest=sent_to(other, more))
        place.environ["TEAM"] = "steers"
        assert place.run("sessions", "trace", "last").returncode == 0
        assert other.headers[0]["x-key"] == "steers"
        assert other.spans == collector.spans
        again = ("sessions", "trace", "last", "--endpoint", collector.url)
        assert place.run(*again).returncode == 0
        assert "x-key" not in collector.headers[-1]
    collector.status = 400
    refused = place.run("sessions", "trace", "last", "--endpoint", collector.url)
    assert refused.returncode == 1
    assert "did not take" in refused.stderr


def test_a_child_is_below_the_call_that_started_it(place: Place, serve, collector) -> None:
    """The turns of a child are in the trace of its parent's turn, live and afterwards."""
    asks = Tools([call("delegate", agent="assistant", task="say it", name="kid")])
    serve(asks, Text("It."), Text("Done."), rest=sent_to(collector))
    chat = place.chat("--yes")
    chat.send("go")
    chat.wait("turn_ended", turn="t1", session=chat.session)
    assert chat.close() == 0
    top = "invoke_agent assistant"
    below = f"{top} > execute_tool delegate > {top}"
    spans = collector.wait(top)
    expected = [top, *[f"{top} > chat test-model"] * 2, f"{top} > execute_tool delegate"]
    assert paths(spans) == sorted([*expected, below, f"{below} > chat test-model"])
    assert len({span.trace for span in spans}) == 1
    assert sorted(old(place), key=key) == sorted(spans, key=key)
    child = f"{chat.session}-1"
    alone = [span for span in spans if span.attributes["gen_ai.conversation.id"] == child]
    assert sorted(old(place, child), key=key) == sorted(alone, key=key)


def test_a_run_has_its_steps_and_attempts(place: Place, serve, collector) -> None:
    """A workflow's run is a trace: steps, each attempt, and the sessions of agents below them."""
    serve(Text("ok"), rest=sent_to(collector))
    (place.folder / "job.toml").write_text(
        '[workflow]\nname = "job"\n'
        '[[step]]\nid = "hello"\nrun = ["echo", "hi"]\n'
        '[[step]]\nid = "break"\nrun = ["false"]\n'
        '[[step]]\nid = "ask"\nagent = "assistant"\nprompt = "say ok"\n'
    )
    place.run("run", "job.toml", "--yes")
    top = "invoke_workflow job"
    spans = collector.wait(top)
    agent = f"{top} > step ask > attempt ask > invoke_agent assistant"
    steps = [f"{top} > step {name}" for name in ("ask", "break", "hello")]
    attempts = [f"{step} > attempt {step.rpartition(' ')[2]}" for step in steps]
    assert paths(spans) == sorted([top, *steps, *attempts, agent, f"{agent} > chat test-model"])
    assert the(spans, "step break").status == 2
    assert the(spans, "attempt break").attributes["process.exit.code"] == 1
    assert the(spans, "attempt hello").status == 0
    assert sorted(old(place), key=key) == sorted(spans, key=key)


def test_steers_questions_and_stops_are_events_of_the_turn(place: Place, serve, collector) -> None:
    """What people do to a turn is at the turn, when they did it; a stop is no error."""
    serve(Tools([call("shell", command="echo hi")]), Hang(), rest=sent_to(collector))
    chat = place.chat()
    chat.send("go")
    question = chat.wait("question")
    chat.send({"text": "and then more", "as": "steer"})
    chat.wait("accepted")
    chat.answer(question, "allow")
    chat.wait("steered")
    chat.send("/stop")
    chat.wait("stopped")
    turn = the(collector.wait("invoke_agent assistant"), "invoke_agent assistant")
    assert [name for _, name, _ in turn.events] == ["question", "answer", "steer", "interrupt"]
    assert all(turn.start <= at <= turn.end for at, _, _ in turn.events)
    assert turn.events[3][2]["steersman.cause"] == "stop"
    assert turn.attributes["steersman.turn.status"] == "interrupted"
    assert turn.status == 0
    assert "and then more" not in json.dumps(turn.events)
    assert chat.close() == 0


def test_both_lives_of_a_crash_make_one_whole(place: Place, serve, gate: Gate, collector) -> None:
    """The crashed turn ends where it was cut off, above what the first life sent; the next is linked."""
    works = Tools([call("list", path="."), call("shell", command=gate.command)])
    serve(works, Text("Done."), rest=sent_to(collector))
    chat = place.chat("--yes")
    chat.send("go")
    gate.wait()
    first = collector.wait("chat test-model", "execute_tool list")
    chat.kill()
    assert paths(first) == ["? > chat test-model", "? > execute_tool list"]
    cut = old(place)
    again = place.chat("--yes", "--continue")
    again.wait("recovered")
    assert paths(collector.wait("invoke_agent assistant", "execute_tool shell"))[0][0] != "?"
    again.send("/queue resume")
    again.wait("turn_ended")
    assert again.close() == 0
    spans = collector.spans
    turns = [span for span in spans if span.name == "invoke_agent assistant"]
    lost, resumed = sorted(turns, key=lambda span: span.start)
    assert lost.attributes["steersman.turn.status"] == "lost"
    assert the(spans, "execute_tool shell").attributes["error.type"] == "lost"
    assert (lost.status, resumed.status) == (2, 0)
    assert {span.parent for span in first} == {lost.id}
    assert resumed.links == ((lost.trace, lost.id),)
    assert lost.end <= resumed.start
    assert sorted(old(place), key=key) == sorted(spans, key=key)
    assert {key(span) for span in cut} == {key(span) for span in spans if span.trace == lost.trace}
    assert the(cut, "invoke_agent assistant") == lost


def test_contents_come_only_if_they_are_wanted_and_without_secrets(
    place: Place, serve, collector
) -> None:
    """With `content`, messages, arguments and results are there; a key that the model prints is not."""
    place.environ["DEPLOY_TOKEN"] = "hunter2-hunter2"
    writes = Tools([call("write", path="out.txt", content="say hunter2-hunter2 twice")])
    serve(writes, Text("I used hunter2-hunter2."), rest=sent_to(collector, "content = true"))
    chat = place.chat("--yes")
    chat.completes("the key is hunter2-hunter2")
    assert chat.close() == 0
    spans = collector.wait("invoke_agent assistant")
    turn = the(spans, "invoke_agent assistant")
    (said,) = json.loads(turn.attributes["gen_ai.input.messages"])
    assert said["parts"] == [{"type": "text", "content": "the key is …"}]
    answers = [span.attributes["gen_ai.output.messages"] for span in spans if span.kind == 3]
    assert json.loads(answers[1])[0]["finish_reason"] == "stop"
    assert "I used …." in answers[1]
    tool = the(spans, "execute_tool write").attributes
    assert json.loads(tool["gen_ai.tool.call.arguments"])["path"] == "out.txt"
    assert tool["gen_ai.tool.call.result"]
    assert "hunter2" not in json.dumps([(span.attributes, span.events) for span in spans])


def test_metrics_add_up(place: Place, serve, collector) -> None:
    """Tokens, durations, turns, tools and interrupts are counted, and sent when the program ends."""
    serve(Tools([call("list", path=".")]), Text("Done."), Hang(), rest=sent_to(collector))
    chat = place.chat("--yes")
    chat.completes("go")
    chat.send("again")
    chat.wait("turn_started")
    chat.send("/stop")
    chat.wait("stopped")
    assert chat.close() == 0
    metrics = collector.metrics
    tokens = {
        point["gen_ai.token.type"]: sum for point, sum in metrics["gen_ai.client.token.usage"]
    }
    assert tokens == {"input": 200, "output": 40}
    turns = {p["steersman.turn.status"]: n for p, n in metrics["steersman.turns"]}
    assert turns == {"completed": 1, "interrupted": 1}
    tool = {"gen_ai.tool.name": "list", "steersman.tool.status": "ok"}
    assert metrics["steersman.tool.calls"] == [(tool, 1)]
    assert metrics["steersman.interrupts"] == [({"steersman.cause": "stop"}, 1)]
    kinds = {p["gen_ai.operation.name"] for p, _ in metrics["gen_ai.client.operation.duration"]}
    assert kinds == {"chat", "execute_tool", "invoke_agent"}


@pytest.mark.nightly
def test_a_collector_that_is_gone_costs_one_notice(place: Place, serve, closed: HeldPort) -> None:
    """Nobody waits for it, and nothing else is printed, nor by a chat of one message."""
    serve(Text("Done."), rest=f'[telemetry]\nendpoint = "http://127.0.0.1:{closed.number}"\n')
    chat = place.chat()
    chat.send("one")
    chat.wait_text("No telemetry")
    for turn in ("t2", "t3"):
        chat.wait_quiet()
        chat.send("again")
        chat.wait("turn_started", turn=turn)
    chat.wait_quiet()
    assert chat.close() == 0
    assert len(faults(chat)) == 1
    assert chat.diagnostics == ""
    one_shot = place.run("chat", "four")
    assert (one_shot.returncode, one_shot.stdout.strip()) == (0, "Done.")
    assert "export" not in one_shot.stderr


def test_a_collector_that_never_answers_delays_nothing(place: Place, serve, collector) -> None:
    """Turns run while a request hangs, and the program ends without its answer."""
    serve(Text("Done."), rest=sent_to(collector))
    collector.door.clear()
    chat = place.chat()
    for said in ("one", "two", "three"):
        chat.completes(said)
        collector.wait_requests(1)
    begun = time.monotonic()
    assert chat.close() == 0
    assert time.monotonic() - begun < seconds(3.0)
    assert not collector.door.is_set()


def test_without_the_extra_a_chat_works_and_says_what_to_install(place: Place, serve, collector):
    """A notice names the extra; old sessions are still printed, but not sent."""
    serve(Text("Done."), rest=sent_to(collector))
    hides = place.home / "hides" / "opentelemetry"
    hides.mkdir(parents=True)
    (hides / "__init__.py").write_text("")
    path = place.environ.get("PYTHONPATH", "")
    place.environ["PYTHONPATH"] = f"{hides.parent}:{path}"
    chat = place.chat()
    chat.send("one")
    chat.wait_text("[otel]")
    chat.wait_quiet()
    chat.send("two")
    chat.wait("turn_started", turn="t2")
    chat.wait_quiet()
    assert chat.close() == 0
    assert len(faults(chat)) == 1
    assert len(old(place)) == 4
    sending = place.run("sessions", "trace", "last")
    assert sending.returncode == 2
    assert "[otel]" in sending.stderr
    assert collector.headers == []


@pytest.mark.nightly
def test_a_collector_that_comes_back_gets_what_waited(place: Place, serve, collector) -> None:
    """It is tried again from time to time, without another notice, and then nothing is missing."""
    serve(Text("Done."), rest=sent_to(collector))
    collector.status = 400
    chat = place.chat()
    chat.completes("one")
    collector.wait_requests(2)
    chat.completes("two")
    collector.wait_requests(3)
    collector.status = 200
    collector.wait("invoke_agent assistant")
    assert chat.close() == 0
    assert len(faults(chat)) == 1
    assert sorted(old(place), key=key) == sorted(collector.spans, key=key)


def test_a_project_cannot_send_anything(place: Place, serve, collector) -> None:
    """Neither its file, trusted or not, nor a workflow of it names a collector; both are reported."""
    serve(Text("Done."))
    (place.folder / "steersman.toml").write_text(sent_to(collector))
    assert place.run("trust", ".", "--yes").returncode == 0
    chat = place.chat()
    chat.completes("go")
    assert chat.close() == 0
    assert any("cannot set `telemetry`" in text for text in notices(chat))
    (place.folder / "steersman.toml").unlink()
    job = '[workflow]\nname = "job"\n[[step]]\nid = "hello"\nrun = ["true"]\n'
    (place.folder / "job.toml").write_text(job + sent_to(collector))
    place.run("run", "job.toml", "--yes")
    assert collector.headers == []


def test_a_failed_model_and_a_bad_status_are_errors(place: Place, serve, collector) -> None:
    """What failed is an error of its span and of the turn's; why is content."""
    serve(Status(400, {"error": {"message": "very private"}}), rest=sent_to(collector))
    chat = place.chat()
    chat.send("go")
    chat.wait("turn_ended")
    assert chat.close() == 0
    spans = collector.wait("invoke_agent assistant")
    for name in ("chat test-model", "invoke_agent assistant"):
        assert the(spans, name).status == 2
        assert the(spans, name).attributes["error.type"] == "failed"
    assert "very private" not in json.dumps([span.attributes for span in spans])


def test_the_log_names_the_trace(place: Place, serve) -> None:
    """With `--debug` each line about a turn, also of a child, names the turn's trace and span."""
    asks = Tools([call("delegate", agent="assistant", task="say it", name="kid")])
    serve(asks, Text("It."), Text("Done."))
    chat = place.chat("--yes", "--debug")
    chat.send("go")
    chat.wait("turn_ended", turn="t1", session=chat.session)
    assert chat.close() == 0
    lines = (place.home / "state" / "log" / "steersman.log").read_text().splitlines()
    turns = [span for span in old(place) if span.name == "invoke_agent assistant"]
    assert len(turns) == 2
    for turn in turns:
        session = turn.attributes["gen_ai.conversation.id"]
        ids = f"trace_id={turn.trace} span_id={turn.id} "
        for kind in ("turn_started", "turn_ended"):
            named = [
                line for line in lines if f'"{kind}"' in line and f'"session": "{session}"' in line
            ]
            assert named, kind
            assert all(ids in line for line in named), named
    assert not any("trace_id" in line for line in lines if '"session_suspended"' in line)
