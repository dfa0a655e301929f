"""Stopping: by command, by word and by signal, at every point of a turn."""

import itertools
import signal

import pytest
from support.driver import Chat, Gate, Place, finish, shape, wait_gone
from support.model_server import Behaviour, Hang, Stall, Text, Tools, shell
from support.patience import seconds

ORDER = ["interrupting", "interrupted", "turn_ended", "stopped"]
AT = ("first byte", "streaming", "tool", "question")
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def behaviour(at: str, gate: Gate) -> Behaviour:
    """What the model does so that a turn stands at this point."""
    command = {"command": f"trap '' TERM; {gate.command}; sleep 600"}
    match at:
        case "first byte":
            return Hang()
        case "streaming":
            return Stall("I begin to say something, and then ")
        case _:
            return Tools([{"tool": "shell", "arguments": command}])


def stand(place: Place, gate: Gate, at: str) -> Chat:
    """Start a chat and wait until its turn stands at this point."""
    chat = place.chat(*(["--yes"] if at == "tool" else []))
    chat.send("work")
    match at:
        case "first byte":
            chat.wait("turn_started")
        case "streaming":
            chat.wait("text")
        case "tool":
            gate.wait()
        case "question":
            chat.wait("question")
    return chat


WAYS = [
    ("first byte", "/stop"),
    ("streaming", "stop"),
    ("tool", "/stop"),
    ("tool", "Please just STOP this now!"),
    ("question", "stop"),
    *(
        pytest.param(at, said, marks=pytest.mark.nightly)
        for at in AT
        for said in ("/stop", "stop", "Please just STOP this now!")
    ),
]
LEAVES = [
    (signal.SIGINT, "idle"),
    (signal.SIGINT, "question"),
    (signal.SIGTERM, "tool"),
    (signal.SIGHUP, "first byte"),
    *(
        pytest.param(number, at, marks=pytest.mark.nightly)
        for number in SIGNALS
        for at in ("idle", *AT)
    ),
]


@pytest.mark.parametrize(("at", "said"), WAYS)
def test_a_turn_stops_wherever_it_is(place: Place, serve, gate: Gate, at: str, said: str) -> None:
    """The events of an interrupt come in the contract's order, and no process of the turn is left."""
    server = serve(behaviour(at, gate), Text("Next."))
    chat = stand(place, gate, at)
    if at == "first byte":
        server.wait_requests(1)
    stopped = chat.causes(said, "stopped")
    assert chat.kinds(*ORDER) == ORDER
    kinds = chat.kinds()
    assert kinds.index("interrupting") > len(kinds) - 1 - kinds[::-1].index("accepted")
    assert stopped["survivors"] == []
    if at == "tool":
        assert stopped["killed"]
        assert not wait_gone(stopped["killed"], 0.5)
        assert not [line for line in place.processes().values() if "sleep" in line]
    elif at == "question":
        (asked,), (answered,) = chat.seen("question"), chat.seen("answered")
        assert (answered["id"], answered["choice"]) == (asked["id"], "withdrawn")
        assert kinds.index("answered") < kinds.index("interrupted")
    else:
        assert server.requests[0].closed.wait(seconds(5))
    (ended,) = chat.seen("turn_ended")
    assert ended["status"] == "interrupted"
    if said != "/stop":
        (first, accepted) = chat.seen("accepted")
        assert first["as"] == "turn"
        assert (accepted["as"], accepted["matched"]) == ("interrupt", "stop")
    chat.completes("go on")
    assert chat.close() == 0
    assert len(server.requests) == 2
    roles = [message["role"] for message in server.requests[1].body["messages"]]
    assert not any(one == "user" == two for one, two in itertools.pairwise(roles))


HOSTILE = """\
busy_input_mode = "queue"
interrupt_strategy = "never"
interrupt_at = "boundary"
auto_queue.interrupt_keywords = []
auto_queue.negation_words = ["please", "just"]
[agents.assistant]
on_parent_interrupt = "detach"
"""


def test_a_downloaded_folder_does_not_say_what_stops(place: Place, serve, gate: Gate) -> None:
    """What it sets about words, strategy and boundary counts only when it is trusted."""
    (place.folder / "steersman.toml").write_text(HOSTILE)
    serve(behaviour("tool", gate), Text("Next."))
    chat = stand(place, gate, "tool")
    assert chat.causes("please just stop", "stopped")["survivors"] == []
    (ended,) = chat.seen("turn_ended")
    assert ended["status"] == "interrupted"
    assert chat.seen("accepted")[-1]["matched"] == "stop"


def test_stopping_twice_is_stopping_once(place: Place, serve, gate: Gate) -> None:
    """A second interrupt adds nothing and harms nothing."""
    serve(behaviour("tool", gate))
    chat = stand(place, gate, "tool")
    chat.send("/stop", "/stop", "stop")
    chat.wait("stopped")
    assert chat.close() == 0
    assert chat.kinds(*ORDER) == ORDER
    assert len(chat.seen("result", name="stop", ok=True)) == 2


def test_a_stop_leaves_a_tool_its_grace(place: Place, serve, gate: Gate) -> None:
    """It is asked to end, and has `tools.grace` for that, although session and turn both stop it."""
    command = f"trap 'sleep 0.1; echo ended > end; exit' TERM; {gate.command}; sleep 600 & wait"
    serve(shell(command), rest="[tools]\ngrace = 60")
    chat = place.at_work(gate)
    gate.open()
    chat.causes("/stop", "stopped")
    assert (place.folder / "end").read_text() == "ended\n"


def test_stop_with_nothing_running_says_so(place: Place, serve) -> None:
    """The command says so, and what was said with it is no message; the bare word is one."""
    server = serve(Text("You said stop."))
    chat = place.chat()
    result = chat.ask("/stop")
    assert result["ok"]
    assert result["data"]["interrupted"] is None
    assert "`use zod` was not sent" in chat.ask("/stop use zod")["text"]
    assert chat.causes("stop", "accepted")["as"] == "turn"
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    assert server.requests[0].prompt == "stop"


def test_what_was_typed_before_a_stop_is_held(place: Place, serve, gate: Gate) -> None:
    """Messages in front of an interrupt wait, also when all come at once; the notice is in `queue`."""
    server = serve(behaviour("tool", gate), Text("Done."), top='busy_input_mode = "queue"')
    chat = stand(place, gate, "tool")
    chat.send("one", "two", "/stop")
    chat.wait("stopped")
    queue = chat.ask("/queue")["data"]
    assert queue["state"] == "held"
    assert [(item["state"], item["text"]) for item in queue["items"]] == [
        ("interrupted", "work"),
        ("pending", "one"),
        ("pending", "two"),
    ]
    assert chat.close() == 0
    assert len(server.requests) == 1


@pytest.mark.nightly
@pytest.mark.parametrize(("number", "at"), LEAVES)
def test_a_signal_leaves_in_order(place: Place, serve, gate: Gate, number, at: str) -> None:
    """INT, TERM and HUP stop the turn, save everything, say so last, and exit with 128 + number."""
    serve(behaviour(at, gate))
    if at == "idle":
        chat = place.chat()
        chat.wait("session_started")
    else:
        chat = stand(place, gate, at)
    tools = [pid for pid in place.processes() if pid != chat.process.pid]
    assert chat.signal(number) == SIGNALS[number]
    assert chat.kinds()[-1] == "session_suspended"
    assert chat.kinds(*ORDER) == ([] if at == "idle" else ORDER)
    assert not wait_gone(tools, 1.0)
    assert chat.diagnostics == ""


@pytest.mark.nightly
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.nightly),
        pytest.param(signal.SIGHUP, marks=pytest.mark.nightly),
    ],
)
def test_a_signal_ends_one_message_in_order(place: Place, serve, gate: Gate, number) -> None:
    """A one-shot chat leaves as cleanly, and its session can be taken up."""
    serve(behaviour("tool", gate))
    process = place.start("chat", "--yes", "work")
    gate.wait()
    tools = place.processes()
    process.send_signal(number)
    ran = finish(process)
    assert ran.returncode == SIGNALS[number]
    assert "Traceback" not in ran.stderr
    assert not wait_gone(tools, 1.0)
    later = place.chat("--continue")
    items = later.wait("recovered", cause="exit")["items"]
    assert [item["state"] for item in items] == ["interrupted"]


def test_leaving_by_the_end_of_input_waits_for_what_runs(place: Place, serve) -> None:
    """With no more input the running turn and what waits are finished first."""
    server = serve(Text("one two three", pause=0.05), Text("Second."))
    chat = place.chat()
    chat.send("first", {"text": "second", "as": "queue"})
    assert chat.close() == 0
    assert [event["status"] for event in chat.seen("turn_ended")] == ["completed", "completed"]
    assert shape(chat.events)[-1] == "session_suspended"
    assert len(server.requests) == 2


def replaced(place: Place, gate: Gate) -> Chat:
    """Have a message replace a turn for which a steer waits."""
    chat = place.at_work(gate, "the first task")
    chat.causes("and lint it", "accepted", **{"as": "steer"})
    assert chat.causes("stop that and do the other", "interrupted")["replaced"] == 1
    return chat


def test_the_steers_of_a_replaced_turn_are_shown_and_come_back(
    place: Place, serve, gate: Gate
) -> None:
    """They wait with its message: the list says so, a steer's number names it, and both are resumed."""
    server = serve(Tools([gate.call]), Stall("I do "), Text("Done.", times=0))
    chat = replaced(place, gate)
    chat.wait("text")
    said = chat.ask("/queue")["text"]
    assert "`/queue resume` runs #1 again, which a message replaced, with #2." in said
    assert "Held." not in said  # nothing but what runs is in it
    whole = chat.ask("/queue list --all")["text"].splitlines()
    assert [line.split()[0] for line in whole] == ["#3", "#1", "#2", "Held."]
    story = place.run("why", "last", "2").stdout
    assert "It enters when turn t1 is resumed." in story
    assert "`/queue resume 1`" in story
    refused = chat.ask("/queue resume 2")["text"]
    assert refused == "#2 waits for turn t1 already, which `/queue resume 1` continues"
    assert chat.ask("/queue edit 2 and lint all of it")["ok"]
    assert chat.ask("/queue resume 1")["text"] == "Restored 2 items. #1 runs after #3."
    chat.causes("/stop", "stopped")
    chat.causes("/queue resume 1", "steered", number=2)
    chat.wait("turn_ended", status="completed")
    assert "and lint all of it" in str(server.requests[-1].body["messages"])
    chat.close()


def test_what_a_resume_runs_is_what_is_said_of_it(place: Place, serve, gate: Gate) -> None:
    """What a message replaced comes before what waits, and every place says so; later it does not."""
    serve(Tools([gate.call]), Text("Done.", times=0))
    chat = place.at_work(gate, "the first task")
    chat.causes({"text": "the tests", "as": "queue"}, "accepted", number=2)
    chat.causes("cancel that, do the other", "turn_ended", status="completed")
    said = chat.ask("/queue")
    assert said["data"]["again"] == 1
    assert "Held. /queue resume runs #1 again, then them." in said["text"]
    assert "`/queue resume` runs #1 again, which a message replaced." in said["text"]
    assert "runs #1 again, then them." in place.run("queue", "list", "last").stdout
    assert chat.seen("queue")[-1]["again"] == 1
    chat.completes("something else")
    later = chat.ask("/queue")
    assert "again" not in later["data"]
    assert "Held. /queue resume runs them." in later["text"]
    assert "`/queue resume 1` runs #1 again, which a message replaced." in later["text"]
    assert chat.ask("/queue resume")["data"]["number"] == 2
    chat.wait("turn_ended", status="completed")
    chat.close()


def test_what_goes_on_after_the_running_turn_is_said_to(place: Place, serve, gate: Gate) -> None:
    """A resume while another turn runs is seen by everybody: in the list, in `why`, and as its change."""
    serve(Tools([gate.call]), Tools([gate.call]), Text("Done.", times=0))
    chat = place.at_work(gate, "the first task")
    chat.causes("/stop", "stopped")
    chat.send("another one")
    gate.wait()
    assert "goes on" not in place.run("why", "last", "1").stdout
    assert chat.ask("/queue resume")["text"] == "Restored 1 item. #1 runs after #2."
    assert "#1 [INTERRUPTED] (runs next): the first task" in chat.ask("/queue")["text"]
    items = chat.seen("queue")[-1]["items"]
    assert [item["number"] for item in items if item.get("next")] == [1]
    assert "it goes on after what runs." in place.run("why", "last", "1").stdout
    gate.open()
    chat.wait("turn_started", number=1)
    chat.wait("turn_ended", status="completed")
    chat.close()


def test_what_was_set_aside_is_announced_at_the_next_start(place: Place, serve, gate: Gate) -> None:
    """A turn that another message replaced waits for nothing, but a resume of the session names it."""
    serve(Tools([gate.call]), Text("Done."))
    chat = replaced(place, gate)
    chat.wait("turn_ended", status="completed")
    chat.close()
    chat = place.chat("--continue", "--yes")
    chat.wait("notice", text="#1 [SUPERSEDED]: the first task (`/queue resume 1` goes on with it)")
    assert not chat.seen("recovered")  # nothing waits
    chat.close()


def test_what_is_discarded_is_offered_by_nobody(place: Place, serve, gate: Gate) -> None:
    """A replaced turn's message and its steer go, too; neither resume nor undo brings one back."""
    serve(Tools([gate.call]), Text("Done."), Hang(), Text("Done.", times=0))
    chat = replaced(place, gate)
    chat.wait("turn_ended", status="completed")
    assert chat.ask("/queue discard")["text"].startswith("Discarded 2 items.\n  #")
    assert chat.ask("/queue resume")["text"] == "Nothing waits."
    assert chat.ask("/queue list --all")["data"]["items"] == []
    chat.causes("a third", "turn_started")
    chat.causes("just stop", "stopped")
    assert chat.ask("/queue discard")["text"].startswith("Discarded 1 item.\n  #")
    assert "/queue resume continues it" not in chat.ask("/undo")["text"]
    chat.close()


def test_a_single_message_that_is_stopped_or_falls_short_says_so_by_its_exit_code(
    place: Place, serve
) -> None:
    """130 where its turn is stopped from elsewhere; a goal that is not reached is 3, or 1."""
    server = serve(Hang(), Text("I tried."))
    chat = place.start("chat", "work")
    server.wait_requests(1)
    assert place.run("stop", "last").returncode == 0
    assert finish(chat).returncode == 130
    short = place.run("chat", "/goal --turns 1 --gate 'test -f nope' reach it")
    assert (short.returncode, "Goal paused (1 of 1 turns are spent)" in short.stderr) == (3, True)
    began = place.start("chat", "--plain")
    assert "has a goal that is not reached: reach it" in finish(began, "/goal\n").stderr
