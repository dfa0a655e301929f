"""Looking inside: live, after a crash, at any moment; the same answer each time."""

import json
import tomllib
from typing import Any

from serving import Text, Tools

from steersman.cli.toml import without_nulls

from .driver import Gate, Place

DIED = ("owner", "lease", "dead_letters")


def looked(place: Place, *arguments: str) -> dict[str, Any]:
    """Return a dump."""
    ran = place.run("inspect", "last", "--format", "json", *arguments)
    assert ran.returncode == 0, ran.stderr
    data: dict[str, Any] = json.loads(ran.stdout)
    return data


def lasting(data: dict[str, Any]) -> dict[str, Any]:
    """Leave out what dies with a process: who runs it, mailboxes, restarts, process ids."""
    kept = {name: value for name, value in data.items() if name not in DIED}
    passing = ("mailbox", "restarts", "supervised")
    kept["actors"] = {
        name: {key: value for key, value in actor.items() if key not in passing}
        for name, actor in data["actors"].items()
    }
    kept["turns"] = json.loads(json.dumps(data["turns"]))
    for turn in kept["turns"].values():
        for call in turn["calls"].values():
            call.pop("pid", None)
    kept["subagents"] = {name: lasting(one) for name, one in data["subagents"].items()}
    return kept


def test_live_dead_and_past_agree(place: Place, serve, gate: Gate) -> None:
    """A living session, the same one after SIGKILL, and its last entry are one dump, field by field."""
    serve(
        Text("Hello."),
        Tools([{"tool": "delegate", "arguments": {"task": "count", "name": "kid"}}]),
        Tools([{"tool": "shell", "arguments": {"command": gate.command}}]),
    )
    chat = place.chat("--yes")
    chat.send("good morning")
    chat.wait("turn_ended")
    before = looked(place)
    chat.send("count the stars")
    pid = gate.wait()
    chat.send({"text": "later", "as": "queue"})
    chat.wait("accepted")
    live = looked(place)
    kid = live["subagents"]["kid"]
    (call,) = kid["turns"][kid["turn"]]["calls"].values()
    assert (call["state"], call["pid"]) == ("running", pid)
    assert live["owner"]["pid"] == chat.process.pid
    assert kid["actors"]["turn"]["waiting_for"] == f"call {call['id']}"
    chat.kill()

    dead = looked(place)
    assert dead["owner"] is None
    assert lasting(dead) == lasting(live)
    assert lasting(looked(place, "--at", str(live["seq"]))) == lasting(live)
    assert lasting(looked(place, "--at", "0s ago")) == lasting(live)
    assert lasting(looked(place, "--at", str(before["seq"]))) == lasting(before)
    toml = place.run("inspect", "last", "--format", "toml", "--at", str(live["seq"])).stdout
    assert lasting(tomllib.loads(toml)) == lasting(without_nulls(live))

    changed = json.loads(
        place.run(
            "inspect", "last", "--format", "json", "--diff", str(before["seq"]), str(live["seq"])
        ).stdout
    )
    paths = {one["path"]: (one.get("before"), one.get("after")) for one in changed["changes"]}
    assert paths["state"] == ("idle", "busy")
    assert paths["queue.items.m3.text"] == (None, "later")


def test_the_journal_is_listed_and_filtered(place: Place, serve) -> None:
    """Entries by kind, turn, moment and number; as lines, as data, and followed as they come."""
    serve(Text("Hello."), Text("Bye."))
    chat = place.chat()
    chat.send("one")
    chat.wait("turn_ended")
    follower = place.start("inspect", "last", "--events", "--watch", "--format", "json")
    assert follower.stdout is not None
    first = [json.loads(follower.stdout.readline()) for _ in range(6)]
    assert [one["seq"] for one in first] == [1, 2, 3, 4, 5, 6]
    chat.send("two")
    kinds = [json.loads(follower.stdout.readline())["kind"] for _ in range(5)]
    assert kinds == ["queued", "turn_started", "model_called", "answered", "turn_ended"]
    follower.kill()
    follower.communicate()

    def events(*arguments: str) -> list[dict[str, Any]]:
        ran = place.run("inspect", "last", "--events", "--format", "json", *arguments)
        assert ran.returncode == 0, ran.stderr
        found: list[dict[str, Any]] = json.loads(ran.stdout)["events"]
        return found

    assert [one["kind"] for one in events("--kind", "turn_*", "--turn", "t2")] == [
        "turn_started",
        "turn_ended",
    ]
    assert [one["seq"] for one in events("--since", "4", "--until", "6")] == [4, 5, 6]
    assert [one["seq"] for one in events("--last", "2")] == [10, 11]
    assert [one["seq"] for one in events("--item", "m2")] == [7, 8]
    lines = place.run("inspect", "last", "--events", "--kind", "answered").stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["answered", "answered"]
    assert chat.close() == 0
