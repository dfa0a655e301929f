"""Story 4: the plug is pulled."""

from support.driver import wait_gone

from .agent import Rewriting, call, says, user_texts, uses
from .stage import Stage

WISH = "rewrite all 50 schemas from yup to zod"
SECOND = "update the docs"
THIRD = "then run the linter"
SAVED = (
    f"#1 [INTERRUPTED]: {WISH} (file 23/50)",
    f"#2 [PENDING]: {SECOND}",
    f"#3 [PENDING]: {THIRD}",
)


def the_plug_is_pulled(stage: Stage) -> None:
    """At file 23 of 50, a command running and two wishes waiting, the process gets kill -9."""
    agent = stage.agent
    (stage.place.folder / "check.sh").write_text(stage.gate.command, "utf-8")
    agent.when(WISH, Rewriting(stage.files(), looks={23: "sh check.sh"}))
    agent.when("docs", uses(call("write", path="DOCS.md", content="zod\n")), says("Docs done."))
    agent.when("linter", says("Nothing to complain about."))
    chat = stage.opens()

    chat.types("/queue on")
    chat.shows("Auto-queue is on")
    chat.types(WISH)
    chat.counts(23, 50)
    command = stage.gate.wait()
    chat.types(SECOND)
    chat.shows('📥 Queued #2: "update the docs"', accepted={"as": "queue", "number": 2})
    chat.types(THIRD)
    chat.shows('📥 Queued #3: "then run the linter"', accepted={"as": "queue", "number": 3})
    chat.kill()
    assert wait_gone([command, *stage.place.processes()]) == []
    asked = len(stage.server.requests)
    stage.passes(minutes=23)

    chat = stage.opens()
    chat.shows(
        "📥 Found saved queue from crashed session (3 items, not auto-resuming)",
        "Last active: 23 minutes ago",
        "Saved items:",
        *SAVED,
        "Use `/queue restore` to list, `/queue resume` to continue, or `/queue discard` to delete",
        "Outcome unknown, not run again: shell sh check.sh",
        saved_queues={"saved": lambda saved: saved[0]["unknown"][0]["tool"] == "shell"},
    )
    chat.types("/queue restore")
    chat.shows(*SAVED)
    assert (stage.times_done(), len(stage.server.requests)) == ([1] * 23 + [0] * 27, asked)

    chat.types("/queue resume")
    chat.shows("Restored 3 items. Processing #1 from checkpoint (file 23/50)...")
    chat.shows("All 50 files use zod now.")
    chat.shows("Docs done.")
    chat.shows("Nothing to complain about.")
    chat.rests()
    assert chat.leaves() == 0
    for terminal in stage.terminals[1:]:
        assert "\n".join(terminal.rows).count("Found saved queue") == 1


def test_the_plug_is_pulled(stage: Stage) -> None:
    """No process is left; nothing runs without a command; the run continues at 23 and repeats no file."""
    the_plug_is_pulled(stage)
    assert stage.times_done() == [1] * 50
    said = user_texts(stage.server.requests[-1].body["messages"])
    assert said[1].startswith("[You were interrupted at file 23/50.")
    assert [one.rpartition("\n")[2] for one in said] == [WISH, WISH, SECOND, THIRD]
    assert len(stage.requests("linter")) == 1
    assert (stage.place.folder / "DOCS.md").read_text("utf-8") == "zod\n"
    stage.check_append_only()
