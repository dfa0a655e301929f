"""Workflows as people run them: to the end, interrupted, killed, gone on with, taken back."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from support.driver import WAIT, Chat, Gate, Place, wait_gone
from support.model_server import ModelServer, Text, Tools
from support.patience import seconds

FILES = 500
CODEMOD = """
[workflow]
name = "codemod"
[[step]]
id = "find"
run = ["sh", "-c", "ls *.txt | sort"]
output = "lines"
[[step]]
id = "rewrite"
needs = ["find"]
for_each = "steps.find.output"
parallel = 4
run = ["sh", "-c", 'sed s/old/new/ "$0" > "$0.part" && echo "$0" >> ../effects && mv "$0.part" "$0"', \
"{{ item }}"]
[[step]]
id = "count"
needs = ["rewrite"]
run = ["sh", "-c", "cat *.txt | grep -c new"]
"""


def contents(folder: Path) -> dict[str, bytes]:
    """Read every file of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def ended(chat: Chat) -> dict[str, Any]:
    """Wait for the end of a run."""
    return chat.wait("run_ended", session=chat.session)


def test_a_codemod_that_reverted_itself_does_its_work_anew(place: Place) -> None:
    """Its test fails, the files come back; when the cause is repaired, the hint is right."""
    (place.folder / "a.txt").write_text("old\n")
    test = ("--var", "test=grep -q new a.txt && test -e ../repaired")
    wanted = ("--var", "search=old", "--var", "rewrite=sed -i s/old/new/ $FILE", *test)
    failed = place.run("run", "codemod", *wanted)
    assert (failed.returncode, (place.folder / "a.txt").read_text()) == (1, "old\n")
    hint = re.search(r"`steersman (run --resume \S+)` repeats the failed work", failed.stdout)
    assert hint, failed.stdout
    (place.folder.parent / "repaired").touch()
    again = place.run(*hint[1].split())
    assert (again.returncode, (place.folder / "a.txt").read_text()) == (0, "new\n"), again.stderr


def test_a_codemod_goes_on_at_the_item_and_comes_back_whole(place: Place) -> None:
    """Interrupted at one item and killed at another: each file once, and a revert gives all back."""
    (place.folder / "codemod.toml").write_text(CODEMOD)
    for number in range(FILES):
        (place.folder / f"f{number:03}.txt").write_text(f"old {number}\n")
    before = contents(place.folder)

    first = place.job("codemod.toml")
    first.wait("step", step="rewrite", done=lambda done: done is not None and done >= 137)
    assert first.signal(signal.SIGINT) == 130
    stopped = ended(first)
    assert stopped["status"] == "interrupted"
    done = stopped["steps"][1]["done"]
    assert 137 <= done < FILES

    other = place.run("run", "other.toml", "--resume", "last")
    assert (other.returncode, "not of `other.toml`" in other.stderr) == (2, True)
    second = place.job("codemod.toml", "--resume", "last")
    second.wait("step", step="rewrite", done=lambda count: count is not None and count >= done + 90)
    second.kill()
    assert not wait_gone(place.processes(), 2.0)

    refused = place.run("run", "--resume", "last", "--json")
    options: list[str] = []
    for name, work in re.findall(r"(\S+) \((rewrite:\d+)\)", refused.stderr):
        is_done = place.folder.joinpath(name).read_text().startswith("new")
        options += ["--done" if is_done else "--again", work]
    assert refused.returncode == (1 if options else 0)
    third = place.job("--resume", "last", *options)
    assert ended(third)["status"] == "succeeded"
    assert third.close() == 0

    effects = (place.folder.parent / "effects").read_text().split()
    told = {name for name in effects if effects.count(name) > 1}
    assert len(set(effects)) == FILES
    assert len(told) <= len(options) // 2
    assert all(
        data.startswith(b"new") for name, data in contents(place.folder).items() if "txt" in name
    )
    reverted = place.run("sessions", "revert", "last")
    assert f"Reverted {FILES} files" in reverted.stdout, reverted.stdout + reverted.stderr
    after = {
        name: data for name, data in contents(place.folder).items() if not name.endswith("part")
    }
    assert after == before


AGENTS = """
[workflow]
name = "talk"
[[step]]
id = "migrate"
prompt = "migrate the parser"
[[step]]
id = "test"
needs = ["migrate"]
prompt = "test the parser"
"""
THROUGH = """
[[route]]
name = "talk-through"
message = "converse"
when = { session = "delegating" }
deliver = [{ to = "children.active", as = "steer" }]
ack = "steered_child"
"""


WAITS = 'busy_input_mode = "interrupt"'
"""A message interrupts, and so waits while an agent of the run works."""


def two_agents(place: Place, serve: Any, gate: Gate, route: str) -> ModelServer:
    """Write a workflow of two agents, of whom the first waits at the gate; serve their model."""
    (place.folder / "talk.toml").write_text(AGENTS + route)
    return serve(
        Tools([gate.call], match="migrate the parser"),
        Text("migrated", match="migrate the parser"),
        Text("tested", match="test the parser"),
        Text("noted"),
        top=WAITS,
    )


@pytest.mark.nightly
@pytest.mark.parametrize("is_overridden", [False, True])
def test_what_is_typed_reaches_the_right_agent(
    place: Place, serve: Any, gate: Gate, is_overridden: bool
) -> None:
    """A message waits for the next agent; a route of the file hands it to the one at work."""
    server = two_agents(place, serve, gate, THROUGH if is_overridden else "")
    chat = place.job("talk.toml", "--yes")
    gate.wait()
    chat.send("prefer the streaming parser")
    taken = chat.wait("accepted", text="prefer the streaming parser")
    assert taken["as"] == ("steer" if is_overridden else "queue")
    assert taken["rule"] == ("talk-through" if is_overridden else "subagent-working")
    gate.open()
    assert ended(chat)["status"] == "succeeded"
    said = [
        text
        for text in map(json.dumps, (request.body for request in server.requests))
        if "prefer" in text
    ]
    assert said
    assert all(("migrate the parser" in one) == is_overridden for one in said)
    assert chat.close() == 0


MANY = """
[workflow]
name = "many"
[[step]]
id = "each"
for_each = ["one", "two", "three"]
parallel = 3
prompt = "look at {{ item }}"
"""


def test_a_run_has_no_more_agents_at_work_than_any_session(place: Place, serve: Any) -> None:
    """An item begins when there is room for its session: none is opened that has to wait."""
    (place.folder / "many.toml").write_text(MANY)
    serve(Text("seen"), Text("seen"), Text("seen"), rest="[delegation]\nmax_children = 1\n")
    ran = place.run("run", "many.toml", "--json")
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    begun = [event["waiting"] for event in events if event["type"] == "child_started"]
    assert (ran.returncode, begun) == (0, [False] * 3), ran.stdout + ran.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("is_overridden", [False, True])
def test_what_is_typed_into_the_terminal_reaches_the_right_agent(
    place: Place, at_keyboard, serve: Any, gate: Gate, is_overridden: bool
) -> None:
    """The line below the bars follows the same table, and says what became of what was typed."""
    server = two_agents(place, serve, gate, THROUGH if is_overridden else "")
    terminal = at_keyboard("run", "talk.toml", "--yes")
    gate.wait()
    terminal.type("prefer the streaming parser\r")
    terminal.wait("Steering migrate" if is_overridden else "your message is queued")
    gate.open()
    terminal.wait("succeeded")
    assert terminal.process.wait(seconds(WAIT)) == 0
    bodies = [json.dumps(request.body) for request in server.requests]
    said = [body for body in bodies if "prefer the streaming parser" in body]
    assert said
    assert all(("migrate the parser" in one) == is_overridden for one in said)


@pytest.mark.nightly
def test_what_waits_for_the_next_agent_outlives_a_stop(
    place: Place, serve: Any, gate: Gate
) -> None:
    """It is handed to the agent that begins next, also when that is after the run was taken up again."""
    server = serve(
        Tools([gate.call], match="migrate the parser"),
        Text("migrated", match="Go on from there"),
        Text("tested", match="test the parser"),
        Text("noted"),
        top=WAITS,
    )
    (place.folder / "talk.toml").write_text(AGENTS)
    chat = place.job("talk.toml", "--yes")
    gate.wait()
    chat.causes("prefer the streaming parser", "accepted", text="prefer the streaming parser")
    assert chat.signal(signal.SIGINT) == 130
    gate.open()
    again = place.job("--resume", "last", "--yes")
    assert ended(again)["status"] == "succeeded"
    assert again.close() == 0
    [prompt] = [request.prompt for request in server.requests if "prefer the" in request.prompt]
    assert prompt.startswith("test the parser")
