"""Standing goals, through the installed command: judged, budgeted, stopped, killed, resumed."""

import itertools
import json

import pytest
from blackbox.judged import (
    DONE,
    GO_ON,
    Start,
    counting,
    turns_of,
    verdicts,
    wait_goal,
    waits_for,
)
from support.driver import Place
from support.model_server import Behaviour, Door, Hang, Recorded, Status, Text, Tools, shell
from support.patience import seconds
from support.until import until

QUICK = "judge_timeout = 1.0\n"
"""Seconds for judges that hang or fail; others have the time that is configured."""


def test_a_goal_is_worked_for_until_it_is_done(place: Place, start: Start) -> None:
    """Three turns, three verdicts, one prefix, one event and hook; the judge sees what it should."""
    told = place.folder / "told.json"
    hook = f'[[hooks]]\non = "goal_achieved"\nrun = ["sh", "-c", "cat > {told}"]'
    agent, judge = start(counting, verdicts(GO_ON, GO_ON, DONE), rest=hook)
    chat = place.chat()
    result = chat.ask("/goal all three steps are done")
    assert (result["ok"], result["data"]["state"]) == (True, "active")
    achieved = wait_goal(chat, "achieved")
    late = place.run("attach", "--plain", said="")
    assert "That was step 3." in late.stdout
    assert "user:" not in late.stderr  # nobody said that the goal goes on
    assert chat.close() == 0
    used = [achieved[name] for name in ("turns_used", "turns_total", "max_turns")]
    assert used == [3, 3, 20]
    assert [event["verdict"] for event in chat.seen("verdict")] == ["continue", "continue", "done"]

    bodies = [request.body for request in agent.requests]
    assert len(bodies) == turns_of(chat) == 3
    assert bodies[0]["messages"][-1]["content"] == "all three steps are done"
    for before, after in itertools.pairwise(bodies):
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert after["tools"] == before["tools"]
        assert [message["role"] for message in after["messages"]][-2:] == ["assistant", "user"]
        assert "not all of it is there" in after["messages"][-1]["content"]
    asked = [request.body for request in judge.requests]
    assert [row["temperature"] for row in asked] == [0.0, 0.0, 0.0]
    assert "verdict" in json.dumps(asked[0]["response_format"])
    seen = asked[2]["messages"][-1]["content"]
    for part in ("all three steps", "That was step 3.", "continue: not all of it is there"):
        assert part in seen
    assert json.loads(told.read_text())["event"] == "goal_achieved"
    assert place.data("goal", "status")["state"] == "achieved"


def test_the_result_of_a_child_enters_the_next_turn(place: Place, start: Start) -> None:
    """Nobody has to hand it on: a subagent of the background works for the goal."""
    kid = {"task": "count the stars", "name": "kid", "background": True}

    def answer(request: Recorded) -> Behaviour:
        said = request.body["messages"][-1]
        if said["role"] == "tool":
            return Text("Off it goes.")
        if "count the stars" in said["content"]:
            return Text("There are 42.")
        if "[Result from kid]" in said["content"]:
            return Text("They are counted.")
        return Tools([{"tool": "delegate", "arguments": kid}])

    agent, _ = start(answer, verdicts(GO_ON, DONE))
    chat = place.chat("--yes")
    chat.ask("/goal know how many stars there are")
    assert wait_goal(chat, "achieved")["turns_total"] == 2
    said = [request.body["messages"][-1]["content"] for request in agent.requests]
    assert [text for text in said if text.startswith("[Result from kid] There are 42.\n\nGo on")]
    assert chat.ask("/queue")["text"] == "The queue is empty."


def test_a_judge_that_never_ends_spends_exactly_the_budget(place: Place, start: Start) -> None:
    """Paused after the last turn of the budget; resume grants as many again, and the total stays."""
    agent, _ = start(counting, Text(GO_ON), "max_turns = 4\n")
    chat = place.chat()
    chat.ask("/goal go on for ever")
    paused = wait_goal(chat, "paused", "budget")
    assert (paused["turns_used"], paused["turns_total"]) == (4, 4)
    assert len(agent.requests) == 4
    assert chat.ask("/goal resume")["ok"]
    paused = wait_goal(chat, "paused", "budget")
    assert (paused["turns_used"], paused["turns_total"]) == (4, 8)
    assert not chat.ask("/goal --turns 0 nothing")["ok"]
    assert chat.ask("/goal clear")["ok"]
    assert chat.ask("/goal")["data"]["state"] == "cleared"
    assert chat.close() == 0
    assert len(agent.requests) == 8


def test_an_agent_that_repeats_itself_is_stopped(place: Place, start: Start) -> None:
    """The same answer twice, case and spaces aside, pauses; with a file changed it goes on."""
    answers = itertools.cycle(("All done.", "ALL  done."))
    _, judge = start(lambda request: Text(next(answers)), Text(GO_ON))
    chat = place.chat()
    chat.ask("/goal nothing ever changes")
    wait_goal(chat, "paused", "no_progress")
    assert turns_of(chat) == 2
    assert len(judge.requests) == 2


def test_a_cycle_of_answers_is_no_progress(place: Place, start: Start) -> None:
    """A, B, A, B pauses, also if each turn ran a command that changed no file."""
    answers = itertools.cycle(("I try the first way.", "I try the other way."))

    def work(request: Recorded) -> Behaviour:
        if request.body["messages"][-1]["role"] == "tool":
            return Text(next(answers))
        return shell("true")

    start(work, Text(GO_ON))
    chat = place.chat("--yes")
    chat.ask("/goal nothing ever changes")
    paused = wait_goal(chat, "paused", "no_progress")
    assert paused["detail"] == "the same 2 answers twice, and no file changed in between"
    assert turns_of(chat) == 4


def test_a_gate_that_cannot_start_pauses_the_goal(place: Place, start: Start) -> None:
    """It is reported when the goal is set, before any turn; one that is lost later ends at once."""
    plain = place.folder / "plain"
    plain.write_text("exit 0\n")
    plain.chmod(0o755)
    agent, _ = start(counting, Text(GO_ON))
    chat = place.chat()
    for gate, reason in {
        "no-such-gate -q": "`no-such-gate` not found on PATH",
        "./missing": "`./missing` not found",
        "./plain": "cannot run `./plain`: it is no program, and has no `#!` line",
    }.items():
        detail = f"the gate `{gate}` cannot be started: {reason}"
        said = chat.ask(f"/goal --gate '{gate}' whatever")
        state = [said["data"][name] for name in ("state", "reason", "detail")]
        assert (said["ok"], state) == (True, ["paused", "gate_unusable", detail])
        assert f"It is paused: {detail}." in said["text"]
        refused = chat.ask("/goal --gate 'no-such-gate' another one")
        assert (refused["ok"], "the goal that is there stays" in refused["text"]) == (False, True)
        assert chat.ask("/goal")["data"]["text"] == "whatever"
        assert gate == "./plain" or chat.ask("/goal clear")["ok"]
    assert turns_of(chat) == 0
    assert chat.ask("/goal resume")["ok"]
    paused = chat.wait(
        "goal",
        state="paused",
        detail=lambda said: "the gate `./plain` could not be started: " in str(said),
    )
    assert (paused["turns_used"], len(agent.requests)) == (1, 1)
    assert (
        "But the gate `no-gate` cannot be started"
        in chat.ask("/goal next --gate no-gate x")["text"]
    )


def test_changed_files_are_progress(place: Place, start: Start) -> None:
    """An agent that writes, and says the same each time, goes on; one that only looks does not."""

    def work(request: Recorded) -> Behaviour:
        said = request.body["messages"]
        if said[-1]["role"] == "tool":
            return Text("Working.")
        turn = sum(message["role"] == "user" for message in said)
        writes = turn <= 3
        command = f"echo {turn} > out.txt" if writes else "true"
        return shell(command)

    start(work, Text(GO_ON), "max_turns = 9\n")
    chat = place.chat("--yes")
    chat.ask("/goal write for ever")
    wait_goal(chat, "paused", "no_progress")
    assert turns_of(chat) == 4


@pytest.mark.parametrize(
    "judge",
    [
        pytest.param(Text("What a nice answer."), id="prose"),
        pytest.param(Text(f"{DONE} {GO_ON}"), id="contradiction"),
        pytest.param(Status(500), id="500", marks=pytest.mark.nightly),
        pytest.param(Hang(), id="silence", marks=pytest.mark.nightly),
    ],
)
def test_a_judge_that_is_no_use_pauses_the_goal(
    place: Place, start: Start, judge: Behaviour
) -> None:
    """No usable verdict means go on, three times in a row; then it pauses and says why."""
    start(counting, judge, QUICK)
    chat = place.chat()
    chat.ask("/goal whatever")
    paused = wait_goal(chat, "paused", "judge_unusable")
    assert paused["turns_used"] == turns_of(chat) == 3
    assert [event["verdict"] for event in chat.seen("verdict")] == ["continue"] * 3


def test_a_persons_message_goes_first(place: Place, start: Start) -> None:
    """What is said during a turn runs before the goal goes on, costs it nothing, and is judged with."""
    door = Door()
    minds = iter([Text("One.", door=door), Text("Blue it is."), Text("Two.")])
    agent, judge = start(lambda request: next(minds), verdicts(GO_ON, DONE))
    chat = place.chat()
    chat.ask("/queue on")
    chat.causes("/goal paint the wall", "turn_started")
    chat.causes("make it blue", "accepted", **{"as": "queue"})
    refused = chat.ask("/goal something else")
    assert not refused["ok"]
    assert refused["data"]["is_busy"]
    assert not chat.ask("/goal resume")["ok"]
    door.open()
    achieved = wait_goal(chat, "achieved")
    assert chat.close() == 0
    door.close()
    last = [request.body["messages"][-1]["content"] for request in agent.requests]
    assert last[:2] == ["paint the wall", "make it blue"]
    assert "Go on working" in last[2]
    assert achieved["turns_total"] == 2
    assert "make it blue" in judge.requests[0].body["messages"][-1]["content"]


@pytest.mark.parametrize("word", ["/stop", "please just stop"])
def test_a_stop_while_it_is_judged_takes_effect_at_once(
    place: Place, start: Start, word: str
) -> None:
    """Between two turns, too: the judge is cut off, the goal pauses, and no further turn begins."""
    agent, judge = start(counting, Hang())
    chat = place.chat()
    chat.completes("/goal be judged")
    until(lambda: judge.requests)
    chat.send(word)
    wait_goal(chat, "paused", "interrupt")
    chat.wait("stopped")
    assert judge.requests[0].closed.wait(seconds(10))
    assert chat.close() == 0
    assert len(agent.requests) == 1


def test_a_stop_amid_turns_that_begin_every_moment(place: Place, start: Start) -> None:
    """However fast turns follow each other: behind a stop, however it is said, none begins."""
    agent, _ = start(counting, Text(GO_ON), "max_turns = 1000\nbackoff_limit = 0.0\n")
    chat = place.chat()
    for number in range(8):
        chat.send("/goal resume" if number else "/goal run")
        for _ in range(1 + number % 3):
            chat.wait("turn_started")
        chat.send(("/stop", "please just stop")[number % 2])
        paused = wait_goal(chat, "paused", "interrupt")
        chat.wait_quiet()
        assert not chat.ask("/goal pause")["ok"]
        while len(stopped := chat.seen("stopped")) <= number:  # what dies is proven dead first
            chat.ask("/goal")
        begun = chat.seen("turn_started")
        receipt = chat.seen("interrupting")[number:] or [paused]
        assert begun[-1]["seq"] < receipt[0]["seq"] <= min(paused["seq"], stopped[-1]["seq"])
        assert len(agent.requests) <= len(begun)  # the server may note one late that was cut off


@pytest.mark.parametrize(
    "gate", ["'sh -c \"echo ran >> log; test -e ok\"'", "'echo ran >> log && test -e ok'"]
)
def test_gates_come_before_the_judge(place: Place, start: Start, gate: str) -> None:
    """A gate that fails is the verdict; it is not run again while nothing changed.

    What is more than one plain command goes to a shell.
    """

    def work(request: Recorded) -> Behaviour:
        said = request.body["messages"]
        turn = sum(message["role"] == "user" for message in said)
        if turn == 3 and said[-1]["role"] == "user":
            return Tools([{"tool": "write", "arguments": {"path": "ok", "content": "x"}}])
        return Text(f"Turn {turn}.")

    _, judge = start(work, Text(DONE))
    chat = place.chat("--yes")
    assert chat.ask(f"/goal --gate {gate} make it so")["ok"]
    wait_goal(chat, "achieved")
    said = [(event["by"], event["verdict"]) for event in chat.seen("verdict")]
    assert said == [("gate", "continue"), ("gate", "continue"), ("judge", "done")]
    assert len(judge.requests) == 1
    assert (place.folder / "log").read_text().split() == ["ran", "ran"]


def test_goals_wait_in_line_and_conditions_cost_no_turn(place: Place, start: Start) -> None:
    """An achieved goal is followed by the next; a wait ends when its file comes."""
    agent, _ = start(counting, verdicts(waits_for('{"file": "built"}'), DONE, DONE))
    chat = place.chat()
    chat.ask("/goal first")
    waiting = wait_goal(chat, "waiting")
    assert waiting["turns_used"] == 1
    assert chat.ask("/goal next second")["data"]["place"] == 1
    assert len(agent.requests) == 1
    (place.folder / "built").write_text("")
    first = wait_goal(chat, "achieved")
    second = wait_goal(chat, "achieved")
    assert [(event["text"], event["turns_total"]) for event in (first, second)] == [
        ("first", 2),
        ("second", 1),
    ]


@pytest.mark.nightly
def test_goals_from_another_terminal(place: Place, start: Start) -> None:
    """A goal is changed and shown from another terminal; without an owner it waits."""
    start(counting, Text(GO_ON), "max_turns = 2\n")
    chat = place.chat()
    session = chat.session

    def goal(*words: str) -> tuple[int, dict]:
        ran = place.run("goal", *words, "--session", session, "--json")
        return ran.returncode, json.loads(ran.stdout)

    assert goal("set", "from afar", "--turns", "3")[1]["max_turns"] == 3
    wait_goal(chat, "paused", "budget")
    assert goal("resume")[0] == 0
    assert wait_goal(chat, "paused", "budget")["turns_total"] == 6
    assert chat.close() == 0
    assert goal("resume")[0] == 1
    code, data = goal("set", "while nobody is there")
    assert (code, data["state"]) == (0, "paused")
    assert goal("clear")[1]["state"] == "cleared"
    assert place.run("goal", "set", "x", "--turns", "0").returncode == 2
