"""A model that repeats itself."""

from support.driver import Place
from support.model_server import Text

HASTY = """
[models.hasty]
provider = "scripted"
script = "{home}/answers.toml"
[agents.assistant]
model = "hasty"
"""
LOOP = "I will now look at the next file in the folder. "


def test_an_answer_that_loops_is_ended(place: Place, serve) -> None:
    """It ends soon, with a notice, and the next message is answered."""
    serve(Text("Well:\n" + LOOP * 2_000), Text("Done."))
    chat = place.chat("work")
    chat.wait_text("the model repeated itself")
    chat.wait("turn_ended", status="completed")
    said = "".join(event["delta"] for event in chat.seen("text"))
    assert said.startswith("Well:\nI will now look")
    assert len(said) < 200 * len(LOOP)
    chat.send("and now?")
    chat.wait_text("Done.")


def test_one_that_came_at_once_is_ended_likewise(place: Place) -> None:
    """How fast a model says it does not decide what of it is kept."""
    (place.home / "config.toml").write_text(HASTY.format(home=place.home))
    (place.home / "answers.toml").write_text(f"[[answer]]\ntext = {LOOP * 60 + 'And now?'!r}\n")
    ran = place.run("chat", "go")
    assert "the model repeated itself" in ran.stderr
    assert LOOP in ran.stdout
    assert "And now?" not in ran.stdout
