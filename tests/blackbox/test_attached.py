"""Files that a message names, and AGENTS.md: what the model reads, and that it stays so."""

from support.driver import Gate, Place
from support.model_server import Text, Tools


def bodies(server) -> list[dict]:
    """What the model was sent, oldest first."""
    return [request.body for request in server.requests]


def test_a_file_comes_along_as_it_was_when_named(place: Place, serve, gate: Gate) -> None:
    """Said, queued, steered and edited messages bring the file as it was then, over a kill -9, too."""
    server = serve(Tools([gate.call]), Text("Hm."), Text("Done."), Text("Well."))
    notes = place.folder / "notes.txt"
    notes.write_text("first\n")
    chat = place.chat("--yes", "begin with @notes.txt, and write to ann@example.com")
    chat.wait("notice", text="Attached notes.txt (6 bytes).")
    chat.wait("tool_started")
    assert "[Attached: notes.txt]\n```\nfirst\n```" in str(
        bodies(server)[0]["messages"][-1]["content"]
    )
    notes.write_text("second\n")
    chat.causes({"text": "mind @notes.txt", "as": "steer"}, "accepted")
    notes.write_text("third\n")
    chat.send({"text": "then @notes.txt", "as": "queue"}, {"text": "and this", "as": "queue"})
    chat.wait("accepted", number=4)
    notes.write_text("fourth\n")
    chat.ask("/queue edit 4 and @notes.txt")
    notes.write_text("fifth\n")
    gate.open()
    chat.wait("turn_ended")
    assert "mind @notes.txt\n\n[Attached: notes.txt]\n```\nsecond" in str(
        bodies(server)[1]["messages"][-1]["content"]
    )
    chat.wait_quiet()
    said = [str(body["messages"][-1]["content"]) for body in bodies(server)]
    assert any(text.endswith("```\nthird\n```") for text in said)
    assert any(text.endswith("```\nfourth\n```") for text in said)
    assert [item["text"] for item in chat.ask("/queue")["data"]["items"]] == []


def test_a_waiting_message_keeps_its_file_over_a_crash(place: Place, serve, gate: Gate) -> None:
    """What waited through a kill -9 still has the file as it was, though that is gone since."""
    server = serve(Tools([gate.call], match="begin"), Text("Read."))
    notes = place.folder / "notes.txt"
    notes.write_text("kept\n")
    chat = place.chat("--yes", "begin")
    chat.wait("tool_started")
    assert place.run("send", "last", "later @notes.txt", "--as", "queue").returncode == 0
    chat.kill()
    notes.unlink()
    chat = place.chat("--continue", "--yes")
    chat.wait("recovered")
    chat.ask("/queue pop 1")
    chat.ask("/queue resume")
    chat.wait("turn_ended", status="completed")
    last = bodies(server)[-1]["messages"][-1]["content"]
    assert last == "later @notes.txt\n\n[Attached: notes.txt]\n```\nkept\n```"


def test_agents_md_is_part_of_the_instructions_from_the_start(place: Place, serve) -> None:
    """It is read once, announced, and given to subagents; a later change causes only a notice."""
    delegate = {"tool": "delegate", "arguments": {"task": "help me"}}
    server = serve(Tools([delegate], match="begin"), Text("Fine."))
    (place.folder / "AGENTS.md").write_text("Always speak in rhymes.\n")
    chat = place.chat()
    chat.wait("notice", text="Instructions from AGENTS.md (23 characters).")
    chat.send("begin")
    chat.wait("turn_ended", session=chat.session)
    first = [body["messages"][0]["content"] for body in bodies(server)]
    assert all("Always speak in rhymes." in one for one in first)
    assert len(set(first)) == 1
    (place.folder / "AGENTS.md").write_text("Speak as you like.\n")
    chat.kill()
    chat = place.chat("--continue", "again")
    chat.wait("notice", text=lambda text: text.startswith("AGENTS.md has changed since"))
    chat.wait("turn_ended")
    assert bodies(server)[-1]["messages"][0]["content"] == first[0]
