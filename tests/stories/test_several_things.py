"""Story 3: several things at once."""

from .agent import call, says, user_texts, uses
from .stage import Stage

WISH = "which of these schemas are used nowhere?"
SECOND = "then delete those"
THIRD = "and write what you found in FOUND.md"


def several_things(stage: Stage) -> None:
    """During an analysis two wishes wait; one is taken out, the other keeps its number and runs."""
    stage.files(5)
    agent = stage.agent
    agent.when(
        WISH,
        uses(call("search", pattern="schema0[1-5]"), call("list", path=".")),
        uses(call("read", path="schema04.ts"), saying="Three are used.", door=agent.door("search")),
        says("schema04 and schema05 are used nowhere."),
    )
    agent.when(
        "FOUND.md",
        uses(call("write", path="FOUND.md", content="Unused: schema04, schema05\n")),
        says("It is in FOUND.md."),
    )
    chat = stage.opens()

    chat.types("/queue on")
    chat.shows("Auto-queue is on")
    chat.types(WISH)
    chat.shows("Three are used.")
    chat.types(SECOND)
    chat.shows('📥 Queued #2: "then delete those"', accepted={"number": 2})
    chat.types(THIRD)
    chat.shows(f'📥 Queued #3: "{THIRD}"', accepted={"number": 3})
    chat.types("/queue pop 2")
    chat.shows("Removed: #2.")
    chat.types("/queue")
    chat.shows(f"#1 [RUNNING]: {WISH}")
    chat.shows(f"#3 [PENDING]: {THIRD}")
    agent.door("search").open()
    chat.shows("schema04 and schema05 are used nowhere.")
    chat.shows("It is in FOUND.md.")
    chat.rests()
    assert chat.leaves() == 0


def test_several_things_at_once(stage: Stage) -> None:
    """What was taken out is never said to the model; what stayed is, once, after the first is done."""
    several_things(stage)
    assert user_texts(stage.server.requests[-1].body["messages"]) == [WISH, THIRD]
    stage.check_append_only()
    items = stage.stored()["queue"]["items"].values()
    assert [(item["number"], item["state"]) for item in items] == [
        (1, "done"),
        (2, "withdrawn"),
        (3, "done"),
    ]
    assert sorted(path.name for path in stage.place.folder.iterdir())[0] == "FOUND.md"
    assert len(list(stage.place.folder.glob("schema*.ts"))) == 5
