"""`/edit-last`: the last message is taken back, changed, and sent again in its place."""

import pytest
from support.driver import Chat, Place
from support.model_behaviours import Door
from support.model_server import Hang, Stall, Text, Tools

checks_data = pytest.mark.checks_data

ALLOWED = '[permissions]\nrules = [{ tool = "*", do = "allow" }]\n'
WRITES = Tools([{"tool": "write", "arguments": {"path": "a.txt", "content": "new\n"}}])


def said(chat: Chat) -> list[tuple[str, str]]:
    """Return the conversation as people read it."""
    messages = chat.ask("/history")["data"]["messages"]
    return [(message["role"], message["text"]) for message in messages]


@checks_data("/edit-last")
def test_an_answered_message_is_sent_again_in_another_session(place: Place, serve) -> None:
    """The session goes on from before it, by the model's view, too; the old one is kept."""
    server = serve(Text("Hello."), Text("Blue."), Text("Red."))
    chat = place.chat()
    for text, answer in (("hello", "Hello."), ("which color of the sky?", "Blue.")):
        chat.causes(text, "answer", text=answer)
    chat.wait_quiet()
    first = chat.session
    assert chat.ask("/mode plan")["ok"]
    shown = chat.ask("/edit-last")
    assert (shown["data"]["number"], shown["data"]["text"]) == (1, "which color of the sky?")
    done = chat.ask("/edit-last which colour of a rose?")
    second = done["data"]["session"]
    assert (done["ok"], done["data"]["left"], second != first) == (True, first, True)
    chat.wait("answer", text="Red.")
    chat.wait_quiet()
    assert said(chat) == [
        ("user", "hello"),
        ("assistant", "Hello."),
        ("user", "which colour of a rose?"),
        ("assistant", "Red."),
    ]
    assert "sky" not in str(server.requests[-1].body["messages"])
    assert "* plan" in chat.ask("/mode")["text"]
    assert chat.ask(f"/resume {first}")["ok"]
    assert said(chat)[-1] == ("assistant", "Blue.")


@pytest.mark.parametrize("is_held", [True, False])
def test_a_running_turn_is_stopped_and_its_files_are_restored(
    place: Place, serve, is_held: bool
) -> None:
    """What waited comes along, as held as it was; nothing is left to be resumed in the old session."""
    server = serve(Hang(), WRITES, Hang(), Text("Done."), Text("Next."), rest=ALLOWED)
    chat = place.chat("wait")
    server.wait_requests(1)
    chat.send({"text": "what is it for?", "as": "queue"}, {"text": "and then?", "as": "queue"})
    chat.wait("accepted", text="and then?")
    assert chat.ask("/edit-last write a.txt")["data"]["number"] == 3  # it waits: it is edited
    assert chat.ask("/stop")["ok"]
    chat.wait("stopped")
    assert chat.ask("/queue pop 1")["ok"]
    assert chat.ask("/queue move 3 1")["ok"]
    if is_held:
        assert chat.ask("/queue pop 3")["ok"]
        chat.send("write a.txt")
    else:
        assert chat.ask("/queue resume")["ok"]
    server.wait_requests(3)
    assert (place.folder / "a.txt").exists()
    first = chat.session
    done = chat.ask("/edit-last --revert write nothing")
    assert done["data"]["reverted"]["original"]
    assert "Reverted" not in done["text"]  # the event says it
    assert done["data"]["moved"] == [1]
    assert not (place.folder / "a.txt").exists()
    assert done["text"].endswith("and there `/revert undo` to its files.")
    chat.wait("answer", text="Done.")
    if is_held:
        chat.wait_quiet()
        assert [item["state"] for item in chat.ask("/queue")["data"]["items"]] == ["pending"]
        assert chat.ask("/queue resume")["ok"]
    chat.wait("answer", text="Next.")
    assert chat.close() == 0
    assert place.data("queue", "list", "--session", first)["items"] == []


def test_what_a_message_replaced_is_not_begun_in_the_other_session(place: Place, serve) -> None:
    """It was stopped, and comes along as that: nothing of it runs until a person resumes it."""
    top = 'busy_input_mode = "interrupt"'
    server = serve(Stall("One "), Text("Two."), Text("Three.", times=0), top=top)
    chat = place.chat()
    chat.send("first")
    chat.wait("text")
    chat.completes("second")
    edited = chat.ask("/edit-last third")
    assert "What waited is #1 here, held." in edited["text"]
    chat.wait("turn_ended", status="completed")
    listed = chat.ask("/queue")["data"]
    assert [(item["text"], item["state"]) for item in listed["items"]] == [("first", "interrupted")]
    assert len(server.requests) == 3
    assert chat.ask("/queue resume")["data"]["number"] == listed["items"][0]["number"]
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0


def test_what_was_stopped_and_cleared_is_the_last_message_all_the_same(place: Place, serve) -> None:
    """An agent has read it; one that was taken back unread is not."""
    server = serve(Text("One."), Stall("Two "), Text("Three."))
    chat = place.chat()
    chat.completes("first")
    chat.send("second")
    chat.wait("text")
    chat.send({"text": "unread", "as": "queue"})
    chat.send("/stop")
    chat.wait("stopped")
    assert chat.ask("/queue clear")["ok"]
    assert chat.ask("/edit-last")["data"]["text"] == "second"
    again = chat.ask("/edit-last --revert third")
    assert again["ok"]
    assert again["text"].endswith("what came of #1.")  # it changed no file
    chat.wait("answer", text="Three.")
    assert "second" not in str(server.requests[-1].body["messages"])


def test_a_steer_is_taken_back_with_what_followed_it(place: Place, serve) -> None:
    """The turn goes on with the new one; its files cannot be told from the rest's."""
    door = Door()
    writes = Tools(WRITES.calls, door=door)
    server = serve(writes, Hang(), Text("Red."), Text("Then."), rest=ALLOWED)
    chat = place.chat()
    chat.send("write a.txt", {"text": "and then?", "as": "queue"})
    chat.wait("accepted", text="and then?")
    chat.causes({"text": "make it blue", "as": "steer"}, "accepted", text="make it blue")
    edited = chat.ask("/edit-last --revert make it green")["text"]
    assert edited.endswith("Nothing to restore: no agent has read #3 yet.")
    door.open()
    chat.wait("steered")
    server.wait_requests(2)
    refused = chat.ask("/edit-last --revert make it red")
    assert (refused["ok"], "steered" in refused["text"]) == (False, True)
    done = chat.ask("/edit-last make it red")
    undo = f"`steersman sessions revert {done['data']['left']} --to t1` restores them"
    assert f"Files stay as they are: a.txt; {undo}." in done["text"]
    chat.wait("answer", text="Then.")
    chat.wait_quiet()  # the new text may have been read with the task, or after its first answer
    asked = server.requests[-1].body["messages"]
    told = [message["content"] for message in asked if message["role"] == "user"]
    assert [text.startswith("[You were interrupted") for text in told] == [
        False,
        True,
        False,
        False,
    ]
    assert [text.rpartition("\n")[2] for text in told[:2]] == ["write a.txt"] * 2
    assert told[2:] == ["[New message from user] make it red", "and then?"]
    assert [message["role"] for message in asked].count("tool") == 1
    assert "There is nothing to revert." in chat.ask("/revert")["text"]
    back = f"`steersman sessions revert {done['data']['left']}`"
    assert chat.wait("notice", text=lambda text: text.endswith(f"continues: {back}."))
    first = done["data"]["left"]
    shows = f"`steersman sessions diff {first} t1` shows its changes"
    whose = f"t1 is a turn of session {first}, which this one continues: {shows}."
    assert chat.ask("/diff t1")["text"] == whose
    assert chat.seen("turn_started")[-1]["turn"] == "t3"  # a call of a turn has one id in both
    assert chat.close() == 0
    assert place.run("sessions", "revert", done["data"]["left"], "--to", "t1").returncode == 0
    assert not (place.folder / "a.txt").exists()


def test_where_it_cannot_be_it_changes_nothing(place: Place, serve) -> None:
    """Without a message, and while a goal is pursued, the reply says why."""
    server = serve(Text("Hello."), Hang())
    chat = place.chat()
    assert chat.ask("/edit-last anything")["data"] == {"reason": "there is no message yet"}
    chat.completes("hello")
    assert chat.ask("/goal tests pass")["ok"]
    server.wait_requests(2)
    refused = chat.ask("/edit-last anything")
    assert (refused["ok"], "goal" in refused["text"]) == (False, True)
    assert chat.ask("/inspect")["data"]["turn"] == "t2"
    chat.send("/stop", "/exit")
    assert chat.ended() == 0
