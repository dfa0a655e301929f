"""Story 7: until it is done."""

from .agent import Message, call, says, text_of, uses
from .stage import Stage

GOAL = "all tests pass"
REPEATED = "Goal paused (the same answer twice, and no file changed in between)"
OTHER = "make the page look nicer"
QUESTION = "which test fails?"
JUDGED = "## The goal"


def judge(said: list[Message]) -> object:
    """Judge the conversation: the tests pass after the third repair."""
    text = text_of(said[-1])
    if OTHER in text:
        return says('{"verdict": "continue", "reason": "it looks as before"}')
    if "3 of 3 pass" in text:
        return says('{"verdict": "done", "reason": "3 of 3 tests pass"}')
    return says('{"verdict": "continue", "reason": "not all tests pass"}')


def until_it_is_done(stage: Stage) -> None:
    """Three turns and it is achieved; a message goes first; no progress pauses; a kill, and it rests."""
    agent = stage.agent

    def mend(said: list[Message]) -> object:
        turns = sum(
            text_of(message).startswith(("Go on", GOAL))
            for message in said
            if message["role"] == "user"
        )
        if said[-1]["role"] == "tool":
            return says(f"{turns} of 3 pass.")
        fix = call("write", path=f"fix{turns}.txt", content="mended\n")
        return uses(fix, saying=f"I mend test {turns}.\n", door=agent.door(f"mend {turns}"))

    agent.when(JUDGED, judge)  # type: ignore[arg-type]
    agent.when(OTHER, says("It looks nice already."))
    agent.when(QUESTION, says("The second one."))
    agent.when(GOAL, mend, mend)  # type: ignore[arg-type]
    chat = stage.opens()

    chat.types("/queue on")
    chat.shows("Auto-queue is on")
    chat.types(f"/goal {GOAL}")
    chat.shows("I mend test 1.")
    agent.door("mend 1").open()
    chat.shows("[judge] continue: not all tests pass", verdict={"verdict": "continue"})
    chat.shows("I mend test 2.")
    chat.types(QUESTION)
    chat.shows('📥 Queued #2: "which test fails?"', accepted={"number": 2})
    agent.door("mend 2").open()
    chat.shows("The second one.")
    chat.shows("I mend test 3.")
    agent.door("mend 3").open()
    chat.shows("[judge] done: 3 of 3 tests pass", verdict={"verdict": "done"})
    chat.shows("Goal achieved after 3 turns", goal={"state": "achieved", "turns_used": 3})

    chat.types(f"/goal {OTHER}")
    chat.shows(REPEATED, goal={"state": "paused", "reason": "no_progress"})
    chat.rests()
    chat.types("/goal")
    chat.shows("Goal [PAUSED]: make the page look nicer")
    chat.shows("turns: 2/20, 18 left")
    chat.kill()

    again = stage.opens("--continue")
    again.shows(REPEATED, goal={"state": "paused", "turns_used": 2})
    again.types("/goal")
    again.shows("turns: 2/20, 18 left")
    assert again.leaves() == 0


def test_until_it_is_done(stage: Stage) -> None:
    """The runs are those of the story, the message ran before the goal, and nothing else ran."""
    until_it_is_done(stage)
    asked = [request.prompt for request in stage.server.requests if JUDGED not in request.prompt]
    turns = [one for at, one in enumerate(asked) if not at or asked[at - 1] != one]
    assert [turn.partition("\n")[0] for turn in turns] == [
        GOAL,
        f"Go on working towards the goal: {GOAL}",
        QUESTION,
        f"Go on working towards the goal: {GOAL}",
        OTHER,
        f"Go on working towards the goal: {OTHER}",
    ]
    goals = stage.stored()["goals"]["goals"]
    assert [(goal["state"], goal["turns_total"]) for goal in goals.values()] == [
        ("achieved", 3),
        ("paused", 2),
    ]
