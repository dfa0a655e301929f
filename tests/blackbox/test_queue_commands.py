"""`/queue` and its verbs, typed while a turn runs."""

import pytest
from support.driver import Chat, Gate, Place
from support.model_server import Hang, ModelServer, Text, Tools

checks_data = pytest.mark.checks_data
QUEUE = 'busy_input_mode = "queue"'


def texts(chat: Chat) -> list[tuple[int, str, str]]:
    """Return number, state and text of what is there, in order."""
    items = chat.ask("/queue")["data"]["items"]
    return [(item["number"], item["state"], item["text"]) for item in items]


def prompts(server: ModelServer) -> list[str]:
    """Return what the model was asked, each once."""
    return list(dict.fromkeys(request.prompt for request in server.requests))


@checks_data("/queue", "/queue add", "/queue edit", "/queue move", "/queue pop")
def test_the_queue_is_put_in_order_while_a_turn_runs(place: Place, serve, gate: Gate) -> None:
    """Added, edited, moved and popped messages run as they were left; their numbers stay."""
    server = serve(Tools([gate.call]), Text("Done."), top=QUEUE)
    chat = place.at_work(gate)
    chat.send("one", "two")
    added = chat.ask("/queue add don't forget three")
    assert (added["ok"], added["data"]["number"]) == (True, 4)
    assert chat.ask("/queue edit 2 one, but better")["ok"]
    moved = chat.ask("/queue move 4 1")
    assert moved["data"]["position"] == 1
    assert texts(chat) == [
        (1, "running", "work"),
        (4, "pending", "don't forget three"),
        (2, "pending", "one, but better"),
        (3, "pending", "two"),
    ]
    assert chat.ask("/queue pop 3")["data"]["withdrawn"] == [3]
    gate.open()
    assert chat.close() == 0
    orders = [[item["number"] for item in event["items"]] for event in chat.seen("queue")]
    assert [1, 4, 2, 3] in orders
    assert [1, 4, 2] in orders
    assert prompts(server) == ["work", "don't forget three", "one, but better"]


@pytest.mark.parametrize("verb", ["steer 5", "pop 5", "edit 5 x", "move 5 1", "resume 5"])
def test_a_number_that_is_not_there_is_named(place: Place, serve, gate: Gate, verb: str) -> None:
    """Each verb says which number it looked for."""
    serve(Tools([gate.call]), Text("Done."), top=QUEUE)
    chat = place.at_work(gate)
    result = chat.ask(f"/queue {verb}")
    assert (result["ok"], result["text"]) == (False, "No queued item #5")
    gate.open()


def test_a_place_is_one_of_what_waits(place: Place, serve, gate: Gate) -> None:
    """What was interrupted is not counted, as what runs is not."""
    serve(Tools([gate.call]), Text("Done."), top=QUEUE)
    chat = place.at_work(gate)
    chat.send("one", "two")
    chat.causes("/stop", "stopped")
    assert chat.ask("/queue move 3 1")["text"] == "#3 is at position 1."
    order = [(1, "interrupted", "work"), (3, "pending", "two"), (2, "pending", "one")]
    assert texts(chat) == order


@checks_data("/queue clear")
def test_clear_leaves_what_runs(place: Place, serve, gate: Gate) -> None:
    """What waits is withdrawn, the running turn goes on to its end."""
    server = serve(Tools([gate.call]), Text("Done."), top=QUEUE)
    chat = place.at_work(gate)
    chat.send("one", "two")
    assert chat.ask("/queue clear")["data"]["withdrawn"] == [2, 3]
    gate.open()
    chat.wait("turn_ended", status="completed")
    assert prompts(server) == ["work"]


@checks_data("/queue hold", "/queue resume")
def test_hold_and_resume_one(place: Place, serve, gate: Gate) -> None:
    """Held messages stay when the turn ends; the one that is named runs first."""
    server = serve(Tools([gate.call]), Text("Done."), top=QUEUE)
    chat = place.at_work(gate)
    chat.send("one", "two")
    assert chat.ask("/queue hold")["data"]["state"] == "held"
    gate.open()
    chat.wait("turn_ended", status="completed")
    assert [text[1] for text in texts(chat)] == ["pending", "pending"]
    chat.send("/queue resume 3")  # its result may come after the turns
    for _ in range(2):
        chat.wait("turn_ended", status="completed")
    chat.wait_any("result", text="Restored 2 items. Processing #3...")
    assert chat.close() == 0
    assert prompts(server) == ["work", "two", "one"]


def test_a_hold_during_a_turn_holds_what_is_said_to_it_later(
    place: Place, serve, gate: Gate
) -> None:
    """Also where nothing waits yet, and its words say so."""
    server = serve(Tools([gate.call]), Text("Done."), top=QUEUE)
    chat = place.at_work(gate)
    held = chat.ask("/queue hold")
    told = "Held: what is queued behind this turn waits for /queue resume."
    assert (held["data"]["state"], held["text"]) == ("held", told)
    chat.send("one")
    gate.open()
    chat.wait("turn_ended", status="completed")
    assert chat.ask("/queue resume")["ok"]
    chat.wait("turn_ended", status="completed")
    assert prompts(server) == ["work", "one"]


@checks_data("/queue on", "/queue off")
def test_auto_queue_is_switched_for_the_session(place: Place, serve, gate: Gate) -> None:
    """On, a message waits whatever the mode; the choice is still there after a kill."""
    serve(Tools([gate.call]), Text("Done."))
    chat = place.at_work(gate)
    assert chat.ask("/queue on")["data"]["auto_queue"] is True
    assert chat.causes("later", "accepted", **{"as": "queue"})["number"] == 2
    chat.kill()
    assert place.stored()["is_auto_queue"] is True
    later = place.chat("--continue")
    later.wait("recovered")
    assert later.ask("/queue off")["ok"]
    assert later.close() == 0
    assert place.stored()["is_auto_queue"] is False


def test_add_gives_the_text_back_when_the_queue_is_full(place: Place, serve, gate: Gate) -> None:
    """What finds no room is refused with its text, by the result and by the event."""
    serve(Tools([gate.call]), Text("Done."), top=QUEUE, rest="[auto_queue]\nmax_queue_size = 1")
    chat = place.at_work(gate)
    assert chat.ask("/queue add one")["ok"]
    result = chat.ask("/queue add two")
    assert (result["ok"], result["data"]["text"]) == (False, "two")
    lead = "The queue is full, so the message was not accepted. Your text: two\n"
    assert result["text"].startswith(f"{lead}  at most 1 may wait")
    gate.open()
    assert chat.close() == 0
    (rejected,) = chat.seen("rejected", reason="queue_full", text="two")
    assert "`/queue pop N` or `/queue clear` makes room" in rejected["hint"]


def test_a_new_session_asks_about_what_waits(place: Place, serve, gate: Gate) -> None:
    """`/new` names what would end with the session; `--yes` begins another all the same."""
    serve(Tools([gate.call]), Text("Done."), top=QUEUE)
    chat = place.at_work(gate)
    chat.causes("later", "accepted", **{"as": "queue"})
    asked = chat.ask("/new")
    assert (asked["ok"], "#2 [PENDING]: later" in asked["text"]) == (False, True)
    assert "`/new --yes`" in asked["text"]
    begun = chat.ask("/new --yes")
    assert (begun["ok"], begun["data"]["left"]) == (True, 2)
    gate.open()


def test_after_interrupt_continue_runs_what_waits(place: Place, serve, gate: Gate) -> None:
    """With `continue` the next queued message starts automatically after a stop."""
    rest = '[auto_queue]\nafter_interrupt = "continue"'
    server = serve(Tools([gate.call]), Text("Done."), top=QUEUE, rest=rest)
    chat = place.at_work(gate)
    chat.causes("one", "accepted", **{"as": "queue"})
    chat.completes("/stop")
    assert prompts(server) == ["work", "one"]


def test_resume_while_a_turn_runs(place: Place, serve, gate: Gate) -> None:
    """What is not held needs no resume; what is runs after the turn, and is not said to run now."""
    serve(Tools([gate.call]), Text("Done."), top=QUEUE)
    chat = place.at_work(gate)
    chat.causes("two", "accepted", **{"as": "queue"})
    assert chat.ask("/queue resume")["text"] == "The queue is not held."
    assert chat.ask("/queue hold")["ok"]
    assert chat.ask("/queue resume")["text"] == "Restored 1 item. #2 runs after #1."
    gate.open()
    for _ in range(2):
        chat.wait("turn_ended", status="completed")


def test_the_oldest_that_was_interrupted_is_resumed_first(place: Place, serve) -> None:
    """Of several turns that were stopped the first said comes first, whichever was stopped last."""
    server = serve(Hang(), Hang(), Text("Done."))
    chat = place.chat()
    for count, text in enumerate(("one", "two"), 1):
        chat.send(text)
        server.wait_requests(count)
        chat.causes("/stop", "stopped")
    items = chat.ask("/queue")["data"]["items"]
    assert [(item["number"], item["state"]) for item in items] == [
        (1, "interrupted"),
        (2, "interrupted"),
    ]
    assert chat.ask("/queue resume")["data"]["number"] == 1
    assert chat.close() == 0
    assert [request.prompt.rpartition("\n")[2] for request in server.requests][-2:] == [
        "one",
        "two",
    ]


def test_a_message_that_is_moved_to_its_place_passes_no_steer(
    place: Place, serve, gate: Gate
) -> None:
    """Positions are those of messages that wait for a turn; what steers stays where it is."""
    serve(Tools([gate.call]), Text("Done."), top=QUEUE)
    chat = place.at_work(gate)
    for text, kind in (("two", "queue"), ("three", "queue"), ("four", "steer")):
        chat.causes({"text": text, "as": kind}, "accepted", text=text)
    orders = []
    for command in ("/queue", "/queue move 3 2", "/queue move 2 9", "/queue move 2 1"):
        chat.ask(command)
        items = chat.ask("/queue")["data"]["items"]
        orders.append([item["number"] for item in items if item["state"] == "pending"])
    assert orders == [[2, 3, 4], [2, 3, 4], [3, 2, 4], [2, 3, 4]]


def test_what_is_held_beside_an_open_queue_is_named(place: Place, serve, gate: Gate) -> None:
    """Only what was interrupted waits for a word; a new message would run."""
    serve(Tools([gate.call], times=1), Hang(), top=QUEUE)
    chat = place.at_work(gate)
    chat.causes({"text": "two", "as": "queue"}, "accepted", text="two")
    chat.causes("/stop", "stopped")
    chat.causes("/queue resume 2", "turn_started")
    assert "Held: #1. /queue resume runs them." in chat.ask("/queue")["text"]
