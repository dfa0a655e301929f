"""A chat at a keyboard whose session is in `steersman serve`: commands change it in the same way."""

from contextlib import closing

from blackbox.terminal import Terminal
from support.driver import COMMAND, Place
from support.model_server import Text
from support.served import Served


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
