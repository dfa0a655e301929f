"""Story 2: a change of direction."""

from .agent import call, says, user_texts, uses
from .stage import Stage

WISH = "write a blog post about rust memory safety"
TURN = "make it focus on ownership specifically"
OUTLINE = "Outline:\n1. Why memory safety\n2. Ownership\n3. Borrowing\n4. Lifetimes\n"
POST = "# Ownership is the whole story\n\nEvery value in Rust has one owner.\n"


def a_change_of_direction(stage: Stage) -> None:
    """The outline streams; a waiting wish is handed to the running turn; the post follows it."""
    agent = stage.agent
    outline = call("write", path="outline.md", content=OUTLINE)
    agent.when(WISH, uses(outline, saying=OUTLINE, door=agent.door("outline")))
    agent.when(
        "focus on ownership",
        uses(call("write", path="post.md", content=POST), saying="Then ownership alone."),
        says("The post is in post.md; it is about ownership now."),
    )
    chat = stage.opens()

    chat.types("/queue on")
    chat.shows("Auto-queue is on")
    chat.types(WISH)
    chat.shows("3. Borrowing")
    chat.types(TURN)
    chat.shows(
        '📥 Queued #2: "make it focus on ownership specifically"',
        accepted={"as": "queue", "number": 2},
    )
    chat.types("/queue steer 2")
    chat.shows("#2 goes to the running turn at its next boundary.")
    agent.door("outline").open()
    chat.shows("[Steered]", steered={})
    chat.shows("it is about ownership now.")
    chat.rests()
    chat.types("/queue")
    chat.shows("The queue is empty.")
    assert chat.leaves() == 0


def test_a_change_of_direction(stage: Stage) -> None:
    """The very next request ends with the steer, in the same turn, and changes nothing before it."""
    a_change_of_direction(stage)
    first, second, third = (request.body["messages"] for request in stage.server.requests)
    assert user_texts(first) == [WISH]
    assert (second[-1]["role"], second[-1]["content"]) == (
        "user",
        f"[New message from user] {TURN}",
    )
    assert user_texts(third) == user_texts(second)
    stage.check_append_only()
    assert len(stage.stored()["turns"]) == 1
    assert (stage.place.folder / "post.md").read_text("utf-8") == POST
    assert (stage.place.folder / "outline.md").read_text("utf-8") == OUTLINE
