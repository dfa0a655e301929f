"""A session that was taken over from another agent goes on: its model reads what was said before."""

import pytest
from support.driver import Place
from support.model_server import Text
from support.transcripts import AGENTS, lay


@pytest.mark.checks_data("sessions import")
@pytest.mark.parametrize("agent", AGENTS)
def test_a_question_about_what_was_said_before(place: Place, serve, agent: str) -> None:
    """The request has the history by turns, the calls in it as text, and the question last."""
    lay(agent, place.folder.parent, place.folder)
    server = serve(Text("Three."))
    session = place.data("sessions", "import", "--from", agent, "last")["session"]
    asked = place.run("chat", "--resume", session, "How many lines was it?")
    assert (asked.returncode, asked.stdout) == (0, "Three.\n"), asked.stderr
    system, *messages = server.requests[-1].body["messages"]
    assert system["role"] == "system"
    assert [one["role"] for one in messages] == ["user", "assistant"] * 2 + ["user"]
    assert not any(one.get("tool_calls") for one in messages)
    assert f"[Imported from {agent}" in messages[0]["content"]
    assert "3 notes.txt" in messages[1]["content"]
    assert messages[-1]["content"] == "How many lines was it?"
    assert place.stored(session)["imported_from"].startswith(f"{agent}, session ")
