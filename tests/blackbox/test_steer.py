"""Taking part in a running turn: steering, cutting in, stopping at a boundary, taking back."""

import pytest
from support.driver import Gate, Place
from support.model_server import ModelServer, Status, Text, Tools, shell

QUEUE = 'busy_input_mode = "queue"'
TURN = {"as": "turn"}


def last_message(server: ModelServer, request: int) -> str:
    """Return how a request's conversation ends."""
    said = server.requests[request].body["messages"][-1]
    assert said["role"] == "user"
    return str(said["content"])


def test_a_queued_message_names_its_sender(place: Place, serve, gate: Gate) -> None:
    """The model, the queue, the acknowledgement and the receipts say who it is, if not the owner."""
    server = serve(shell(gate.command), Text("Noted."), top=QUEUE)
    chat = place.at_work(gate)
    chat.send({"text": "also tabs", "user": "ann"})
    ack = chat.wait("accepted", **{"as": "queue"})["ack_text"]
    assert ack == '📥 Queued #2: "also tabs" (from ann)'
    lines = chat.ask("/queue")["text"].splitlines()
    assert lines == ["#1 [RUNNING]: work", "#2 [PENDING] from ann: also tabs"]
    gate.open()
    for _ in range(2):
        chat.wait("turn_ended", status="completed")
    assert "m2 #2 done (t2) from ann  also tabs" in chat.ask("/receipts")["text"]
    assert chat.close() == 0
    assert last_message(server, 2) == "[New message from ann] also tabs"


def test_an_imported_steer_says_what_it_was(place: Place, serve, gate: Gate) -> None:
    """Its turn is not where it is imported: it is a message there, and the answer says so."""
    serve(shell(gate.command), Text("Noted."), top=QUEUE)
    chat = place.at_work(gate)
    for text in ("later", "focus on ownership"):
        chat.causes(text, "accepted", **{"as": "queue"})
    assert chat.ask("/queue steer 3")["ok"]
    assert chat.ask("/queue export saved.toml")["ok"]
    other = place.chat()
    said = other.ask("/queue import saved.toml")["text"]
    was = "#3 steered a turn that is not here: now messages."
    assert said == f"Imported 3 items. {was} Held: /queue resume runs them."
    assert other.close() == 0
    gate.open()


def test_with_nothing_running_a_waiting_message_runs(place: Place, serve, gate: Gate) -> None:
    """There is no turn to steer: the message runs at once, and what is held stays held."""
    server = serve(shell(gate.command), Text("Done."), top=QUEUE)
    chat = place.at_work(gate)
    chat.send("before", "later", "/stop")
    chat.wait("stopped")
    result = chat.ask("/queue steer 3")
    assert result["text"] == "Nothing runs that it could steer: #3 runs as a message."
    chat.wait("turn_ended", status="completed")
    assert last_message(server, -1) == "later"
    assert chat.ask("/queue")["text"].splitlines()[:2] == [
        "#1 [INTERRUPTED]: work",
        "#2 [PENDING]: before",
    ]


def test_steer_with_a_text_is_a_message(place: Place, serve, gate: Gate) -> None:
    """`/steer TEXT` is accepted as a steer in every mode, and as a turn at rest."""
    server = serve(shell(gate.command), Text("Done."), top=QUEUE)
    chat = place.at_work(gate)
    chat.send("/steer don't use tabs")
    assert chat.wait("accepted", **{"as": "steer"})["text"] == "don't use tabs"
    gate.open()
    chat.wait("turn_ended", status="completed")
    chat.causes("/steer hello", "accepted", **TURN, text="hello")
    chat.wait("turn_ended", status="completed")
    assert not chat.ask("/steer")["ok"]
    assert chat.close() == 0
    assert last_message(server, 1) == "[New message from user] don't use tabs"


@pytest.mark.parametrize("mode", ["steer", "queue", "interrupt"])
def test_the_busy_mode_is_chosen_for_the_session(
    place: Place, serve, gate: Gate, mode: str
) -> None:
    """`/busy MODE` decides about the next message, and is still in force after a kill."""
    serve(shell(gate.command), Text("Done."), top=QUEUE)
    chat = place.at_work(gate)
    assert chat.ask(f"/busy {mode}")["data"]["busy_input_mode"] == mode
    assert not chat.ask("/busy sideways")["ok"]
    chat.send({"text": "a remark", "client_id": "r"})
    assert chat.wait("accepted", client_id="r")["as"] == mode
    chat.kill()
    assert place.stored()["busy_mode"] == mode


def test_undo_lets_a_steer_wait_instead(place: Place, serve, gate: Gate) -> None:
    """A steer that was not taken in yet becomes the next turn; a second undo finds nothing."""
    server = serve(shell(gate.command), Text("Done."), top='busy_input_mode = "steer"')
    chat = place.at_work(gate)
    chat.causes("use tabs", "accepted", **{"as": "steer"})
    assert chat.ask("/undo")["text"] == "#2 waits in the queue instead."
    assert not chat.ask("/undo")["ok"]
    gate.open()
    for _ in range(2):
        chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    assert chat.seen("requeued", why="taken back")
    assert not chat.seen("steered")
    assert server.requests[-1].prompt == "use tabs"


def test_undo_calls_a_stop_off_that_waits_for_a_tool(place: Place, serve, gate: Gate) -> None:
    """With `interrupt_at = "boundary"`, undone while the tool runs, it stops nothing and waits."""
    server = serve(shell(gate.command), Text("Done."), top='interrupt_at = "boundary"')
    chat = place.at_work(gate)
    chat.causes("stop", "accepted", **{"as": "interrupt"})
    chat.wait("notice", text="Stopping after shell")
    result = chat.ask("/undo")
    assert (result["ok"], result["data"]["offered"]) == (True, None)
    assert "waits in the queue" in result["text"]
    gate.open()
    for _ in range(2):
        chat.wait("turn_ended", status="completed")
    (receipt,) = [
        receipt for receipt in chat.ask("/receipts")["data"]["receipts"] if "cause" in receipt
    ]
    assert receipt["state"] == "called_off"
    assert chat.close() == 0
    assert not chat.seen("interrupting", "interrupted", "stopped")
    assert server.requests[-1].prompt == "stop"


@pytest.mark.parametrize("said", ["stop", "use zod instead", "stop, use zod instead"])
def test_undo_of_an_interrupt_offers_what_was_stopped(
    place: Place, serve, gate: Gate, said: str
) -> None:
    """The message waits behind the stopped turn, which resume goes on with; nothing is lost."""
    stays = shell("sleep 600", match="zod", times=1)
    server = serve(shell(gate.command), stays, Text("Done."))
    chat = place.at_work(gate)
    assert chat.ask("/busy interrupt")["ok"]
    chat.causes(said, "stopped")
    if said != "stop":
        chat.wait("tool_started")
    result = chat.ask("/undo")
    assert "#1 was stopped already: /queue resume continues it." in result["text"]
    queue = chat.ask("/queue")["data"]
    assert queue["state"] == "held"
    assert [item["text"] for item in queue["items"]] == ["work", said]
    chat.ask("/queue resume")
    for _ in range(2):
        chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    assert server.requests[-2].prompt.endswith("work")
    assert server.requests[-1].prompt.endswith(said)


def test_receipts_tell_what_became_of_everything(place: Place, serve, gate: Gate) -> None:
    """Messages and interrupts can be followed: taken in where, killed what, kept what."""
    serve(shell(gate.command), shell(gate.command), Text("Done."), top=QUEUE)
    chat = place.at_work(gate)
    chat.send("/steer use tabs", "later", "gone")
    chat.wait("accepted", text="gone")
    chat.ask("/queue pop")
    gate.open()
    chat.wait("steered")
    chat.wait("tool_started")
    chat.causes("stop", "stopped")
    found = {receipt["id"]: receipt for receipt in chat.ask("/receipts")["data"]["receipts"]}
    states = {row["text"]: row["state"] for row in found.values() if row["kind"] == "message"}
    assert states == {
        "work": "interrupted",
        "use tabs": "taken in",
        "later": "waiting",
        "gone": "withdrawn",
    }
    (steer,) = (event for event in found.values() if event["text"] == "use tabs")
    assert (steer["turn"], steer["step"]) == ("t1", 2)
    (stop,) = (row for row in found.values() if row["kind"] == "interrupt")
    assert (stop["state"], stop["matched"], stop["survivors"]) == ("stopped", "stop", [])
    assert stop["told"] == ["t1", chat.seen("tool_started")[-1]["call"]]
    assert len(stop["kept"]) == 2
    one = chat.ask(f"/receipts {stop['id']}")
    assert one["data"]["receipts"] == [stop]
    assert not chat.ask("/receipts m99")["ok"]


def test_several_people_steer_together(place: Place, serve, gate: Gate) -> None:
    """What waits enters as one user message, in order, each under its sender's name."""
    server = serve(shell(gate.command), Text("Noted."), top='busy_input_mode = "steer"')
    chat = place.at_work(gate)
    for user, text in (("ann", "use tabs"), ("bob", "no emoji"), ("ann", "and tests")):
        chat.causes({"text": text, "user": user}, "accepted", **{"as": "steer"})
    gate.open()
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    assert last_message(server, 1) == (
        "[New message from ann] use tabs\n\n"
        "[New message from bob] no emoji\n\n"
        "[New message from ann] and tests"
    )
    roles = [message["role"] for message in server.requests[1].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "user"]
    assert server.requests[1].body["messages"][:2] == server.requests[0].body["messages"]


def test_the_model_hands_a_message_back(place: Place, serve, gate: Gate) -> None:
    """`defer` makes it the next turn, before what waits; it needs no permission, the receipt tells."""
    server = serve(
        shell(gate.command),
        Tools([{"tool": "defer", "arguments": {"why": "the file is done"}}]),
        Text("Done."),
        top=f'{QUEUE}\n[permissions]\nrules = [{{ tool = "shell", do = "allow" }}]',
    )
    chat = place.chat()
    chat.send("work")
    gate.wait()
    chat.send("later", {"text": "use tabs", "as": "steer", "client_id": "s"})
    steer = chat.wait("accepted", client_id="s")["id"]
    gate.open()
    back = chat.wait("requeued")
    assert (back["id"], back["why"], back["number"]) == (steer, "the file is done", 4)
    for _ in range(3):
        chat.wait("turn_ended", status="completed")
    receipts = {receipt["id"]: receipt for receipt in chat.ask("/receipts")["data"]["receipts"]}
    assert (receipts[steer]["state"], receipts[steer]["became"]) == ("handed back", back["item"])
    assert receipts[back["item"]]["state"] == "done"
    assert chat.close() == 0
    asked = [request.prompt for request in server.requests]
    assert asked[-2:] == ["use tabs", "later"]
    assert not chat.seen("question")
    system = server.requests[0].body["messages"][0]["content"]
    assert system.count("`defer`") == 1


def test_without_the_tool_nothing_is_said_of_it(place: Place, serve) -> None:
    """The instructions of an agent without `defer` do not mention the tool."""
    server = serve(Text("Hello."))
    config = place.home / "config.toml"
    config.write_text(config.read_text() + '\n[agents.plain]\nmodel = "main"\ntools = ["read"]\n')
    assert place.run("chat", "--agent", "plain", "hi").returncode == 0
    system = server.requests[0].body["messages"][0]["content"]
    assert "[New message from NAME]" in system
    assert "defer" not in system


def test_the_same_text_three_times_is_three_steers(place: Place, serve, gate: Gate) -> None:
    """Who says a thing again means it: each has an id of its own, and all enter together, in order."""
    server = serve(shell(gate.command), Text("Noted."))
    chat = place.at_work(gate)
    said = ["use tabs", "use tabs", "no trailing spaces", "use tabs"]
    chat.send(*({"text": text, "as": "steer"} for text in said))
    accepted = [chat.wait("accepted", **{"as": "steer"})["id"] for _ in said]
    gate.open()
    taken = [chat.wait("steered") for _ in said]
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    assert len({*accepted}) == len(said)
    assert [(row["id"], row["step"]) for row in taken] == [(name, 2) for name in accepted]
    assert last_message(server, 1) == "\n\n".join(f"[New message from user] {one}" for one in said)
    assert len(server.requests) == 2


def test_a_steer_into_a_turn_that_fails_is_the_next_turn(place: Place, serve, gate: Gate) -> None:
    """A turn whose model fails while a steer waits requeues it; it runs once, automatically."""
    broken = Status(401, {"error": {"message": "bad key"}}, pause=0.5)
    server = serve(shell(gate.command), broken, Text("Noted."))
    chat = place.at_work(gate)
    gate.open()
    server.wait_requests(2)
    item = chat.causes({"text": "use tabs", "as": "steer"}, "accepted", **{"as": "steer"})["id"]
    chat.wait("turn_ended", status="failed")
    assert chat.wait("turn_started")["item"] == item
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    assert [event["id"] for event in chat.seen("requeued")] == [item]
    assert not chat.seen("steered")
    assert server.requests[-1].prompt == "use tabs"
