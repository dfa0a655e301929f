"""`make bench-work`: its proxy, its statistics, and whole runs against a scripted model server."""

import http.client
import json
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.model_behaviours import Door
from support.model_server import Hang, ModelServer, Text, Tools
from support.patience import seconds

from .conftest import Load

pytestmark = pytest.mark.nightly

READ = {
    "type": "function",
    "function": {"name": "read", "parameters": {"type": "object", "required": ["path"]}},
}
RIGHT = "Staging listens on port 8443."


def ask(url: str, **body: Any) -> tuple[int, str]:
    """Send a call to the proxy; return status and text of the answer."""
    place, _, key = url.removeprefix("http://").partition("/")
    with closing(http.client.HTTPConnection(place, timeout=seconds(30))) as connection:
        data = json.dumps({"messages": [{"role": "user", "content": "hi"}], **body})
        connection.request("POST", f"/{key}/v1/chat/completions", data)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


# The proxy ----------------------------------------------------------------------------------------


def test_the_proxy_forces_the_sampling_and_counts(load: Load) -> None:
    """Whatever a harness wants, temperature, seed and length are the benchmark's; tokens are noted."""
    calls = [{"tool": "read", "arguments": {"path": "a"}}, {"tool": "grep", "arguments": {}}]
    with (
        ModelServer([Tools(calls), Text("Hello.", stream=False)]) as server,
        load("proxy").Proxy(server.base_url.removesuffix("/v1")) as proxy,
    ):
        attempt = proxy.begin("k", 7, 9)
        wanted = {"temperature": 1.5, "top_p": 0.3, "seed": 1, "max_completion_tokens": 9000}
        ask(proxy.url_of(attempt), stream=True, tools=[READ], **wanted)
        ask(proxy.url_of(attempt), max_tokens=50)
        proxy.end(attempt)
    first, second = (request.body for request in server.requests)
    keys = ("temperature", "seed", "max_tokens", "top_p", "max_completion_tokens")
    assert [first.get(key) for key in keys] == [0, 7, 1024, None, None]
    assert second["max_tokens"] == 50
    tool, text = attempt.calls
    assert (tool.read, tool.cached, tool.written) == (100, 60, 20)
    assert tool.uses == [("read", '{"path": "a"}'), ("grep", "{}")]
    assert tool.malformed == 1
    assert (text.text, text.said, text.prompt) == ("Hello.", "Hello.", "hi")


def test_the_proxy_refuses_a_call_too_many(load: Load) -> None:
    """Calls beyond the limit never reach the model, and are not counted."""
    with (
        ModelServer([Text("Hello.")]) as server,
        load("proxy").Proxy(server.base_url.removesuffix("/v1")) as proxy,
    ):
        attempt = proxy.begin("k", 1, 1)
        assert ask(proxy.url_of(attempt))[0] == 200
        assert not attempt.is_over
        assert ask(proxy.url_of(attempt))[0] == 400
        assert attempt.is_over
        proxy.end(attempt)
        assert ask(proxy.url_of(attempt))[0] == 404
    assert (len(attempt.calls), len(server.requests)) == (1, 1)


def test_the_end_of_an_attempt_ends_its_calls(load: Load) -> None:
    """The server no longer computes for an attempt that is over."""
    with (
        ModelServer([Hang()]) as server,
        load("proxy").Proxy(server.base_url.removesuffix("/v1")) as proxy,
    ):
        attempt = proxy.begin("k", 1, 5)
        with closing(http.client.HTTPConnection(proxy.url_of(attempt)[7:].split("/")[0])) as client:
            client.request("POST", "/k/v1/chat/completions", "{}")
            server.wait_requests(1)
            proxy.end(attempt, seconds(20))
            assert server.requests[0].closed.wait(seconds(20))
    assert len(attempt.calls) == 1


@pytest.mark.parametrize(
    ("text", "uses", "bad"),
    [
        ("I will look.", [], 0),
        ('```json\n{"name": "read", "arguments": {"path": "a"}}\n```', [], 1),
        ("<function=read>", [], 1),
        ('{"name": "convert a file",\n "arguments": {"path": "a"}}', [], 1),
        ('{"name": "Ana"}', [], 0),
        ("", [("read", '{"path": "a"}')], 0),
        ("", [("read", '{"file": "a"}')], 1),
        ("", [("read", '{"path": ')], 1),
        ("", [("reed", "{}")], 1),
    ],
)
def test_malformed_calls_are_counted(
    load: Load, text: str, uses: list[tuple[str, str]], bad: int
) -> None:
    """A call that was printed, that lacks an argument, or to a tool that is not offered."""
    proxy = load("proxy")
    assert proxy.malformed(proxy.Call(text=text, uses=uses), [READ]) == bad


# Statistics ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 5, 1.0), (6, 0, 0.03125), (2, 10, 0.03857421875)],
)
def test_mcnemar_is_exact(load: Load, only_first: int, only_second: int, p: float) -> None:
    """Known values of the two-sided binomial test."""
    assert load("report").mcnemar(only_first, only_second) == pytest.approx(p)


def test_the_interval_is_that_of_the_binomial(load: Load) -> None:
    """For 18 of 36 the bootstrap agrees with the binomial, 12 to 24; where all agree it has no width."""
    report = load("report")
    low, high = report.interval([0.0, 1.0] * 18)
    assert low == pytest.approx(12 / 36, abs=0.03)
    assert high == pytest.approx(24 / 36, abs=0.03)
    assert report.interval([1.0] * 5) == (1.0, 1.0)


def line(contender: str, task: str, how: str, **more: Any) -> dict[str, Any]:
    """Make a kept result."""
    counts = dict.fromkeys(("calls", "read", "cached", "written", "malformed", "repeated"), 2)
    about = {"model": "m", "version": "1", "seed": 1, "seconds": 9.0, "kill": None}
    return {**counts, **about, "contender": contender, "task": task, "how": how, **more}


def test_the_report_compares_with_the_best_peer(load: Load) -> None:
    """Tasks are compared, not attempts; another set and an older version do not count."""
    report, tasks = load("report"), load("task").load_tasks()
    names, frozen = [*tasks][:8], report.FROZEN["hard"]
    lines = [line("steersman", name, "solved") for name in names]
    lines += [line("steersman", name, "wrong", version="0") for name in names]
    lines += [line("pi", name, "never ended" if name in names[:2] else "wrong") for name in names]
    lines += [line("aider", name, "looped") for name in names]
    lines.sort(key=lambda one: str(one["version"]))
    lines = [{**one, "set": frozen} for one in lines]
    lines += [line("pi", name, "solved", set="another") for name in names]
    lines += [{**line("steersman", names[0], "solved", kill=3.0), "set": frozen}]
    lines += [{**line("steersman", names[1], "wrong", kill=2.0), "set": frozen}]
    found = report.sheets(lines, ["pi", "aider"])
    rows = {row[0]: row[1:] for row in found[0]["rows"]}
    assert rows["steersman 1"][2:] == ["8 of 8, 100% (100% to 100%)", "+6 -0, p = 0.031"]
    assert rows["pi 1"][3] == "-"
    assert rows["aider 1"][2] == "0 of 8, 0% (0% to 0%)"
    assert found[0]["header"][-1] == "tasks against pi"
    assert found[-1]["rows"] == [["steersman 1", "2", "2", "1", "0.50", "0"]]
    assert "| pi 1 | 2 | 2 | 2 | 2 | 2 | 2 | 9 |" in report.page(found, {})


# Whole runs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("why", "code", "said", "is_over", "how"),
    [
        ("", 0, ["a"], False, "solved"),
        ("", None, ["a", "a", "a"], True, "never ended"),
        ("no", 0, ["a"], False, "wrong"),
        ("no", 1, ["a"], False, "crashed"),
        ("no", None, ["a", "b", "b"], False, "timeout"),
        ("no", None, ["b", "b", "b"], False, "looped"),
        ("no", None, ["a", "b"], True, "looped"),
    ],
)
def test_ends_have_names(
    load: Load, why: str, code: int | None, said: list[str], is_over: bool, how: str
) -> None:
    """Whether the work was done comes first, then who ended it."""
    assert load("attempt").how_it_ended(why, code, said, is_over) == how


def run(load: Load, place: Path, server: ModelServer, *more: str) -> list[dict[str, Any]]:
    """Run the benchmark against a server, and return the kept results."""
    (place / "m.gguf").touch()
    url = server.base_url.removesuffix("/v1")
    words = [
        "--set",
        "hard",
        "--weights",
        str(place),
        "--model",
        "m",
        "--server",
        url,
        "--seeds",
        "1",
    ]
    results = place / "results.jsonl"
    limit = ["--seconds", str(seconds(30)), "--results", str(results)]
    assert load("bench").main([*words, *limit, *more]) == 0
    return [json.loads(text) for text in results.read_text("utf-8").splitlines()]


def test_a_run_goes_on_where_it_stopped(
    load: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two harnesses do two tasks with a scripted model; a second run has nothing left to do."""
    given = ("--tasks", "staging-port,page-count", "--contenders", "blocks,steersman")
    with ModelServer(
        lambda request: Text(RIGHT, stream=bool(request.body.get("stream")))
    ) as server:
        first = run(load, tmp_path, server, *given)
        asked = len(server.requests)
        assert run(load, tmp_path, server, *given) == first
        assert len(server.requests) == asked
    ends = {(row["contender"], row["task"]): (row["how"], row["calls"]) for row in first}
    assert ends == {
        ("blocks", "staging-port"): ("solved", 1),
        ("blocks", "page-count"): ("wrong", 1),
        ("steersman", "staging-port"): ("solved", 1),
        ("steersman", "page-count"): ("wrong", 1),
    }
    assert all(row["read"] == 100 for row in first)
    assert "steersman" in capsys.readouterr().out


def test_a_killed_attempt_is_resumed(load: Load, tmp_path: Path) -> None:
    """Steersman is killed while its model is asked, goes on, and solves the task; nothing is left."""
    contender, attempt, proxy = load("contender"), load("attempt"), load("proxy")
    task = load("task").load_tasks()["staging-port"]
    (tmp_path / "m.gguf").touch()
    with (
        closing(Door()) as door,
        ModelServer(lambda request: Text(RIGHT, door=door)) as server,
        proxy.Proxy(server.base_url.removesuffix("/v1")) as running,
    ):
        timer = threading.Timer(4.0, door.open)
        timer.start()
        lab = attempt.Lab(running, tmp_path / "m.gguf", tmp_path / "lab", seconds(30))
        began = time.monotonic()
        result = attempt.attempt_task(lab, contender.ours("steersman", {}), task, 1, kill=2.0)
        timer.join()
    assert time.monotonic() - began > 4.0
    assert (result.how, result.why) == ("solved", "")
    assert result.kill == pytest.approx(2.0, abs=0.5)
    assert result.calls >= 1


def test_calls_are_read_from_a_journal(load: Load) -> None:
    """The embedded model is asked without a proxy: what its calls took is in the session's export."""
    opened = {"kind": "session_opened", "tools": ["read"]}
    use = {"call": "c1", "tool": "reed", "arguments": {"path": "a"}}
    said = {"role": "assistant", "text": "Look.", "tool_calls": [use]}
    usage = {"input": 9, "output": 3, "cache_read": 5}
    answered = {"kind": "answered", "usage": usage, "messages": [said]}
    kinds = [opened, {"kind": "model_called"}, answered, {"kind": "model_called"}]
    entries = [{"time": number, "data": data} for number, data in enumerate(kinds)]
    first, second = load("contender").calls_of(entries)
    assert (first.read, first.cached, first.written, first.malformed) == (9, 5, 3, 1)
    assert first.said == '[["reed", "{\\"path\\": \\"a\\"}"]]'
    assert (second.read, second.said) == (0, "")
