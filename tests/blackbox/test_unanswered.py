"""A turn whose model gave no answer goes on when a person says so, and is lost to nothing."""

import pytest
from support.driver import Gate, Place
from support.model_server import Hang, Status, Text, Tools

ALLOWED = '[permissions]\nrules = [{ tool = "*", do = "allow" }]\n'
DEAD = Status(400, body='{"error": {"message": "the model is gone"}}')


def writes(name: str) -> Tools:
    """Answer with a call that writes a file."""
    return Tools([{"tool": "write", "arguments": {"path": name, "content": "x\n"}}])


@pytest.mark.parametrize("dies", [False, True], ids=["", "after kill -9"])
def test_it_goes_on_before_what_waits(place: Place, serve, dies: bool) -> None:
    """The half-done work is not left behind, and the next job does not run over it."""
    server = serve(writes("a"), DEAD, writes("b"), Text("Done."), Text("Next."), rest=ALLOWED)
    chat = place.chat()
    chat.send("make both", {"text": "and then?", "as": "queue"})
    chat.wait("turn_ended", status="failed", resumable=1)
    chat.wait("queue", state="held")
    if dies:
        chat.process.kill()
        chat.process.wait()
        chat = place.chat("--resume", chat.session)
        chat.wait("notice", text="#1 [UNANSWERED]: make both (`/queue resume 1` goes on with it)")
    assert "`/queue resume` goes on with #1" in chat.ask("/queue")["text"]
    assert chat.ask("/queue resume")["text"] == "Restored 2 items. Processing #1..."
    chat.wait("answer", text="Next.")
    told = [one["content"] for one in server.requests[2].body["messages"] if one["role"] == "user"]
    assert told[-1].startswith("[You were interrupted. ")
    assert told[-1].endswith("]\nmake both")
    assert sorted(path.name for path in place.folder.iterdir() if len(path.name) == 1) == ["a", "b"]


def test_it_goes_on_after_what_was_interrupted(place: Place, serve) -> None:
    """The turn that goes on first does not end it: both were promised."""
    server = serve(Hang(), DEAD, Text("First."), Text("Second."))
    chat = place.chat()
    chat.send("the first")
    server.wait_requests(1)
    chat.causes("/stop", "turn_ended", status="interrupted")
    chat.causes("the second", "turn_ended", status="failed", resumable=2)
    assert chat.ask("/queue resume")["text"] == "Restored 2 items. Processing #1..."
    chat.wait("answer", text="First.")
    chat.wait("answer", text="Second.")
    assert chat.ask("/queue resume")["text"] == "Nothing waits."


def test_it_ends_with_the_next_turn(place: Place, serve) -> None:
    """Who says it again, or something else, is not asked about it any more."""
    serve(DEAD, Text("Hello."))
    chat = place.chat()
    chat.causes("hi", "turn_ended", status="failed", resumable=1)
    chat.completes("hi again")
    assert chat.ask("/queue resume")["text"] == "Nothing waits."


def test_it_can_be_dropped(place: Place, serve) -> None:
    """By its number, or with everything that is saved."""
    serve(DEAD)
    chat = place.chat()
    chat.causes("hi", "turn_ended", status="failed")
    assert chat.ask("/queue pop 1")["ok"]
    assert chat.ask("/queue resume")["text"] == "Nothing waits."


def test_a_new_chat_announces_it(place: Place, serve) -> None:
    """It is in the saved queue of its folder, in front of what waits, and is counted."""
    serve(DEAD, Text("Done."), Text("Next."))
    chat = place.chat()
    chat.send("make both", {"text": "and then?", "as": "queue"})
    chat.wait("turn_ended", status="failed", resumable=1)
    chat.close()
    (row,) = place.data("sessions", "list")["sessions"]
    assert (row["waiting"], row["interrupted"]) == (1, 1)
    chat = place.chat()
    [saved] = chat.wait("saved_queues")["saved"]
    assert [item["state"] for item in saved["items"]] == ["unanswered", "pending"]
    assert chat.ask("/queue resume")["text"] == "Restored 2 items. Processing #1..."
    chat.wait("answer", text="Next.")


def test_what_a_message_replaced_is_announced(place: Place, serve, gate: Gate) -> None:
    """A new chat in the folder names it, and `/queue resume` there goes on with it."""
    rest = 'busy_input_mode = "interrupt"\n' + ALLOWED
    serve(Tools([gate.call]), Text("Second."), Text("First."), rest=rest)
    chat = place.chat()
    chat.send("the first")
    gate.wait()
    chat.completes("the second")
    assert chat.seen("queue")[-1]["resumable"] == 1
    chat.kill()
    again = place.chat()
    (saved,) = again.wait("saved_queues")["saved"]
    assert [(item["number"], item["state"]) for item in saved["items"]] == [(1, "superseded")]
    assert "Processing #1" in again.ask("/queue resume")["text"]
    again.wait("answer", text="First.")
