"""An installed external agent under steersman; its model is on loopback.

It is looked for on PATH, and before it in the folders that STEERSMAN_TEST_AGENTS names (as PATH does).
"""

import json
import os
import shutil

import pytest
from support.driver import Place, wait_gone
from support.model_server import Behaviour, ModelServer, Recorded, Text, Tools

pytestmark = pytest.mark.nightly

PLACES = f"{os.environ.get('STEERSMAN_TEST_AGENTS', '')}:{os.environ['PATH']}"
COMMAND = "echo $$ > pid; setsid sleep 300"


def model(asked: Recorded) -> Behaviour:
    """Run a command when a person says so; requests without tools are for a title."""
    newest = asked.body["messages"][-1]
    if asked.body.get("tools") and newest["role"] == "user" and "run it" in str(newest):
        arguments = {"command": COMMAND, "description": "wait"}
        return Tools([{"tool": "bash", "arguments": arguments}])
    return Text("All is well.")


@pytest.mark.timeout(180)
def test_opencode_is_asked_stopped_with_its_tool_and_loaded_again(place: Place) -> None:
    """Its question is ours; processes outside its group are dead at `stopped`; the session continues."""
    if shutil.which("opencode", path=PLACES) is None:
        pytest.skip("opencode is not installed here")
    with ModelServer(model) as server:
        fake = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": server.base_url, "apiKey": "x"},
            "models": {"fake": {}},
        }
        settings = {"provider": {"fake": fake}, "permission": {"bash": "ask"}, "autoupdate": False}
        names = {"model": "fake/fake", "small_model": "fake/fake"}
        file = place.home.parent / ".config" / "opencode" / "opencode.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({**settings, **names}))
        place.environ["PATH"] = PLACES
        chat = place.chat("--agent", "opencode")
        chat.send("please run it")
        asked = chat.wait("question", timeout=90.0)
        assert asked["arguments"]["command"] == COMMAND
        chat.answer(asked, "allow")
        chat.wait("tool_started", call=asked["id"].removeprefix("q-"))
        chat.send("/stop")
        killed = chat.wait("stopped")["killed"]
        wait_gone(killed)
        assert not [process for process in place.processes().values() if "sleep 300" in process]
        chat.send("and now?")
        chat.wait("turn_ended", timeout=90.0, status="completed")
        assert "All is well." in "".join(event["delta"] for event in chat.seen("text"))
        assert "please run it" in str(server.requests[-1].body["messages"])
        chat.close()
