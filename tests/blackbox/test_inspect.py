"""Looking inside: live, after a crash, at any moment; the same answer each time."""

import json
import re
import tomllib
from typing import Any

import pytest
from support.driver import Gate, Place
from support.model_server import Hang, Text, Tools, shell

from steersman.cli.output import without_nulls

DIED = ("owner", "lease", "dead_letters")
OF_ACTORS = ("mailbox", "restarts", "rule", "supervised", "waiting_for", "last_message")

SHELL_RUNS = '[permissions]\nrules = [{ tool = "shell", match = "*", do = "allow" }]'
WORKFLOW = """
[workflow]
name = "w"
[[step]]
id = "fan"
for_each = ["ready.sh", "other.sh"]
run = ["sh", "{{ item }}"]
[[step]]
id = "agent"
prompt = "look at it"
"""


def lasting(data: dict[str, Any]) -> dict[str, Any]:
    """Leave out what dies with a process: who runs it, what actors say of themselves, process ids."""
    kept = json.loads(json.dumps({name: one for name, one in data.items() if name not in DIED}))
    kept["actors"].pop("judge", None)
    for actor in kept["actors"].values():
        assert "differs" not in actor
        for name in OF_ACTORS:
            actor.pop(name, None)
    for turn in kept["turns"].values():
        for call in turn["calls"].values():
            call.pop("pid", None)
    for step in kept["run"]["steps"].values() if kept.get("run") else ():
        step.pop("pids", None)
    kept["subagents"] = {name: lasting(one) for name, one in data["subagents"].items()}
    return kept


def agrees(place: Place, live: dict[str, Any]) -> None:
    """Check that after SIGKILL the store, and its last entry in each form, say what was live."""
    dead = place.stored()
    assert (dead["owner"], dead["lease"]["epoch"]) == (None, live["lease"]["epoch"])
    assert lasting(dead) == lasting(live)
    past = place.stored("last", "--at", str(live["seq"]))
    assert lasting(past) == lasting(live)
    for data, supervised in ((dead, "stopped"), (past, None)):
        said = [[actor[name] for name in OF_ACTORS] for actor in data["actors"].values()]
        assert said == [[None, None, None, supervised, None, None]] * len(said)
        assert data["dead_letters"] is None
    assert lasting(place.stored("last", "--at", "0s ago")) == lasting(live)
    toml = place.run("inspect", "last", "--format", "toml", "--at", str(live["seq"])).stdout
    assert lasting(tomllib.loads(toml)) == lasting(without_nulls(live))


def test_live_dead_and_past_agree(place: Place, serve, gate: Gate) -> None:
    """A living session, the same one after SIGKILL, and its last entry are one dump, field by field."""
    serve(
        Text("Hello."),
        Tools([{"tool": "delegate", "arguments": {"task": "count", "name": "kid"}}]),
        shell(gate.command),
    )
    chat = place.chat("--yes")
    chat.completes("good morning")
    before = place.stored()
    chat.send("count the stars")
    pid = gate.wait()
    chat.causes({"text": "later", "as": "queue"}, "accepted")
    live = place.stored()
    kid = live["subagents"]["kid"]
    (call,) = kid["turns"][kid["turn"]]["calls"].values()
    assert (call["state"], call["pid"]) == ("running", pid)
    assert live["owner"]["pid"] == chat.process.pid
    past = place.stored("last", "--at", str(before["seq"]))
    assert (past["owner"], past["lease"]) == (None, None)
    tree = place.run("inspect", "last", "--at", str(before["seq"])).stdout
    assert "?" not in tree  # what is not known is left out
    assert re.search("actor queue  open$", tree, re.M)
    story = place.run("inspect", "last", "--diff", str(before["seq"]), str(live["seq"])).stdout
    assert re.search(r"\n  state\n    idle -> busy\n", story)
    assert not re.search(
        r"\d{10}\.\d|\dT\d|^    .*: *$|null", story, re.M
    )  # times are times, and nothing is empty
    assert f"`steersman why {live['id']} ID` tells" in story
    assert live["actors"]["children"]["waiting_for"] == "kid"
    assert live["actors"]["turn"]["rule"] == "run"
    assert live["actors"]["queue"]["rule"] == "explicit-queue"
    assert kid["actors"]["turn"]["waiting_for"] == f"call {call['id']}"
    chat.kill()

    agrees(place, live)
    assert lasting(place.stored("last", "--at", str(before["seq"]))) == lasting(before)
    changed = json.loads(
        place.run(
            "inspect", "last", "--format", "json", "--diff", str(before["seq"]), str(live["seq"])
        ).stdout
    )
    paths = {
        change["path"]: (change.get("before"), change.get("after")) for change in changed["changes"]
    }
    assert paths["state"] == ("idle", "busy")
    assert paths["queue.items.m3.said.text"] == (None, "later")


@pytest.mark.nightly
def test_goals_and_side_talks_agree(place: Place, serve, gate: Gate) -> None:
    """So are a goal whose gate runs, its judge, a side talk at work, a question and an interrupt."""
    serve(
        Hang(match="which"),
        Tools([{"tool": "write", "arguments": {"path": "a", "content": "b"}}], match="write"),
        Text("Nearly."),
    )
    chat = place.chat()
    question = chat.causes("write it", "question")
    asked = place.stored()
    assert asked["actors"]["turn"]["waiting_for"] == f"an answer to question {question['id']}"
    chat.causes("/stop", "stopped")
    chat.ask("/queue clear")
    assert chat.ask("/goal next and then sing")["ok"]
    chat.ask("/goal clear")
    if chat.ask("/stop")["data"]["interrupted"]:  # its first turn had begun
        chat.wait("stopped")
    (place.folder / "gate.sh").write_text(gate.command)
    set_goal = chat.ask("/goal --gate 'sh gate.sh' all is well")
    assert set_goal["ok"], set_goal
    gate.wait()
    chat.send("/smalltalk which is faster?")
    chat.wait("turn_started", parent=chat.session)
    live = place.stored()
    goal, judge = live["actors"]["goal"], live["actors"]["judge"]
    assert (goal["state"], judge["state"]) == ("active", "gating")
    assert goal["waiting_for"] == f"the judge of turn {live['turn']}"
    assert [child["relation"] for child in live["children"].values()] == ["side_talk"]
    assert list(live["subagents"]) == list(live["children"])
    assert live["stops"]
    chat.kill()
    agrees(place, live)


@pytest.mark.nightly
def test_a_run_agrees(place: Place, serve, gate: Gate) -> None:
    """So is a workflow's run, with its steps, the item that runs and the agent at work."""
    serve(shell(gate.command), rest=SHELL_RUNS)
    (place.folder / "w.toml").write_text(WORKFLOW)
    other = Gate(place.folder, "other")
    (place.folder / "ready.sh").write_text("true")
    (place.folder / "other.sh").write_text(other.command)
    run = place.job("w.toml")
    gate.wait()
    pid = other.wait()
    live = place.stored()
    fan, agent = (live["run"]["steps"][name] for name in ("fan", "agent"))
    assert (fan["state"], fan["marks"], list(fan["pids"].values())) == ("running", "dr", [pid])
    assert list(agent["children"].values()) == ["agent"]
    assert live["actors"]["turn"]["machine"] == "run"
    assert live["actors"]["turn"]["waiting_for"] == "step agent, step fan (other.sh)"
    tree = place.run("inspect", "last").stdout
    for line in ("run of w  running", "step fan  running  1/2", f"process {pid}", "child agent"):
        assert line in tree
    run.kill()
    agrees(place, live)
    other.close()


@pytest.mark.nightly
def test_the_journal_is_listed_and_filtered(place: Place, serve) -> None:
    """Entries by kind, turn, moment and number; as lines, as data, and followed as they come."""
    serve(Text("Hello."), Text("Bye."))
    chat = place.chat()
    chat.completes("one")
    follower = place.start("inspect", "last", "--events", "--watch", "--format", "json")
    assert follower.stdout is not None
    first = [json.loads(follower.stdout.readline()) for _ in range(6)]
    assert [event["seq"] for event in first] == [1, 2, 3, 4, 5, 6]
    chat.send("two")
    kinds = [json.loads(follower.stdout.readline())["kind"] for _ in range(5)]
    assert kinds == ["queued", "turn_started", "model_called", "answered", "turn_ended"]
    follower.kill()
    follower.communicate()

    def events(*arguments: str) -> list[dict[str, Any]]:
        return place.stored("last", "--events", *arguments)["events"]

    assert [event["kind"] for event in events("--kind", "turn_*", "--turn", "t2")] == [
        "turn_started",
        "turn_ended",
    ]
    assert [event["seq"] for event in events("--since", "4", "--until", "6")] == [4, 5, 6]
    assert [event["seq"] for event in events("--last", "2")] == [10, 11]
    assert [event["seq"] for event in events("--item", "m2")] == [7, 8]
    lines = place.run("inspect", "last", "--events", "--kind", "answered").stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["answered", "answered"]


def test_a_saved_dump_is_opened(place: Place, serve: Any) -> None:
    """By the path of its file, in each format of one moment; what is none is said in a sentence."""
    serve(Text("Hello."))
    assert place.run("chat", "hi").returncode == 0
    saved = place.run("inspect", "last", "--format", "json").stdout
    assert not re.search(r'"(since|ended|started|taken|until)": 0', saved)  # no time is in 1970
    (place.folder / "dump.json").write_text(saved)
    for form in ("tree", "json", "toml", "svg"):
        opened, live = (
            place.run("inspect", what, "--format", form) for what in ("./dump.json", "last")
        )
        assert (opened.returncode, opened.stdout) == (0, live.stdout), opened.stderr
    (place.folder / "other.json").write_text('{"turns": {}, "actors": {"session": {}}}')
    for name in ("other.json", "none.json"):
        refused = place.run("inspect", f"./{name}")
        assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
        assert "--format json`" in refused.stderr
    assert place.run("inspect", "./dump.json", "--at", "3").returncode == 2


def test_a_steer_that_waits_is_shown_as_in_the_queue(place: Place, serve, gate: Gate) -> None:
    """What enters the running turn is told from what waits for its own."""
    serve(Tools([gate.call]), Text("Done.", times=0))
    chat = place.at_work(gate, "first")
    chat.causes({"text": "use tabs", "as": "steer"}, "accepted", text="use tabs")
    chat.causes({"text": "and then this", "as": "queue"}, "accepted", text="and then this")
    told = place.run("inspect", "last").stdout
    assert "#2  [STEERING] → turn t1  use tabs" in told
    assert "#3  [PENDING]  and then this" in told
    gate.open()
