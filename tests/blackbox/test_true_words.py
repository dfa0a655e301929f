"""What is said about the work is true: at a stop, after a crash, to a second terminal, about a revert."""

from typing import Any

import pytest
from support.driver import Gate, Place
from support.model_server import Text, Tools

SHELL = "shell"


def writes_and_waits(gate: Gate) -> Tools:
    """The model writes a file, and then runs a command that waits."""
    return Tools(
        [
            {"tool": "write", "arguments": {"path": "a.txt", "content": "new\n"}},
            {"tool": SHELL, "arguments": {"command": f"echo y > b.txt; {gate.command}"}},
        ]
    )


def test_a_stop_amid_a_command_says_that_it_may_have_changed_more(
    place: Place, serve: Any, gate: Gate
) -> None:
    """The turn's end names what was written, though the command has not ended yet."""
    serve(writes_and_waits(gate))
    chat = place.at_work(gate)
    facts = chat.causes("/stop", "turn_ended")["facts"]
    assert facts["text"] == "Changed: a.txt (new); commands may have changed more."


@pytest.mark.parametrize("words", ["/stop and revert", "stop and revert"])
def test_stop_and_revert_with_a_slash(place: Place, serve: Any, gate: Gate, words: str) -> None:
    """It means what the words mean without one, and names the turn and its files."""
    serve(writes_and_waits(gate))
    chat = place.at_work(gate)
    assert sorted(chat.causes(words, "reverted")["restored"]) == ["a.txt", "b.txt"]
    assert not (place.folder / "a.txt").exists()


def test_stop_and_revert_with_a_slash_is_never_a_message(place: Place, serve: Any) -> None:
    """With nothing to stop it says so, and the model is not asked."""
    server = serve(Text("Done."))
    chat = place.chat()
    chat.completes("hello")
    said = chat.ask("/stop and revert")["text"]
    assert said == "Nothing to stop: nothing runs. /revert restores the files of the turn before."
    assert chat.close() == 0
    assert len(server.requests) == 1


def written(name: str) -> Tools:
    """The model writes a file."""
    return Tools([{"tool": "write", "arguments": {"path": name, "content": "x"}}])


@pytest.mark.parametrize(("stop", "left"), [("/stop", ["a.txt", "b.txt"]), ("stop and revert", [])])
def test_what_a_resumed_turn_changed_is_what_a_revert_takes_back(
    place: Place, serve: Any, gate: Gate, stop: str, left: list[str]
) -> None:
    """Line, `/diff` and `/revert` are about all of the work, except what was taken back."""
    serve(writes_and_waits(gate), written("c.txt"), Text("Done."))
    chat = place.at_work(gate)
    chat.causes(stop, "turn_ended", status="interrupted")
    facts = chat.causes("/queue resume", "turn_ended", status="completed")["facts"]
    named = [file["path"] for file in facts["changed"]]
    assert named == [name for name in (*left, "c.txt") if name != "b.txt"]
    data = chat.ask("/diff")["data"]
    assert [file["path"] for file in data["files"]] == [*left, "c.txt"]
    assert sorted(chat.ask("/revert")["data"]["restored"]) == [*left, "c.txt"]


def test_each_revert_names_its_turn(place: Place, serve: Any) -> None:
    """The second one takes back an earlier turn, and says so."""
    serve(written("a"), Text("Done."), written("b"), Text("Done."))
    chat = place.chat("--yes")
    for text in ("first", "second"):
        chat.completes(text)
    for turn, name in (("t2", "b"), ("t1", "a")):
        said = chat.ask("/revert")["text"]
        assert said == f"Reverted 1 file. Original state restored.\n{turn}: {name}."


def test_a_steer_of_a_stopped_turn_is_held(place: Place, serve: Any, gate: Gate) -> None:
    """It steers nothing any more: every interface is told that it waits for a person."""
    serve(writes_and_waits(gate))
    chat = place.at_work(gate)
    chat.send({"text": "use tabs", "as": "steer"}, "/stop")
    queue = chat.wait("queue", state="held")
    assert [item.get("held", False) for item in queue["items"]] == [False, True]
    assert chat.ask("/queue")["text"].splitlines()[1] == "#2 [PENDING]: use tabs"


def test_continue_passes_over_a_session_in_which_nothing_was_said(place: Place, serve: Any) -> None:
    """A chat that was opened and left is no session to go on with; it is in no list either."""
    serve(Text("Hello."))
    chat = place.chat()
    chat.completes("hi")
    assert chat.close() == 0
    assert place.chat().close() == 0
    again = place.chat("--continue")
    assert again.session == chat.session


def test_what_was_said_last_is_shown_in_the_persons_words(
    place: Place, serve: Any, gate: Gate
) -> None:
    """Not in those of the model, which is also told of a revert and of an interruption."""
    serve(writes_and_waits(gate), Text("Done."), Text("Hi."))
    chat = place.at_work(gate, "work on it")
    chat.causes("stop and revert", "reverted")
    chat.completes("/queue resume 1")
    assert chat.close() == 0
    other = place.chat()
    other.completes("hello")
    reply = other.ask(f"/resume {chat.session}")
    assert reply["text"].splitlines()[2:] == ["  you: work on it", "  agent: Done."]


def test_a_saved_queue_is_the_same_in_a_shell(place: Place, serve: Any, gate: Gate) -> None:
    """While a new chat has not begun: what is listed is what changes, and what is removed is told."""
    serve(writes_and_waits(gate), Text("Hi."))
    lost = place.at_work(gate)
    for text in ("then this", "and that"):
        lost.causes({"text": text, "as": "queue"}, "accepted", text=text)
    lost.kill()
    chat = place.chat()
    chat.wait("saved_queues")
    listed = place.run("queue", "list")
    assert "#2 [PENDING]: then this" in listed.stdout
    assert listed.stdout.splitlines()[:-1] == chat.ask("/queue list")["text"].splitlines()[:-1]
    popped = place.run("queue", "pop")
    assert popped.stdout == "Removed: #3.\n  #3: and that\n"
    assert f"Of session {lost.session}, whose queue is saved:" in popped.stderr
    assert "#2: then this" in place.run("queue", "clear").stdout


def test_what_another_session_kept_is_named_after_a_message(
    place: Place, serve: Any, gate: Gate
) -> None:
    """The commands of the notice mean this session by then, and say where the other queue is."""
    serve(writes_and_waits(gate), Text("Hi."))
    lost = place.at_work(gate)
    lost.causes({"text": "then this", "as": "queue"}, "accepted", text="then this")
    lost.kill()
    chat = place.chat()
    chat.completes("hello")
    way = f"`/queue restore {lost.session}` brings them here."
    there = f" Session {lost.session} has 2 items saved: {way}"
    assert chat.ask("/queue")["text"] == f"The queue is empty.{there}"
    assert chat.ask("/queue restore")["text"] == f"Nothing is saved here.{there}"
    assert chat.ask("/queue resume")["text"] == f"Nothing waits.{there}"
    assert chat.ask(f"/queue restore {lost.session}")["text"].startswith("Restored from session")
    assert chat.ask("/queue clear")["ok"]
