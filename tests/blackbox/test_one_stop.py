"""One stop: whoever spares, delays or names a recipient is a row, and receipts say what died."""

import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.driver import Chat, Gate, Place, wait_gone
from support.model_server import Text, Tools, shell

KID = {"task": "count the stars", "name": "kid", "agent": "scout"}
BACK = {"task": "watch the sky", "name": "back", "agent": "scout", "background": True}
DETACH = '[agents.scout]\nmodel = "main"\non_parent_interrupt = "detach"\n'
SCOUT = '[agents.scout]\nmodel = "main"\n'


def begin(place: Place, serve: Any, *gates: Gate, **config: str) -> tuple[Chat, list[int]]:
    """Start a chat whose agent waits for `kid`; with a second gate `back` works in the background."""
    kids = (KID, BACK)[: len(gates)]
    wishes = [{"tool": "delegate", "arguments": kid} for kid in reversed(kids)]
    commands = (
        shell(gate.command, match=match)
        for gate, match in zip(gates, ("stars", "sky"), strict=False)
    )
    serve(Tools(wishes, match="build"), *commands, Text("All is well."), **config)
    chat = place.chat("--yes", "build the report")
    return chat, [gate.wait() for gate in gates]


def receipt(chat: Chat) -> dict[str, Any]:
    """Return the newest receipt of a stop."""
    found = [row for row in chat.ask("/receipts")["data"]["receipts"] if row["kind"] == "interrupt"]
    last: dict[str, Any] = found[-1]
    return last


def explained(chat: Chat, text: str) -> dict[str, tuple[str, str]]:
    """Return what each would get by a message, and by which row."""
    told = chat.ask(f"/routes explain {text}")["data"]["receives"]
    return {row["who"]: (row["what"], row["rule"]) for row in told}


@pytest.mark.parametrize("said", ["/stop", "please just stop"])
def test_a_child_that_is_declared_so_goes_on_and_is_named(
    place: Place, serve: Any, gate: Gate, said: str
) -> None:
    """The dry run, the line, the event and the receipt say so; the next stop ends it."""
    chat, (pid,) = begin(place, serve, gate, rest=DETACH)
    assert explained(chat, said)["kid"] == ("none", "declared-detached")
    assert chat.causes(said, "interrupting")["spared"] == ["kid"]
    chat.wait("notice", text="kid goes on in the background; the next stop ends that.")
    chat.wait("stopped")
    assert Path(f"/proc/{pid}").exists()
    assert receipt(chat)["spared"] == ["kid"]
    assert explained(chat, said)["kid"] == ("cancel", "cancel-all")
    chat.causes("/stop", "child_ended", name="kid")
    assert not wait_gone([pid], 0.0)


def test_a_patient_stop_is_handed_to_the_child(place: Place, serve: Any, gate: Gate) -> None:
    """With `interrupt_at = "boundary"` its command ends, and nothing more begins there."""
    ran = place.folder / "ran"
    two = [
        {"tool": "shell", "arguments": {"command": command}}
        for command in (f"{gate.command}; echo one >>ran", "echo two >>ran")
    ]
    delegate = Tools([{"tool": "delegate", "arguments": KID}], match="build")
    serve(
        delegate,
        Tools(two, match="stars"),
        Text("Done."),
        top='interrupt_at = "boundary"',
        rest=SCOUT,
    )
    chat = place.at_work(gate, "build the report")
    assert explained(chat, "please just stop")["kid"] == ("boundary", "interrupt-at-boundary-1")
    chat.causes("please just stop", "notice", text="Stopping after delegate")
    gate.open()
    chat.wait("stopped", turn="t1", session=chat.session)
    assert ran.read_text() == "one\n"
    assert chat.close() == 0
    assert ran.read_text() == "one\n"


def test_a_second_patient_stop_is_now(place: Place, serve: Any, gate: Gate) -> None:
    """What waited for a command of the child does not wait any more."""
    chat, (pid,) = begin(place, serve, gate, top='interrupt_at = "boundary"', rest=SCOUT)
    chat.causes("please just stop", "notice", text="Stopping after delegate")
    assert Path(f"/proc/{pid}").exists()
    chat.send("stop")
    chat.wait("stopped", turn="t1", session=chat.session)
    assert not wait_gone([pid], 0.0)
    assert pid in receipt(chat)["killed"]


@pytest.mark.parametrize("how", ["/finalize", "SIGTERM"])
def test_what_dies_when_a_session_is_left_is_on_the_receipt(
    place: Place, serve: Any, gate: Gate, how: str
) -> None:
    """Leaving is a stop: the receipt names whom it reached, who was told, and what was killed."""
    with closing(Gate(place.folder, "other")) as other:
        chat, pids = begin(place, serve, gate, other, rest=SCOUT)
        if how == "SIGTERM":
            chat.signal(signal.SIGTERM)
        else:
            chat.send(how)
            chat.close()
        assert not wait_gone(pids, 0.0)
    (left,) = place.stored()["stops"].values()
    assert {"self", "foreground_child", "background_child"} <= set(left["reaches"])
    assert {"kid", "back"} <= set(left["told"])
    assert set(pids) <= set(left["killed"])
    assert left["state"] == "stopped"


@pytest.mark.parametrize("how", ["/finalize", "/new"])
def test_what_dies_two_levels_below_is_on_the_receipt(
    place: Place, serve: Any, gate: Gate, how: str
) -> None:
    """Each level says what died below it, though its own session ends at the same time."""
    serve(
        Tools([{"tool": "delegate", "arguments": {**KID, "name": "a"}}], match="build"),
        Tools(
            [{"tool": "delegate", "arguments": {**KID, "name": "b", "task": "x"}}], match="stars"
        ),
        shell(gate.command, match="x"),
        rest=SCOUT,
    )
    chat = place.chat("--yes", "build the report")
    pid, session = gate.wait(), chat.session
    stopped = chat.causes(how, "stopped", session=session)
    assert pid in stopped["killed"]
    assert pid in chat.seen("child_ended", name="a")[0]["killed"]
    chat.close()
    (left,) = place.stored(session)["stops"].values()
    assert pid in left["killed"]


@pytest.mark.parametrize("how", ["agents stop last a", "/stop"])
def test_a_child_of_a_child_ends_once(place: Place, serve: Any, gate: Gate, how: str) -> None:
    """Whoever counts children by `child_started` and `child_ended` comes to nothing."""
    serve(
        Tools([{"tool": "delegate", "arguments": {**KID, "name": "a"}}], match="build"),
        Tools(
            [{"tool": "delegate", "arguments": {**KID, "name": "b", "task": "x"}}], match="stars"
        ),
        shell(gate.command, match="x"),
        Text("All is well."),
        rest=SCOUT,
    )
    chat = place.at_work(gate, "build the report")
    if how == "/stop":
        chat.send(how)
        chat.wait("stopped", session=chat.session)
    else:
        assert place.run(*how.split()).returncode == 0
        chat.wait("turn_ended", session=chat.session)
    chat.send("/finalize")
    chat.close()
    ended = [event["name"] for event in chat.seen("child_ended")]
    assert sorted(ended) == ["a", "b"]
