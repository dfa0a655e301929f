"""What work used is shown: by turn, by session, by subagent, in tokens, time and money."""

from support.driver import Gate, Place
from support.model_server import Text, Tools

PRICE = "[models.main.price]\ninput = 10.0\ncached = 1.0\noutput = 100.0\n"
CALL = 0.00246
"""What one call of the test's server costs: 40 fresh tokens in, 60 cached, 20 out."""


def test_tokens_time_and_cost_are_counted_with_those_of_children(place: Place, serve) -> None:
    """A turn's end tells its own usage, `/usage` adds the subagents', and a crash loses nothing."""
    serve(
        Tools(
            [{"tool": "delegate", "arguments": {"task": "count", "name": "scout"}}], match="begin"
        ),
        Text("Two calls here, one below."),
        rest=PRICE,
    )
    chat = place.chat("--yes", "begin")
    ended = chat.wait("turn_ended", parent=None)
    assert (ended["usage"]["input"], ended["usage"]["cost"]) == (200, round(2 * CALL, 6))
    assert ended["usage"]["seconds"] > 0
    shown = chat.ask("/usage")
    assert shown["data"]["session"]["cost"] == round(2 * CALL, 6)
    assert [child["output"] for child in shown["data"]["children"]] == [20]
    assert shown["data"]["total"]["cost"] == round(3 * CALL, 6)
    assert "scout     100 tokens in (60 % cached), 20 out, cost 0.0025" in shown["text"]
    chat.kill()
    again = place.chat("--continue")
    total = again.ask("/usage")["data"]["total"]
    assert total == {**shown["data"]["total"], "seconds": total["seconds"]}
    assert total["seconds"] >= ended["usage"]["seconds"]


def test_a_dead_program_takes_no_more_time(place: Place, serve, gate: Gate) -> None:
    """What a crash cut off ended with its last entry, and counts in the session as in its turn."""
    serve(Tools([gate.call]))
    chat = place.at_work(gate)
    chat.kill()
    place.alter("UPDATE entries SET time = time - 9000")
    dead = place.data("sessions", "usage", chat.session)
    worked = dead["turn"]["seconds"]
    assert (worked < 9000, dead["session"]["seconds"]) == (True, worked)
    again = place.chat("--resume", chat.session)
    used = again.ask("/usage")["data"]
    assert (used["turn"]["seconds"], used["session"]["seconds"]) == (worked, worked)


def test_without_prices_no_cost_is_shown(place: Place, serve) -> None:
    """Without configured prices no cost is reported."""
    serve(Text("Hello."))
    chat = place.chat("hi")
    assert chat.wait("turn_ended")["usage"]["cost"] == 0
    assert "cost" not in chat.ask("/usage")["text"]
