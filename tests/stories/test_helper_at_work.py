"""Story 6: the helper at work."""

from typing import Any

from support.driver import wait_gone

from .agent import call, says, uses
from .stage import Stage

WISH = "make the import faster"
TASK = "measure how long each parser takes"
HINT = "prefer the streaming parser"
HALF = "The DOM parser takes 41 s."


def the_helper_at_work(stage: Stage) -> None:
    """Talk reaches the helper or waits for it; a stop ends both; one alone is ended by its name."""
    agent = stage.agent
    (stage.place.folder / "bench.sh").write_text(f"sleep 600 & {stage.gate.command}", "utf-8")
    bench = call("shell", command="sh bench.sh")
    agent.when(WISH, uses(call("delegate", task=TASK, name="kid")), says("The import is faster."))
    agent.when(TASK, uses(bench, saying=HALF), says("Measured."))
    agent.when(HINT, uses(bench, saying="Then the streaming parser only."), says("Measured."))
    agent.when("how is it going?", says("The parsers are measured."))
    chat = stage.opens()

    chat.types(WISH)
    first = stage.gate.wait()
    chat.types("/busy interrupt")
    chat.shows("A message during a turn now follows `interrupt`.")
    chat.types("how is it going?")
    chat.shows(
        "⏳ Subagent working — your message is queued for when it finishes",
        accepted={"as": "queue", "number": 2, "ack": "subagent_working"},
    )
    chat.types("/busy steer")
    chat.shows("A message during a turn now follows `steer`.")
    chat.types(HINT)
    chat.shows("Steering kid with #3", accepted={"as": "steer", "children": ["kid"]})
    assert wait_gone([first], 0.0) == [first]
    stage.gate.open()
    chat.shows("[Steered]", steered={"child": "kid"})
    second = stage.gate.wait()
    chat.types("/agents")
    chat.shows("kid [WORKING]")
    chat.types("/stop")
    chat.shows("Stopping current task.", interrupted={"cause": "stop"})
    chat.shows("🤖 kid stopped", child_ended={"name": "kid", "status": "cancelled"})
    chat.shows("Ended: process", stopped={"killed": lambda pids: second in pids, "survivors": []})
    assert wait_gone([second], 0.0) == []
    assert stage.place.left() == []

    chat.types(WISH)
    third = stage.gate.wait()
    chat.types("/agents stop kid")
    chat.shows("The import is faster.")  # before or after the command's own answer
    assert wait_gone([third], 0.0) == []
    chat.rests()
    assert chat.leaves() == 0


def test_the_helper_at_work(stage: Stage) -> None:
    """The hint is in the helper's next request; what it had when it was ended is its result."""
    the_helper_at_work(stage)
    assert not stage.place.processes()
    (hinted,) = stage.requests(HINT)
    assert first_words(hinted.body) == TASK
    assert hinted.prompt == f"[New message from user] {HINT}"
    assert not stage.requests("how is it going?")
    last = stage.requests(WISH)[-1].body["messages"][-1]
    assert last["role"] == "tool"
    assert HALF in last["content"]


def first_words(body: dict[str, Any]) -> str:
    """Return what a conversation began with."""
    return next(
        str(message["content"]) for message in body["messages"] if message["role"] == "user"
    )
