"""A chat at a keyboard whose session is in `steersman serve`: what a crash left is found there, too."""

from contextlib import closing

from blackbox.terminal import Terminal
from support.driver import COMMAND, Gate, Place, wait_gone
from support.model_server import Text, Tools
from support.served import Served


def test_a_crash_is_recovered_at_a_server(place: Place, serve, gate: Gate) -> None:
    """The notice comes, the saved queue is the queue, and the terminal goes to the session it resumes."""
    work = Tools(
        [{"tool": "shell", "arguments": {"command": gate.command}}], match="first", times=1
    )
    server = serve(work, Text("All done."))
    chat = place.chat("--yes")
    chat.send("first")
    gate.wait()
    chat.send({"text": "second", "as": "queue"})
    chat.wait("accepted", **{"as": "queue"})
    chat.kill()
    wait_gone(place.processes())
    with closing(Served(place)) as web, closing(Terminal(place, [*COMMAND, "chat"])) as terminal:
        terminal.wait("Found saved queue from crashed session (2 items, not auto-resuming)")
        terminal.type("/queue list\r")
        terminal.wait(f"Saved by session {chat.session}")
        assert len(server.requests) == 1
        terminal.type("/queue resume\r")
        terminal.wait("Processing #1")
        terminal.wait("All done.")
        terminal.type("and now?\r")
        terminal.wait("All done.")
        web.kill()
        terminal.wait("has ended without closing it.")
        terminal.wait(f"steersman chat --resume {chat.session}")
        assert terminal.process.wait(30) == 1


def test_the_last_message_is_sent_again_at_a_server(place: Place, serve) -> None:
    """The terminal goes along to the session that goes on; a client of the old one stays with that."""
    serve(*(Text(f"{colour}.", match=colour) for colour in ("Blue", "Red", "Grey", "Green")))
    with closing(Served(place)) as web, closing(Terminal(place, [*COMMAND, "chat"])) as terminal:
        terminal.wait("runs in `steersman serve`")
        terminal.type("is it Blue\r")
        terminal.wait("Blue.")
        web.pair()
        first = web.ask("GET", "sessions").data["sessions"][0]["id"]
        terminal.type("/edit-last is it Red\r")
        terminal.wait("Red.")
        assert web.ask("GET", "sessions").data["sessions"][0]["id"] != first
        said = web.ask("POST", f"sessions/{first}/messages", {"text": "is it Grey"})
        assert said.data["session"] == first
        terminal.type("is it Green\r")
        terminal.wait("Green.")
