"""What ends a goal or lets it wait: turns that fail, budgets of tokens and minutes, conditions."""

import subprocess
from collections.abc import Callable

import pytest
from blackbox.judged import (
    DONE,
    GO_ON,
    Start,
    counting,
    turns_of,
    verdicts,
    wait_goal,
    waits_for,
)
from support.driver import Gate, Place
from support.model_server import Behaviour, Hang, Recorded, Status, Text, Tools, shell
from support.patience import seconds

BROKEN = Status(400)
PAID = {"input": 400, "output": 100, "cached": 0}
LOOKS = [shell(f"true {number}") for number in range(40)]


def in_turn(*behaviours: Behaviour) -> Callable[[Recorded], Behaviour]:
    """An agent that does these, a call each; the last one stays."""
    left = list(behaviours)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


def test_turns_that_fail_in_a_row_pause_the_goal(place: Place, start: Start) -> None:
    """Two that fail, one that doesn't, then three: paused after the sixth, all paid for, none judged."""
    agent, judge = start(in_turn(BROKEN, BROKEN, Text("Well."), BROKEN), Text(GO_ON))
    chat = place.chat()
    chat.send("/goal survive")
    paused = wait_goal(chat, "paused", "failing")
    assert (paused["turns_used"], turns_of(chat), len(agent.requests)) == (6, 6, 6)
    assert len(judge.requests) == 1
    assert paused["detail"].startswith("3 turns in a row failed: ")
    assert "told to fail" in paused["detail"]
    assert "3 turns in a row failed" in chat.ask("/goal")["text"]


@pytest.mark.parametrize("what", ["seconds", "process", "file", "nothing"])
def test_what_is_waited_for_costs_no_turn(place: Place, start: Start, what: str) -> None:
    """Time, a process, a file that came while the judge thought; what never comes ends at the limit."""
    sleeper = subprocess.Popen(["sleep", "5"])
    built = place.folder / "built"
    condition = {
        "seconds": '{"seconds": 0.3}',
        "process": f'{{"process": {sleeper.pid}}}',
        "file": '{"file": "built"}',
        "nothing": '{"file": "never"}',
    }[what]
    says = verdicts(waits_for(condition), DONE)

    def judge(request: Recorded) -> Behaviour:
        if what == "file":
            built.write_text("it came just now")
        return says(request)

    most = 0.3 if what == "nothing" else 60
    with sleeper:
        agent, judges = start(counting, judge, f"max_wait = {most}\n")
        chat = place.chat()
        chat.send("/goal build it")
        waiting = wait_goal(chat, "waiting")
        assert waiting["turns_used"] == 1
        if what == "process":
            assert "the end of process" in chat.ask("/goal")["text"]
            assert len(agent.requests) == 1
        sleeper.kill()
        achieved = wait_goal(chat, "achieved")
    assert (achieved["turns_used"], len(agent.requests), len(judges.requests)) == (2, 2, 2)
    woken = "did not happen in time" if what == "nothing" else "has happened"
    assert woken in agent.requests[1].prompt


def test_a_budget_of_tokens_is_kept_to_the_call(place: Place, start: Start) -> None:
    """The call that crosses it is the last one, the judge's or the agent's, in or behind a turn."""
    judge = Text(GO_ON, usage=PAID)
    agent, judges = start(
        in_turn(*(Text(f"Step {n}.", usage=PAID) for n in range(3)), *LOOKS),
        judge,
    )
    chat = place.chat("--yes")
    chat.send("/goal --tokens 2500 spend")
    paused = wait_goal(chat, "paused", "budget")
    assert (paused["tokens"], paused["max_tokens"], paused["turns_used"]) == (2500, 2500, 3)
    assert (len(agent.requests), len(judges.requests)) == (3, 2)
    shown = chat.ask("/goal")["text"]
    assert "2500 of 2500 tokens are spent" in shown
    assert "tokens: 2,500 of 2,500" in shown
    chat.send("/goal resume")
    paused = wait_goal(chat, "paused", "budget")  # tools without end: the turn itself is cut off
    assert paused["tokens"] >= 5000
    chat.wait_quiet()
    assert chat.seen("interrupted")[-1]["cause"] == "budget"
    asked = len(agent.requests)
    assert asked == 3 + -(-2500 // 120)
    chat.ask("/goal")
    assert (len(agent.requests), len(judges.requests)) == (asked, 2)


def test_a_budget_of_minutes_ends_the_turn_that_runs(place: Place, start: Start) -> None:
    """When the minutes are over, the turn is stopped at any point, and no judge is asked."""
    agent, judge = start(Hang(), Text(GO_ON))
    chat = place.chat()
    chat.send("/goal --minutes=0.005 take your time")
    paused = wait_goal(chat, "paused", "budget")
    assert "minutes are spent" in paused["detail"]
    assert chat.wait("interrupted")["cause"] == "budget"
    chat.wait("stopped")
    assert agent.requests[0].closed.wait(seconds(10))
    assert chat.ask("/goal")["data"]["turns_used"] == 1
    assert not judge.requests


REFUSED = {
    "--turns 0 x": "at least 1 turn, not 0",
    "--tokens 0 x": "at least 1 token, not 0",
    "--minutes 0 x": "not 0 minutes",
    "--minutes inf x": "not inf minutes",
    "--turns many x": "`--turns many` is no number",
    "--turn 3 x": "`--turn` is not one of --gate, --turns, --tokens, --minutes",
    "--gate '' x": "a gate is a command",
    "--turns 3": "a goal needs a text",
}
"""Goals that make no sense, and what is wrong with them."""


def test_a_goal_that_makes_no_sense_is_refused(place: Place, start: Start) -> None:
    """A budget of nothing, an option that is none: what is wrong is said, and nothing is set."""
    agent, _ = start(counting, Text(DONE))
    chat = place.chat()
    for words, why in REFUSED.items():
        for verb in ("/goal", "/goal next"):
            refused = chat.ask(f"{verb} {words}")
            assert not refused["ok"], words
            assert why in refused["text"]
    assert chat.ask("/goal")["data"]["state"] is None
    assert chat.close() == 0
    assert not agent.requests


def test_a_limit_of_the_session_pauses_its_goal(place: Place, start: Start) -> None:
    """It says which limit, more can be granted, and then the goal goes on when told."""
    answer = Text("Once more.", usage=PAID)
    agent, _ = start(answer, Text(DONE), rest="[limits]\nmax_tokens = 100\n")
    chat = place.chat()
    error = chat.causes("/goal begin", "error", code="limit_reached")
    assert "limits.max_tokens" in error["text"]
    paused = wait_goal(chat, "paused")
    assert (paused["reason"], paused["turns_used"]) == ("budget", 1)
    assert "a limit of the session" in paused["detail"]
    assert not agent.requests
    for _ in range(60):
        chat.ask("/limits more")
    chat.send("/goal resume")
    achieved = wait_goal(chat, "achieved")
    assert achieved["turns_total"] == 2


def test_a_turn_that_is_resumed_is_paid_for(place: Place, start: Start, gate: Gate) -> None:
    """`/queue resume` ends an interrupted turn of a paused goal: no new turn, but its tokens count."""
    agent, judge = start(in_turn(Tools([gate.call]), Text("Done after all.")), Text(DONE))
    chat = place.at_work(gate, "/goal do it")
    chat.causes("/stop", "stopped")
    before = chat.ask("/goal")["data"]
    assert (before["state"], before["turns_total"], before["tokens"]) == ("paused", 1, 120)
    chat.completes("/queue resume")
    after = chat.ask("/goal")["data"]
    assert (after["state"], after["turns_total"], after["tokens"]) == ("paused", 1, 240)
    assert not judge.requests
    chat.send("/goal resume")
    assert wait_goal(chat, "achieved")["turns_total"] == 2
    assert len(agent.requests) == 3
