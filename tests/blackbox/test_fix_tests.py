"""The shipped workflow that repairs tests: its goal decides whether it is done, after its gate."""

import signal
from typing import Any

import pytest
from support.driver import WAIT, Chat, Place
from support.model_server import Hang, Text, Tools
from support.until import until

VERDICT = '{{"verdict": "{}", "reason": "{}"}}'


def run(place: Place) -> Chat:
    """Run the loop with tests that count their runs, and pass after two repairs."""
    (place.folder / "test.sh").write_text("echo asked >> ../asked; test -e one && test -e two\n")
    return place.job("--yes", "fix-tests", "--var", "test=sh test.sh")


def mend(name: str) -> Tools:
    """Make the agent write a file."""
    return Tools([{"tool": "write", "arguments": {"path": name, "content": "mended\n"}}])


def test_tests_are_repaired_until_gate_and_judge_agree(place: Place, serve: Any) -> None:
    """The gate fails after the first turn, so no judge is asked; after the second one says done."""
    server = serve(
        Text(VERDICT.format("done", "they pass"), match="## The goal"),
        mend("one"),
        Text("I mended the first."),
        mend("two"),
        Text("I mended the second."),
    )
    chat = run(place)
    ended = chat.wait("run_ended", session=chat.session)
    states = {step["step"]: step["state"] for step in ended["steps"]}
    assert (ended["status"], states) == (
        "succeeded",
        {"test": "failed", "fix": "done", "again": "done"},
    )
    assert chat.close() == 0
    judged = [request for request in server.requests if "## The goal" in request.prompt]
    assert len(judged) == 1
    assert len((place.folder.parent / "asked").read_text().split()) == 4  # test, gate twice, again


def test_a_goal_that_is_given_up_fails_the_run(place: Place, serve: Any) -> None:
    """Without a repair the goal ends without being reached, and so does the run."""
    serve(Text("I don't know what to do."))
    chat = run(place)
    ended = chat.wait("run_ended", session=chat.session)
    states = {step["step"]: step["state"] for step in ended["steps"]}
    assert (ended["status"], states["fix"]) == ("failed", "failed")
    assert ended["reason"].startswith("step `fix` failed: ")
    assert "again" not in states or states["again"] == "blocked"
    assert ended["reason"]
    assert chat.ended() == 1


@pytest.mark.nightly
@pytest.mark.parametrize("how", ["SIGINT", "SIGKILL"])
def test_the_goal_of_a_step_goes_on_with_its_run(place: Place, serve: Any, how: str) -> None:
    """Ended in the goal's second turn, nothing runs; resumed, the goal goes on and is achieved."""
    server = serve(
        Text(VERDICT.format("done", "they pass"), match="## The goal"),
        mend("one"),
        Text("I mended the first."),
        Hang(),
        mend("two"),
        Text("I mended the second."),
    )
    chat = run(place)
    server.wait_requests(3, WAIT)
    # a model is asked while the entry of its turn is being written: a kill may come before that is there
    until(lambda: [event["turn"] for event in chat.seen("turn_started")].count("t2"), "its turn")
    chat.signal(signal.Signals[how])
    again = place.job("--yes", "--resume", "last")
    ended = again.wait("run_ended", session=again.session)
    states = {step["step"]: step["state"] for step in ended["steps"]}
    assert (ended["status"], states["fix"]) == ("succeeded", "done")
    assert again.close() == 0
    assert again.seen("goal")[-1]["turns_total"] == 3
