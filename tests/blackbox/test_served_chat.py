"""A chat at a keyboard whose session is in `steersman serve`: commands change it in the same way."""

from contextlib import closing

from blackbox.terminal import Terminal
from support.driver import COMMAND, Gate, Place, wait_gone
from support.model_server import Text, Tools
from support.served import Served


def test_the_last_message_is_sent_again_at_a_server(place: Place, serve) -> None:
    """The terminal goes along to the session that goes on; a client of the old one stays with that."""
    serve(*(Text(f"{colour}.", match=colour) for colour in ("Blue", "Red", "Grey", "Green")))
    with closing(Served(place)) as web, closing(Terminal(place, [*COMMAND, "chat"])) as terminal:
        terminal.wait("model main (test-model")
        terminal.wait("may read here; asks to write here")
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


def test_what_a_dead_server_left_is_announced_by_the_next(place: Place, serve, gate: Gate) -> None:
    """Who takes the session up there reads of the crash and of the call of unknown outcome."""
    serve(Tools([gate.call]), Text("Done."))
    with (
        closing(Served(place)) as web,
        closing(Terminal(place, [*COMMAND, "chat", "--yes"])) as one,
    ):
        one.wait("runs in `steersman serve`")
        one.type("begin\r")
        gate.wait()
        web.kill()
        one.wait("has ended without closing it")
        wait_gone(place.processes())
    arguments = [*COMMAND, "chat", "--continue"]
    with closing(Served(place)), closing(Terminal(place, arguments)) as two:
        two.wait("runs in `steersman serve`")
        two.wait("Found saved queue from crashed session")
        two.wait("[INTERRUPTED]: begin")
        two.wait("Outcome unknown, not run again: shell")
