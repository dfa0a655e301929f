"""Routing tables in a live session: routes of one's own, and a choice from another terminal."""

from support.driver import Gate, Place
from support.model_server import Text, Tools

WAIT = """
[[route]]
name = "later"
message = "converse"
when = { session = "busy" }
deliver = [{ to = "self", as = "queue" }]
"""


def test_a_route_decides_and_a_choice_from_outside_is_taken_up(
    place: Place, serve, gate: Gate
) -> None:
    """A route of the configuration queues what would interrupt; another terminal changes the table."""
    interrupts = 'busy_input_mode = "interrupt"'
    serve(Tools([gate.call]), Text("One."), Text("Two."), rest=WAIT, top=interrupts)
    chat = place.at_work(gate)
    taken = chat.causes("something else", "accepted", **{"as": "queue"})
    assert (taken["rule"], taken["ack"]) == ("later", "queued")
    used = place.run("routes", "use", "never-cancel", "--session", chat.session, "--unsafe")
    assert (used.returncode, used.stderr) == (0, "")
    assert chat.ask("/routes")["data"]["table"] == "never-cancel"
    gate.open()
    for _ in range(2):
        chat.wait("turn_ended", status="completed")


def test_an_unsafe_table_does_what_it_says(place: Place, serve, gate: Gate) -> None:
    """Under the table that cancels on every message a question ends the child that works."""
    call = {"task": "count the stars", "name": "kid"}
    serve(
        Tools([{"tool": "delegate", "arguments": call}], match="build the report"),
        Tools([gate.call], match="count the stars"),
        Text("Fine."),
        rest='[routing]\ntable = "cancel-on-message"\nunsafe = true\n',
        top='busy_input_mode = "interrupt"',
    )
    chat = place.chat("--yes")
    assert (
        "does not keep these rules: a converse message never stops a child"
        in chat.wait("notice", text=lambda text: "cancel-on-message" in text)["text"]
    )
    chat.send("build the report")
    gate.wait()
    assert chat.causes("how is it going?", "child_ended", name="kid")["status"] == "cancelled"
