"""A recorded session is decided again without doing anything twice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.driver import Place
from support.model_server import Text, Tools


def replayed(place: Place, session: str, *options: str, code: int = 0) -> dict[str, Any]:
    """Replay a session."""
    ran = place.run("sessions", "replay", session, *options, "--json")
    assert ran.returncode == code, ran.stderr + ran.stdout
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.checks_data("sessions replay")
def test_another_answer_parts_from_the_record(place: Place, serve) -> None:
    """As recorded it is the same; with the question denied the call does not begin."""
    call = {"tool": "shell", "arguments": {"command": "echo blue > colour"}}
    serve(Tools([call]), Text("Blue."))
    chat = place.chat()
    chat.send("which colour?")
    chat.answer(chat.wait("question"), "allow")
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    (place.folder / "colour").unlink()

    found = replayed(place, chat.session)
    assert found["is_same"]
    assert found["common"] == found["entries"]
    shown = place.run("sessions", "show", found["session"]).stdout
    assert "Blue." in shown
    assert not (place.folder / "colour").exists()
    other = replayed(place, chat.session, "--answer", "q1=deny", code=1)["difference"]
    assert (other["recorded"]["kind"], other["replayed"]["kind"]) == (
        "tool_intended",
        "tool_refused",
    )
