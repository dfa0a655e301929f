"""A slash command's `data` is what the command line prints with `--json`."""

import json

import pytest
from support.driver import Place

pytestmark = pytest.mark.nightly

SCRIPT = '[[answer]]\nmatch = "work"\ndelay = inf\n[[answer]]\ntext = "Hello."\n'
CONFIG = """
[models.main]
provider = "scripted"
script = "{home}/answers.toml"
[agents.assistant]
model = "main"
"""
PAIRS = (
    ("/queue", "queue list"),
    ("/agents", "agents list"),
    ("/goal", "goal status"),
    ("/queue keep", "queue keep"),
    ("/queue edit 2 two", "queue edit 2 two"),
    ("/queue steer 9 @parent", "queue steer 9 @parent"),
    ("/queue restore --list", "queue restore --list"),
)


@pytest.fixture
def scripted(place: Place) -> Place:
    """A place whose model hangs at work."""
    (place.home / "answers.toml").write_text(SCRIPT)
    (place.home / "config.toml").write_text(CONFIG.format(home=place.home))
    return place


def test_commands_say_the_same_everywhere(scripted: Place) -> None:
    """Typed in the chat or from another terminal, while a turn runs: one result, the same data."""
    chat = scripted.chat()
    chat.causes("work", "turn_started")
    chat.send({"text": "one", "as": "queue"})
    for slash, words in PAIRS:
        typed = chat.causes({"text": slash, "client_id": slash}, "result", client_id=slash)
        ran = scripted.run(*words.split(), "--json")
        assert (json.loads(ran.stdout), ran.returncode == 0) == (typed["data"], typed["ok"]), slash
    added = scripted.data("queue", "add", "two")
    chat.send({"text": "/queue add two", "client_id": "add"})
    assert added.keys() == chat.wait("result", client_id="add")["data"].keys()
    assert chat.ask("/busy")["data"] == {"ok": True, "busy_input_mode": "steer"}
    chat.causes("/stop", "turn_ended")
    chat.ask("/queue clear")
