"""Every method of the stable protocol, called by its library in TypeScript, and forms in an editor."""

import json
import tomllib
from typing import Any

import pytest
from blackbox.conftest import Serve
from extensions.acp.typescript import ROOT, typescript
from extensions.mcp.test_sessions import ALLOWED, called, last_result, notes
from support.driver import Place
from support.model_server import Hang, Text

WORDS = [{"type": "text", "text": "hello"}]


def test_every_stable_method(place: Place, serve: Serve) -> None:
    """Version 1: sessions begin, are listed, closed, loaded, resumed, forked and deleted."""
    serve(Text("Hello."), Hang(), rest='[models.other]\nprovider = "scripted"\nscript = "s.toml"\n')
    (place.folder / "s.toml").write_text('[[answer]]\ntext = "Hi."\n')
    here = {"cwd": str(place.folder), "mcpServers": []}
    with typescript(place, 1) as editor:
        terminal = {"auth": {"terminal": True}}
        about = editor.does("initialize", protocolVersion=1, clientCapabilities=terminal)
        (login,) = about["authMethods"]
        assert (login["type"], login["args"]) == ("terminal", ["setup"])
        assert editor.does("authenticate", methodId=login["id"]) == {}
        able = about["agentCapabilities"]
        assert (about["protocolVersion"], able["loadSession"]) == (1, True)
        assert able["sessionCapabilities"].keys() == {"list", "resume", "close", "delete", "fork"}
        assert "no login" in editor.refuses("authenticate", -32602, methodId="any")["message"]
        editor.refuses("logout", -32602)
        opened = editor.does("session/new", **here)
        session = {"sessionId": opened["sessionId"]}
        assert opened["modes"]["currentModeId"] == "ask"
        assert len(opened["modes"]["availableModes"]) == 4
        assert editor.does("session/prompt", **session, prompt=WORDS)["stopReason"] == "end_turn"
        editor.does("session/set_mode", **session, modeId="plan")
        editor.shows("current_mode_update", currentModeId="plan")
        editor.refuses("session/set_mode", -32602, **session, modeId="fast")
        for name, value in (("mode", "edits"), ("busy", "queue"), ("model", "other")):
            told = editor.does("session/set_config_option", **session, configId=name, value=value)
            now = {one["id"]: one["currentValue"] for one in told["configOptions"]}
            assert now[name] == value
        why = editor.refuses(
            "session/set_config_option", -32602, **session, configId="x", value="y"
        )
        assert "no setting `x`; there are: busy, mode, model" in why["message"]
        editor.does("session/set_config_option", **session, configId="model", value="main")
        answer = editor.asks("session/prompt", **session, prompt=WORDS)
        editor.tells("session/cancel", **session)
        assert answer()["stopReason"] == "cancelled"
        fork = editor.does("session/fork", **session, **here)["sessionId"]
        assert editor.does("session/close", **session) == {}
        listed = editor.does("session/list", cwd=str(place.folder))["sessions"]
        assert {one["sessionId"] for one in listed} == {session["sessionId"], fork}
        loaded = editor.does("session/load", **session, **here)
        assert loaded["modes"]["currentModeId"] == "edits"
        editor.shows("user_message_chunk", content=WORDS[0])
        editor.does("session/close", **session)
        editor.does("session/resume", **session, **here)
        editor.does("session/delete", sessionId=fork)
        (left,) = editor.does("session/list", cwd=str(place.folder))["sessions"]
        assert left["sessionId"] == session["sessionId"]
        assert editor.leaves() == 0


def test_what_is_only_proposed_is_announced(place: Place, serve: Serve) -> None:
    """`session/inject` is not in the library's schema yet, which leaves it out."""
    serve()
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 2}}
    told = place.run("acp", said=json.dumps(asked) + "\n")
    able = json.loads(told.stdout)["result"]["capabilities"]["session"]
    assert able["inject"] == {
        "modes": ["queue", "steer"],
        "steerInStream": ["finish"],
        "pending": {"replace": True},
    }


def test_the_entry_of_the_registry_is_this_program() -> None:
    """It names the version that is released, and the command that an editor starts."""
    entry = json.loads((ROOT / "docs" / "acp-registry.json").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for key in ("name", "version", "description", "license"):
        assert entry[key] == project[key]
    package = f"steersman[acp]=={project['version']}"
    assert entry["distribution"] == {"uvx": {"package": package, "args": ["acp"]}}


@pytest.mark.parametrize("version", [1, 2])
def test_a_form_is_filled_in(place: Place, serve: Any, version: int) -> None:
    """What does not fit is said, and asked again; an editor that declines declines."""
    server = serve(
        called("file_note", name="shopping"),
        called("file_note", name="tools"),
        Text("Done."),
        rest=notes() + ALLOWED,
    )
    forms = {"elicitation": {"form": {}}}
    able = {"clientCapabilities": forms, "capabilities": forms}
    info = {"info": {"name": "an editor", "version": "1"}}
    with typescript(place, version) as editor:
        editor.does("initialize", protocolVersion=version, **able, **info)
        session = editor.does("session/new", cwd=str(place.folder), mcpServers=[])["sessionId"]
        answer = editor.asks("session/prompt", sessionId=session, prompt=WORDS)
        first = editor.asked(1)
        assert first["method"] == "elicitation/create"
        assert first["params"]["mode"] == "form"
        assert first["params"]["message"] == "notes: Where does shopping go?"
        assert first["params"]["requestedSchema"]["required"] == ["folder"]
        editor.answers(1, {"action": "accept", "content": {"folder": "car"}})
        editor.asked(2)
        editor.answers(2, {"action": "accept", "content": {"folder": "work", "copies": 3}})
        editor.asked(3)
        assert last_result(server) == "filed shopping in work, 3 times"
        editor.answers(3, {"action": "decline"})
        answer()
        editor.until(lambda _: len(server.requests) == 3)
        assert last_result(server) == "not filed: decline"
        assert editor.leaves() == 0
