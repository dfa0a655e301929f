"""Story 1: a long job and a question."""

from pathlib import Path

from .agent import Rewriting, says, user_texts
from .faces import Face
from .stage import Stage

WISH = "rewrite all 50 schemas from yup to zod"
QUESTION = "what's the zod syntax for optional again?"


def asks_meanwhile(stage: Stage, files: list[Path]) -> Face:
    """Have 50 files rewritten as far as the 12th, and ask a question that waits."""
    agent = stage.agent
    halts = {12: agent.door("twelve"), 45: agent.door("forty-five")}
    agent.when(WISH, Rewriting(files, halts))
    agent.when("zod syntax", says("z.string().optional()"))
    chat = stage.opens()

    chat.types("/queue on")
    chat.shows("Auto-queue is on")
    chat.types(WISH)
    chat.counts(12, 50)
    chat.types(QUESTION)
    chat.shows(
        f'📥 Queued #2: "{QUESTION}"',
        accepted={"as": "queue", "number": 2},
    )
    return chat


def a_long_job(stage: Stage) -> None:
    """A question waits while 50 files are rewritten; a stop at 45; then both go on."""
    agent = stage.agent
    chat = asks_meanwhile(stage, stage.files())
    chat.types("/queue list")
    chat.shows(f"#1 [RUNNING]: {WISH} (file 12/50)")
    chat.shows(f"#2 [PENDING]: {QUESTION}")

    agent.door("twelve").open()
    chat.counts(45, 50)
    chat.types("actually stop")
    chat.shows('⚠️ Interrupt detected: "stop"', accepted={"as": "interrupt", "matched": "stop"})
    chat.shows(
        "Stopping current task. Progress saved at checkpoint 45/50.",
        interrupted={"checkpoint": {"done": 45, "total": 50, "unit": "file"}},
    )
    chat.shows("Held: 1 waiting. /queue resume runs them.", queue={"state": "held"})
    assert stage.times_done() == [1] * 45 + [0] * 5
    assert [request.prompt for request in stage.requests()][-1] == WISH

    chat.types("/queue resume")
    chat.shows("Restored 2 items. Processing #1 from checkpoint (file 45/50)...")
    agent.door("forty-five").open()
    chat.shows("All 50 files use zod now.")
    chat.shows("z.string().optional()")
    chat.rests()
    assert chat.leaves() == 0


def a_job_taken_back(stage: Stage) -> None:
    """A refactor is stopped at file 45 of 50 and taken back; the one that the person saved is kept."""
    files, agent = stage.files(), stage.agent
    before = {path: path.read_bytes() for path in files}
    chat = asks_meanwhile(stage, files)
    saved = files[2]  # the agent has rewritten it; the person goes on from there
    saved.write_bytes(saved.read_bytes() + b"// a word of the person's own\n")
    before[saved] = saved.read_bytes()

    agent.door("twelve").open()
    chat.counts(45, 50)
    chat.types("actually stop and revert")
    chat.shows('⚠️ Interrupt detected: "stop"', accepted={"as": "interrupt", "matched": "stop"})
    chat.shows(
        "Reverted 44 files. Original state restored.",
        reverted={
            "restored": [file.name for file in files[:45] if file != saved],
            "kept": [saved.name],
        },
    )
    if stage.kind == "screen":
        chat.shows(saved.name)
    assert {path: path.read_bytes() for path in files} == before

    agent.door("forty-five").open()
    chat.types("/queue resume 2")
    chat.shows("z.string().optional()")
    chat.rests()
    assert chat.leaves() == 0


def test_a_long_job_is_taken_back(stage: Stage) -> None:
    """Every file is as it was, but for what the person saved; the question still runs."""
    a_job_taken_back(stage)
    assert len(stage.requests("zod syntax")) == 1


def test_a_long_job_and_a_question(stage: Stage) -> None:
    """The question waits and is run; the stop loses nothing; no file is done twice."""
    a_long_job(stage)
    assert stage.times_done() == [1] * 50
    stage.check_append_only()
    assert user_texts(stage.server.requests[-1].body["messages"])[-1] == QUESTION
    assert len(stage.requests("zod syntax")) == 1
