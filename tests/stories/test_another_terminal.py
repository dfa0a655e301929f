"""Story 9: another terminal."""

import json

from .agent import call, says, uses
from .stage import Stage

WISH = "run the slow tests"
TASK = "run the slow half of the tests"


def another_terminal(stage: Stage) -> None:
    """From another terminal: the tree, a message more, a stop, and the story of the message."""
    agent = stage.agent
    (stage.place.folder / "slow.sh").write_text(stage.gate.command, "utf-8")
    agent.when(WISH, uses(call("delegate", task=TASK, name="kid")), says("All tests pass."))
    agent.when(TASK, uses(call("shell", command="sh slow.sh")), says("They pass."))
    chat = stage.opens()
    chat.types(WISH)
    stage.gate.wait()
    chat.types("and the linter", by="queue")
    chat.shows('📥 Queued #2: "and the linter"', accepted={"number": 2})

    tree = stage.runs("inspect", "last")
    assert f"#1  [RUNNING]  {WISH}" in tree
    assert "#2  [PENDING]  and the linter" in tree
    assert "child kid  working" in tree
    assert "shell  running  process" in tree
    said = stage.runs("send", "last", "also the tests", "--as", "queue", "--user", "ann")
    assert "Queued as #3" in said
    chat.shows("ann: also the tests", notice={"text": "ann: also the tests"})
    assert "waits behind turn t1, which waits for delegate" in stage.runs("why", "last", "3")
    stage.runs("stop", "last")
    chat.shows("Stopping current task.", interrupted={"cause": "stop"})
    chat.shows("kid stopped", child_ended={"name": "kid", "status": "cancelled"})
    why = stage.runs("why", "last", "2")
    assert "accepted as queue #2" in why
    assert "turn t1 was interrupted (stop)" in why
    assert "It waits because the queue is held" in why
    assert "/queue resume" in why
    chat.rests()
    assert stage.runs("stop", "last").startswith("Nothing to stop")
    assert chat.leaves() == 0


def test_another_terminal(stage: Stage) -> None:
    """What another terminal shows and says is what the session does; nothing is left running."""
    another_terminal(stage)
    assert stage.place.left() == []
    story = json.loads(stage.runs("why", "last", "3", "--json"))
    assert (story["message"]["text"], story["message"]["user"]) == ("also the tests", "ann")
    assert story["message"]["state"] == "pending"
    assert story["hops"][0]["moved"] == [{"what": "item m3", "from": "", "to": "pending"}]
