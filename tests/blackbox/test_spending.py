"""Limits of tokens and money stop the work, say so, and hold what waits; nothing is lost by it."""

import re

from support.driver import Place
from support.model_server import Hang, Text, Tools, shell

ANSWER = Text("Done.", usage={"input": 2000, "output": 20, "cached": 0})


def test_a_limit_stops_and_holds_and_more_can_be_granted(place: Place, serve) -> None:
    """Also over a crash: what was used stays counted, and what was granted stays granted."""
    server = serve(ANSWER, rest="[limits]\nmax_tokens = 7000\n")
    chat = place.chat()
    for text in ("one", "two"):
        chat.completes(text)
    chat.send("three", {"text": "later", "as": "queue"})
    error = chat.wait("error", code="limit_reached")
    assert re.search(r"limits\.max_tokens: 4,040 of 7,000 tokens are used", error["text"])
    assert "/limits more" in error["hint"]
    assert chat.wait("interrupted")["cause"] == "budget"
    chat.wait("stopped")
    shown = place.run("sessions", "show", chat.session).stdout
    assert "[Interrupted: a limit was reached.]" in shown
    held = chat.ask("/queue")["data"]
    assert held["state"] == "held"
    assert [item["text"] for item in held["items"]] == ["three", "later"]
    chat.kill()
    again = place.chat("--continue")
    again.causes("/queue resume", "error", code="limit_reached")
    again.wait("stopped")
    assert len(server.requests) == 2
    assert again.ask("/limits more")["data"]["max_tokens"] == 14_000
    again.send("/queue resume")
    for _ in range(2):
        again.wait("turn_ended", status="completed")
    assert len(server.requests) == 4


def test_a_session_that_no_program_has_open_has_the_same_limits(place: Place, serve) -> None:
    """`steersman sessions limits` shows what `/limits` does: of its agent, else of every session."""
    agent = '[agents.scout]\nmodel = "main"\nlimits = { max_tokens = 9000 }\n'
    serve(ANSWER, rest=f"[limits]\nmax_tokens = 7000\n{agent}")
    for options, limit in (((), "7,000"), (("--agent", "scout"), "9,000")):
        chat = place.chat(*options)
        chat.completes("one")
        shown = chat.ask("/limits")
        assert shown["text"] == f"tokens   2,020 of {limit}"
        assert chat.close() == 0
        assert place.run("sessions", "limits", chat.session).stdout == f"{shown['text']}\n"
        assert place.data("sessions", "limits", chat.session) == shown["data"]


def test_a_child_uses_what_its_parent_may(place: Place, serve) -> None:
    """A subagent's own limit ends the subagent with a reason; the parent's counts for both."""
    call = {"tool": "delegate", "arguments": {"task": "count", "agent": "scout"}}
    server = serve(
        Tools([call], match="begin"),
        Text("Heard.", match="begin"),
        Hang(match="count"),
        rest='[agents.scout]\nmodel = "main"\nlimits = { max_tokens = 10 }\n',
    )
    chat = place.chat("--yes")
    ended = chat.causes("begin", "child_ended")
    assert ended["status"] == "failed"
    assert "agents.scout.limits.max_tokens: 0 of 10 tokens are used" in ended["reason"]
    chat.wait("turn_ended", status="completed", parent=None)
    assert len(server.requests) == 2


SLOW = shell("sleep 0.3", match="work")
MINUTES = 0.004


def test_minutes_of_a_session_are_looked_at_before_each_call(place: Place, serve) -> None:
    """Work that has taken longer ends at its next model call, and says so; what waits is held."""
    server = serve(SLOW, ANSWER, rest=f"[limits]\nmax_minutes = {MINUTES}\n")
    chat = place.chat("--yes")
    error = chat.causes("work", "error", code="limit_reached")
    assert "limits.max_minutes: it has worked for" in error["text"]
    assert chat.wait("interrupted")["cause"] == "budget"
    chat.wait("stopped")
    assert len(server.requests) == 1
    assert chat.ask("/queue")["data"]["state"] == "held"


def test_minutes_of_a_child_end_the_child(place: Place, serve) -> None:
    """Its parent hears why, and goes on."""
    call = {"tool": "delegate", "arguments": {"task": "work", "agent": "scout"}}
    server = serve(
        Tools([call], match="begin"),
        Text("Heard.", match="begin"),
        SLOW,
        rest=f"""[agents.scout]
model = "main"
tools = ["shell"]
limits = {{ max_minutes = {MINUTES} }}
""",
    )
    chat = place.chat("--yes")
    ended = chat.causes("begin", "child_ended")
    assert ended["status"] == "failed"
    assert "agents.scout.limits.max_minutes: it has worked for" in ended["reason"]
    chat.wait("turn_ended", status="completed", parent=None)
    assert len(server.requests) == 3
