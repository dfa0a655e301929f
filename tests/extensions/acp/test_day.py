"""The whole day of an editor that speaks version 2 of the protocol, with its library in TypeScript."""

from typing import Any

import pytest
from blackbox.conftest import Serve
from extensions.acp.typescript import Refused, TypeScriptEditor, typescript
from support.driver import Gate, Place, wait_gone
from support.model_server import Door, Text, Tools, shell

INFO = {"name": "an editor", "version": "1"}


def words(text: str) -> list[dict[str, Any]]:
    """Return a prompt."""
    return [{"type": "text", "text": text}]


def begun(editor: TypeScriptEditor, place: Place) -> str:
    """Shake hands, and begin a session."""
    able = editor.does("initialize", protocolVersion=2, info=INFO, capabilities={})
    assert able["protocolVersion"] == 2
    assert able["capabilities"]["session"].keys() >= {"prompt", "mcp", "delete", "fork"}
    opened = editor.does("session/new", cwd=str(place.folder), mcpServers=[])
    assert {one["configId"] for one in opened["configOptions"]} == {"mode", "busy", "model"}
    return str(opened["sessionId"])


def states(editor: TypeScriptEditor, session: str) -> list[str]:
    """Return what the session was said to do, one after another."""
    told = editor.updates("state_update", session)
    return [f"{one['state']} {one.get('stopReason', '')}".strip() for one in told]


def said(editor: TypeScriptEditor, session: str) -> list[tuple[str, str]]:
    """Return the messages that entered the conversation: id and text."""
    told = editor.updates("user_message", session)
    return [(one["messageId"], one["content"][0]["text"]) for one in told]


def speaks(editor: TypeScriptEditor, text: str) -> None:
    """Wait until the agent has said something."""
    editor.until(lambda _: text in spoken(editor))


def spoken(editor: TypeScriptEditor) -> str:
    """Return all that the agent said."""
    return "".join(one["content"]["text"] for one in editor.updates("agent_message_chunk"))


def test_a_prompt_is_answered_when_it_is_in_the_conversation(place: Place, serve: Serve) -> None:
    """Long before its turn ends; a second one waits, or steers, and is told where it entered."""
    (place.folder / "notes.txt").write_text("old\nkept\n")
    door = Door()
    change = {"path": "notes.txt", "old": "old", "new": "new"}
    serve(
        Tools([{"tool": "edit", "arguments": change}], text="I change it. "),
        Text("first", door=door),
        Text("second"),
        Text("third"),
    )
    with typescript(place, 2) as editor:
        session = begun(editor, place)
        here = {"sessionId": session}
        first = editor.does("session/prompt", **here, prompt=words("change my notes"))
        asked = editor.asked(1)["params"]
        editor.shows("state_update", state="requires_action")
        assert states(editor, session) == ["running", "requires_action"]
        call = asked["subject"]["toolCall"]
        (change_told,) = call["content"]
        path = str(place.folder / "notes.txt")
        assert change_told["changes"] == [{"operation": "modify", "path": path}]
        assert "-old\n+new\n kept\n" in change_told["patch"]["text"]
        editor.answers(1, {"outcome": {"outcome": "selected", "optionId": "allow"}})
        speaks(editor, "first")

        queued = editor.does("session/inject", **here, mode="queue", content=words("then this"))
        steered = editor.does("session/inject", **here, mode="steer", content=words("gently"))
        gone = editor.does("session/inject", **here, mode="queue", content=words("never mind"))
        changed = {"messageId": queued["messageId"], "content": words("then that")}
        assert editor.does("session/replace_inject", **here, **changed) == queued
        assert editor.does("session/revoke_inject", **here, **gone) == {}
        for known in (gone["messageId"], "none"):
            unknown = editor.refuses("session/revoke_inject", -32002, **here, messageId=known)
            assert unknown["data"]["reason"] == "unknown_message_id"
        assert len(said(editor, session)) == 1
        door.open()
        speaks(editor, "third")
        editor.until(lambda _: states(editor, session)[-1] == "idle end_turn")
        assert said(editor, session) == [
            (first["messageId"], "change my notes"),
            (steered["messageId"], "gently"),
            (queued["messageId"], "then that"),
        ]
        late = editor.refuses("session/revoke_inject", -32010, **here, **steered)
        assert late["data"]["reason"] == "already_delivered"
        idle = editor.refuses("session/inject", -32010, **here, mode="steer", content=words("x"))
        assert idle["data"]["reason"] == "no_running_turn"
        assert editor.leaves() == 0
    assert (place.folder / "notes.txt").read_text() == "new\nkept\n"
    door.close()


def test_a_day(place: Place, serve: Serve, gate: Gate) -> None:
    """Work, a stop, a setting, a command, a fork, another editor the next morning, a deletion."""
    serve(
        shell(f"{gate.command}; sleep 600"),
        Text("As you wish."),
        Text("In the fork."),
        Text("Back."),
        shell(f"{gate.command}; sleep 600"),
    )
    with typescript(place, 2) as editor:
        session = begun(editor, place)
        here = {"sessionId": session}
        set_to = {"configId": "mode", "type": "id", "value": "all"}
        told = editor.does("session/set_config_option", **here, **set_to)["configOptions"]
        assert next(one["currentValue"] for one in told if one["configId"] == "mode") == "all"
        editor.does("session/prompt", **here, prompt=words("work"))
        pid = gate.wait()
        queue = {"configId": "busy", "type": "id", "value": "queue"}
        editor.does("session/set_config_option", **here, **queue)
        waits = editor.asks("session/prompt", **here, prompt=words("later"))
        editor.until(lambda _: any("Queued #2" in one["title"] for one in editor.updates("notice")))
        editor.tells("session/cancel", **here)
        with pytest.raises(Refused, match="-32800"):
            waits()
        editor.shows("state_update", state="idle", stopReason="cancelled")
        assert wait_gone([pid]) == []
        assert editor.updates("tool_call_update", session)[-1]["status"] == "cancelled"
        editor.does("session/prompt", **here, prompt=words("/queue clear"))
        editor.shows("notice", title="Removed: 1 waiting, 1 interrupted.")
        editor.does("session/prompt", **here, prompt=words("and now?"))
        speaks(editor, "As you wish.")
        editor.refuses("tool_call/cancel", -32602, **here, toolCallId="c1")
        editor.refuses("terminal/cancel", -32602, **here, terminalId="t1")
        editor.refuses("auth/login", -32602, methodId="none")
        editor.refuses("auth/logout", -32602)
        fork = editor.does("session/fork", **here, cwd=str(place.folder))["sessionId"]
        editor.does("session/prompt", sessionId=fork, prompt=words("go on"))
        speaks(editor, "In the fork.")
        assert editor.does("session/close", sessionId=fork) == {}
        assert editor.does("session/close", sessionId=fork) == {}
        assert editor.leaves() == 0

    with typescript(place, 2) as editor:
        editor.does("initialize", protocolVersion=2, info=INFO, capabilities={})
        listed = editor.does("session/list", cwd=str(place.folder))["sessions"]
        assert {one["sessionId"] for one in listed} == {session, fork}
        again = {"sessionId": session, "cwd": str(place.folder)}
        editor.refuses("session/resume", -32602, **again, replayFrom={"type": "end"})
        editor.does("session/resume", **again, replayFrom={"type": "start"})
        assert [text for _, text in said(editor, session)] == ["work", "and now?"]
        editor.shows("state_update", state="idle")
        editor.does("session/prompt", sessionId=session, prompt=words("good morning"))
        speaks(editor, "Back.")
        editor.does("session/prompt", sessionId=session, prompt=words("once more"))
        pid = gate.wait()
        queued = {"mode": "queue", "content": words("later")}
        editor.does("session/inject", sessionId=session, **queued)
        assert editor.does("session/close", sessionId=session) == {}
        assert wait_gone([pid]) == []
        editor.shows("state_update", state="idle", stopReason="cancelled")
        editor.refuses("session/prompt", -32002, sessionId=session, prompt=words("still there?"))
        assert editor.does("session/delete", sessionId=fork) == {}
        assert editor.does("session/delete", sessionId=fork) == {}
        left = editor.does("session/list", cwd=str(place.folder))["sessions"]
        assert [one["sessionId"] for one in left] == [session]
        assert editor.leaves() == 0
