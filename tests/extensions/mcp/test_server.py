"""`steersman mcp`, driven by the SDK's client and by another one."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import Implementation
from support.coroutines import run
from support.driver import WAIT, Gate, Place, wait_gone
from support.executed import executed
from support.model_server import Door, Text, shell
from support.patience import seconds

from steersman.gateway.commands.registry import DECLARED

ROOT = Path(__file__).resolve().parents[3]
SAFE = ["list_sessions", "say", "queue", "steer", "stop", "list_queue", "inspect", "why", "run"]
OPEN = ("waiting", "running", "held", "idle")
SHELL = '[permissions]\nrules = [{ tool = "shell", do = "allow" }]\n'


class Caller:
    """A client of `steersman mcp`."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool, and return its data, or its text."""
        result: Any = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content[0].text
        return result.structured_content or result.content[0].text

    async def fault(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool that fails, and return the reason."""
        result: Any = await self.client.call_tool(tool, arguments)
        assert result.is_error
        return str(result.content[0].text)


@contextlib.asynccontextmanager
async def calling(place: Place, *options: str) -> AsyncGenerator[Caller]:
    """Start `steersman mcp`, and shake hands."""
    server = StdioServerParameters(
        command=place.command[0],
        args=[*place.command[1:], "mcp", *options],
        env=place.environ,
        cwd=place.folder,
    )
    who = Implementation(name="Some\x1b[2J Client", version="1")
    async with asyncio.timeout(seconds(3 * WAIT)):
        async with Client(stdio_client(server), client_info=who) as client:
            yield Caller(client)


def test_what_is_said_is_said_under_a_name_of_its_own(place: Place, serve: Any) -> None:
    """A message is answered, queued, steered and explained; each has the client's name."""
    door = Door()
    serve(
        Text("Hello there."),
        Text("Thinking aloud.", door=door),
        Text("With the steer."),
        Text("Queued one."),
    )
    chat = place.chat()
    session = chat.session

    async def story() -> None:
        async with calling(place) as call:
            assert [tool.name for tool in (await call.client.list_tools()).tools] == SAFE
            (known,) = (await call("list_sessions"))["sessions"]
            assert (known["id"], known["state"]) == (session, "idle")
            said = await call("say", text="hi", wait=seconds(60))
            assert said["outcome"] == {"status": "completed", "turn": "t1", "text": "Hello there."}
            assert said["receipt"]["as"] == "turn"
            assert (await call("say", text="work"))["receipt"]["as"] == "turn"
            await asyncio.to_thread(chat.wait, "turn_started", turn="t2")
            later = asyncio.create_task(call("queue", text="and later", wait=seconds(60)))
            await asyncio.to_thread(chat.wait, "accepted", text="and later")
            rows = (await call("list_queue"))["items"]
            assert [(row["text"], row["user"]) for row in rows] == [
                ("work", "mcp:Some-2J-Client"),
                ("and later", "mcp:Some-2J-Client"),
            ]
            assert (await call("steer", text="shorter"))["receipt"]["as"] == "steer"
            assert "work" in await call("inspect")
            story = await call("why", message=rows[1]["id"], session=session[:6])
            assert story["message"]["user"] == "mcp:Some-2J-Client"
            door.open()
            assert (await later)["outcome"]["text"] == "Queued one."
            state = await call("inspect", form="json")
            assert (state["id"], state["state"]) == (session, "idle")

    run(story())
    notices = [event["text"] for event in chat.seen("notice")]
    assert "mcp:Some-2J-Client: hi" in notices


async def test_a_slash_has_no_meaning(place: Place, serve: Any) -> None:
    """What reads like a command is a message: it allows nothing, and answers no question."""
    server = serve(shell("touch ran"), Text("No."), rest="[auto_queue]\nmax_queue_size = 200\n")
    chat = place.chat("go")
    question = chat.wait("question")
    assert chat.ask("/busy interrupt")["ok"]
    async with calling(place) as call:
        for name in DECLARED:
            assert (await call("steer", text=f"/{name} shell *"))["receipt"]["as"] == "steer"
        for text in (f"/answer {question['id']} allow", "/permissions allow shell *", "/yes"):
            for way in ("queue", "steer"):
                assert (await call(way, text=text))["receipt"]["as"] == way
        result: Any = await call.client.call_tool("answer", {"question": question["id"]})
        assert result.is_error
        assert "there is no tool `answer`" in result.content[0].text
        asked = (await call("inspect", form="json"))["turns"]["t1"]["calls"]
        assert [row["state"] for row in asked.values()] == ["asking"]
        assert not chat.seen("answered")
        await call("say", text=f"/answer {question['id']} allow")
    assert [event["choice"] for event in chat.seen("answered")] == ["withdrawn"]
    assert not (place.folder / "ran").exists()
    server.wait_requests(2)
    assert chat.close() == 0
    assert f"/answer {question['id']} allow" in str(server.requests[1].body)


async def test_with_an_option_a_client_answers_questions(place: Place, serve: Any) -> None:
    """`--answer` offers the tool; a wait for a turn ends at its question."""
    serve(shell("touch ran"), Text("Ran."))
    chat = place.chat()
    session = chat.session
    async with calling(place, "--answer") as call:
        said = await call("say", text="go", wait=seconds(60))
        assert said["outcome"]["status"] == "asking"
        question = said["outcome"]["question"]
        assert (question["tool"], question["session"]) == ("shell", session)
        assert "no answer" in await call.fault("answer", question=question["id"], choice="yes")
        done = await call("answer", question=question["id"], choice="allow")
        assert done["text"] == f"{question['id']}: allow."
        await asyncio.to_thread(chat.wait, "turn_ended", status="completed")
        assert "is open" in await call.fault("answer", question="q-9", choice="allow")
    assert (place.folder / "ran").exists()


async def test_a_stop_ends_what_runs(place: Place, serve: Any, gate: Gate) -> None:
    """`stop` ends the turn and its processes; a cancelled wait gives up nothing but the wait."""
    command = f"{gate.command}; sleep 600"
    serve(shell(command), rest=SHELL)
    chat = place.chat()
    chat.wait("session_started")
    async with calling(place) as call:
        waiting = asyncio.create_task(call("say", text="go", wait=3000))
        pid = await asyncio.to_thread(gate.wait)
        waiting.cancel()
        await asyncio.wait((waiting,))
        assert "Stopping turn t1" in (await call("stop"))["text"]
        await asyncio.to_thread(chat.wait, "stopped")
        assert not wait_gone([pid], 0.0)
        assert "Nothing to stop" in (await call("stop"))["text"]


async def test_a_session_that_nobody_has_open_only_takes_messages(place: Place, serve: Any) -> None:
    """The message waits, says so, and nothing runs; faults are results with a reason."""
    server = serve(Text("Hello."))
    assert place.run("chat", "hi").returncode == 0
    async with calling(place) as call:
        said = await call("say", text="and the tests", wait=30)
        assert "it waits until a program opens the session" in said["note"]
        assert [row["text"] for row in (await call("list_queue"))["items"]] == ["and the tests"]
        assert "no session `nope`" in await call.fault("say", text="x", session="nope")
        assert "no message" in await call.fault("say", text=" ")
        assert "`text` is missing" in await call.fault("say")
        assert "there is no tool" in await call.fault("sing")
        assert "no message" in (await call.fault("why", message="99")).lower()
    assert len(server.requests) == 1


FLOW = """
[workflow]
name = "two"
[workflow.vars]
word = "x"
[[step]]
id = "first"
run = ["echo", "{{ vars.word }}"]
[[step]]
id = "second"
needs = ["first"]
run = ["sh", "-c", "%s"]
"""


async def test_a_workflow_runs_with_progress(place: Place, serve: Any) -> None:
    """`run` returns how it ended; its progress is reported, and its session can be inspected."""
    serve(Text("Unused."))
    (place.folder / "two.toml").write_text(FLOW % "touch done")
    (place.folder.parent / "outside.toml").write_text(FLOW % "touch done")
    reports: list[tuple[float, float | None, str | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    async with calling(place) as call:
        arguments = {"workflow": "two.toml", "variables": {"word": "y"}, "wait": seconds(60)}
        result: Any = await call.client.call_tool("run", arguments, progress_callback=report)
        ended = result.structured_content
        assert (ended["status"], len(ended["steps"])) == ("succeeded", 2)
        (known,) = (await call("list_sessions"))["sessions"]
        assert (known["id"], known["result"]) == (ended["session"], "succeeded")
        assert "two" in await call("inspect", session=ended["session"])
        assert "outside of the folder" in await call.fault("run", workflow="../outside.toml")
        assert "no workflow `nope`" in await call.fault("run", workflow="nope")
        assert "`nix`" in await call.fault("run", workflow="two.toml", variables={"nix": "1"})
    assert (place.folder / "done").exists()
    assert (2.0, 2.0, "second: done") in reports


@pytest.mark.nightly
@pytest.mark.parametrize("how", ["stop", "close", "kill"])
def test_a_run_ends_with_the_client_and_can_be_resumed(
    place: Place, serve: Any, gate: Gate, how: str
) -> None:
    """Stopped, or left by its client, or killed with the server: nothing runs on, and it is resumed."""
    serve(Text("Unused."))
    (place.folder / "two.toml").write_text(FLOW % f"{gate.command}; touch done")
    pids: list[int] = []

    async def story() -> None:
        async with calling(place) as call:
            begun = await call("run", workflow="two.toml")
            assert begun["status"] == "running"
            pids.append(await asyncio.to_thread(gate.wait))
            if how == "stop":
                await call("stop", session=begun["session"])
                while (await call("list_sessions"))["sessions"][0]["state"] in OPEN:
                    await asyncio.sleep(0)
            elif how == "kill":
                (server,) = [
                    pid for pid, line in place.processes().items() if line.endswith(" mcp")
                ]
                os.kill(server, signal.SIGKILL)

    if how == "kill":
        with contextlib.suppress(Exception):  # the client sees its server vanish
            run(story())
    else:
        run(story())
    assert not wait_gone(pids)
    assert not (place.folder / "done").exists()
    gate.open()
    again = ["--again", "all"] if how == "kill" else []
    resumed = place.run("run", "--resume", "last", *again)
    assert resumed.returncode == 0, resumed.stderr
    assert (place.folder / "done").exists()


def test_a_signal_ends_it_in_order(place: Place, serve: Any, gate: Gate) -> None:
    """SIGTERM interrupts its run and ends the process, also while its input stays open."""
    serve(Text("Unused."))
    (place.folder / "two.toml").write_text(FLOW % gate.command)
    process = place.start("mcp")
    assert process.stdin is not None
    about = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    }
    call = {"name": "run", "arguments": {"workflow": "two.toml", "wait": 3000}}
    for message in (
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    process.stdin.write("no json\n")
    process.stdin.flush()
    pid = gate.wait()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=seconds(WAIT))
    assert process.returncode == 128 + signal.SIGTERM, err
    assert not wait_gone([pid], 0.0)
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
    assert "Traceback" not in err


def test_a_client_of_other_people_is_served(place: Place, serve: Any) -> None:
    """The client of the TypeScript SDK, of an older protocol, lists the tools and calls them."""
    sdk = ROOT / ".venv" / "node_modules" / "@modelcontextprotocol" / "sdk"
    node = shutil.which("node")
    if node is None or not sdk.exists():
        pytest.skip("the TypeScript SDK is not installed here; `.ci/venv dev` tries to")
    serve(Text("Hello."))
    assert place.run("chat", "hi").returncode == 0
    calls = [["queue", {"text": "and the tests"}], ["list_queue", {}], ["say", {"text": ""}]]
    script = str(ROOT / "tests" / "support" / "typescript_client.mjs")
    ran = executed(
        [node, script, str(sdk), json.dumps(calls), *place.command, "mcp"],
        cwd=place.folder,
        env=place.environ,
    )
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert said["tools"] == SAFE
    _, listed, refused = said["results"]
    (item,) = listed["structuredContent"]["items"]
    assert (item["text"], item["user"]) == ("and the tests", "mcp:typescript")
    assert (refused["isError"], "no message" in refused["content"][0]["text"]) == (True, True)
    assert "Traceback" not in ran.stderr
