"""Hooks get the events of subagents and goals of our own sessions: each once, with its subject."""

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

from blackbox.judged import Start
from support.driver import Place
from support.model_server import Text, Tools

GOAL = "all steps are done"
OF_FAMILY = ("subagent_start", "subagent_end")
OF_SESSIONS = ("session_start", "session_finalize")
OF_GOALS = ("goal_achieved", "goal_stopped")


def keep(log: Path, *events: str) -> str:
    """Write hooks that record their input."""
    run = json.dumps(["sh", "-c", f"cat >> {log}"])
    return "".join(f'[[hooks]]\non = "{event}"\nrun = {run}\n' for event in events)


def told(log: Path) -> list[dict[str, Any]]:
    """Read what they were told."""
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_hooks_get_events_of_subagents_once(place: Place, serve, tmp_path: Path) -> None:
    """Each of two subagents begins and ends once, in this order, with its task and its last word."""
    log = tmp_path / "log"
    calls = [
        {"tool": "delegate", "arguments": {"task": f"count {name}", "name": name}}
        for name in ("stars", "moons")
    ]
    serve(
        Tools(calls, match="report"),
        Text("42 stars", match="count stars"),
        Text("2 moons", match="count moons"),
        Text("All is well."),
        rest=keep(log, *OF_FAMILY, *OF_SESSIONS),
    )
    chat = place.chat("--yes", "report")
    chat.wait("turn_ended", status="completed", session=chat.session)
    chat.send("/finalize")
    assert chat.close() == 0
    lives = [event for event in told(log) if event["event"] in OF_SESSIONS]
    begun, over = (
        {event["session"] for event in lives if event["event"] == on} for on in OF_SESSIONS
    )
    assert begun == over  # each session that ends for good has begun, and once
    assert len(lives) == 6
    assert {row["parent"] for row in lives} == {None, chat.session}
    heard = [event for event in told(log) if event["event"] in OF_FAMILY]
    assert {event["session"] for event in heard} == {chat.session}
    assert Counter(event["event"] for event in heard) == dict.fromkeys(OF_FAMILY, 2)
    starts = {event["child"]: event for event in heard if event["event"] == "subagent_start"}
    ends = {event["child"]: event for event in heard if event["event"] == "subagent_end"}
    assert {name: one["task"] for name, one in starts.items()} == {
        "stars": "count stars",
        "moons": "count moons",
    }
    assert len({started["child_session"] for started in starts.values()} - {chat.session}) == 2
    assert {name: (one["status"], one["text"]) for name, one in ends.items()} == {
        "stars": ("completed", "42 stars"),
        "moons": ("completed", "2 moons"),
    }
    assert all(starts[name]["seq"] < ends[name]["seq"] for name in starts)


def test_hooks_get_the_end_of_a_goal_once(place: Place, start: Start, tmp_path: Path) -> None:
    """One that is done, one that can't be, one that a person pauses, then drops: each told once."""
    log = tmp_path / "log"
    verdicts = iter(["done", "impossible"])

    def judge(_: object) -> Text:
        return Text(json.dumps({"verdict": next(verdicts, "continue"), "reason": "because"}))

    steps = itertools.count()
    start(lambda _: Text(f"step {next(steps)}"), judge, rest=keep(log, *OF_GOALS))
    chat = place.chat()
    chat.ask(f"/goal {GOAL}")
    chat.wait("goal", state="achieved")
    chat.ask("/goal clear")  # there is none any more: nobody is told anything
    chat.ask("/goal fly to the moon")
    chat.wait("goal", state="impossible")
    chat.ask("/goal count for ever")
    assert chat.ask("/goal pause")["data"]["state"] == "paused"
    chat.ask("/goal clear")
    assert chat.close() == 0
    heard = [(event["event"], event["text"], event["state"]) for event in told(log)]
    assert heard == [
        ("goal_achieved", GOAL, "achieved"),
        ("goal_stopped", "fly to the moon", "impossible"),
        ("goal_stopped", "count for ever", "paused"),
        ("goal_stopped", "count for ever", "cleared"),
    ]
