"""Story 8: beside the main road."""

from .agent import call, says, user_texts, uses
from .stage import Stage

WISH = "refactor the validation to zod"
QUESTION = "which is faster, zod or yup?"
ANSWER = "Yup, by a little."


def beside_the_main_road(stage: Stage) -> None:
    """A question is answered while the work goes on; its answer enters the work when wanted."""
    agent = stage.agent
    edit = call("write", path="schema.ts", content="zod\n")
    agent.when(WISH, uses(edit, saying="I start with the schema.\n", door=agent.door("work")))
    agent.when("[Asked beside the work", says("Then I keep yup where it is hot."))
    agent.when(QUESTION, says(ANSWER))
    chat = stage.opens()

    chat.types(WISH)
    chat.shows("I start with the schema.")
    chat.types(f"/smalltalk {QUESTION}")
    chat.shows(
        "🤖 Side talk spawned (will notify when ready)", accepted={"as": "side_talk", "number": 2}
    )
    chat.shows(
        f"🤖 Side talk: {ANSWER}",
        "/queue steer 2 brings it into the work",
        side_talk_ended={"number": 2, "status": "completed"},
    )
    chat.types("/queue")
    chat.shows("#1 [RUNNING]:", "#2 [OFFERED]:")
    chat.types("/queue steer 2")
    chat.shows("#2 goes to the running turn at its next boundary.")
    agent.door("work").open()
    chat.shows("[Steered]", steered={})
    chat.shows("Then I keep yup where it is hot.")
    chat.rests()
    assert chat.leaves() == 0


def test_beside_the_main_road(stage: Stage) -> None:
    """The main turn notices nothing before the steer: one turn, and nothing it had seen changed."""
    beside_the_main_road(stage)
    first, aside, second = stage.server.requests
    assert user_texts(first.body["messages"]) == [WISH]
    assert user_texts(aside.body["messages"]) == [WISH, QUESTION]
    said = second.body["messages"]
    assert said[: len(first.body["messages"])] == first.body["messages"]
    assert ANSWER in said[-1]["content"]
    assert QUESTION in said[-1]["content"]
    assert len(stage.stored()["turns"]) == 1
