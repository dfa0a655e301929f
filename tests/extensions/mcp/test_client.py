"""Tools of MCP servers: names, calls, stops, restarts, changes; with our server and with real ones."""

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from extensions.mcp.conftest import LONG, Play, Session, odd, program, with_servers
from support.mcp_servers import PIXEL
from support.patience import seconds

from steersman.machines import protocol as m
from steersman.ports.process.ancestry import is_alive
from steersman.ports.tools.mcp_offer import McpRestart, tool_names

# Names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tool", ["a b", "a.b", "a" * 100, "ü", "", "\x1b[2J", "../../etc", "a\u202eb", "\ud800"]
)
def test_any_name_becomes_one_that_apis_accept(tool: str) -> None:
    """At most 64 of the characters that the APIs of models know, whatever the server says."""
    for server in ("files", "my server", "s" * 80, "_x_", "a__b", "…"):
        name = tool_names(server, [tool])[tool]
        assert len(name) <= 64
        assert all(sign.isascii() and (sign.isalnum() or sign in "_-") for sign in name)
        assert name.startswith("mcp__")


def test_names_that_collide_are_told_apart_whatever_their_order() -> None:
    """Each tool has a name of its own, the same in every order, also where one imitates a digest."""
    first = tool_names("s", ["a b"])["a b"].removeprefix("mcp__s__")
    tools = ["a b", "a.b", "a_b", first, "x" * 80, "x" * 81]
    names = tool_names("s", tools)
    assert len(set(names.values())) == len(tools)
    assert names["a_b"] == "mcp__s__a_b"
    assert names[first] == f"mcp__s__{first}"
    assert names == tool_names("s", reversed(tools))


def test_tools_of_two_servers_never_have_the_same_name() -> None:
    """Where the server's name ends and the tool's begins cannot be moved."""
    pairs = [("a", "b__c"), ("a__b", "c"), ("a_", "_c"), ("a", "__c"), ("a b", "c"), ("a_b", "c")]
    assert len({tool_names(server, [tool])[tool] for server, tool in pairs}) == len(pairs)


# Calls --------------------------------------------------------------------------------------------


@with_servers(odd())
async def test_a_tool_is_listed_and_called(session: Session, bench: Any) -> None:
    """A server's tool has its name, description and schema, and a call its result."""
    status = session.servers.status("odd")
    assert (status.state, status.program, status.protocol) == ("ready", "odd 1", "2025-06-18")
    assert (status.instructions, status.fault) == ("Be careful.", "")
    assert is_alive(status.pid)
    tool = session.tool("echo")
    assert tool.schema.description == "Say the text again."
    assert tool.schema.parameters == {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }
    assert await session.call("echo", text="héllo") == m.ToolResult(
        status="ok", text="héllo", bytes=6
    )
    assert session.changes == ["odd", "odd"]


@with_servers(odd())
async def test_what_a_server_hints_is_no_authority(session: Session) -> None:
    """`readOnlyHint` decides only whether a call runs alone; no call may be repeated after a crash."""
    assert (session.tool("look").is_mutating, session.tool("echo").is_mutating) == (False, True)
    assert not any(tool.is_idempotent for tool in session.servers.tools())


@with_servers(odd())
async def test_arguments_are_checked_before_the_call(session: Session) -> None:
    """A fault is one sentence, and the server is not asked."""
    assert session.tool("echo").fault({}) == "`text` is missing"
    assert session.tool("echo").fault({"text": 1}) == "`text` must be a text"
    result = await session.call("echo", text=1)
    assert (result.status, result.text) == ("failed", "Error: `text` must be a text")


@with_servers(odd())
async def test_every_kind_of_content_becomes_text(session: Session) -> None:
    """Text is joined, a picture comes along; what is neither is described, with its size."""
    rich = await session.call("rich")
    assert [(picture.media_type, picture.data) for picture in rich.pictures] == [
        ("image/png", PIXEL)
    ]
    assert rich.text.split("\n") == [
        "one",
        "[an image, image/png, 3 bytes: not shown]",
        "[a picture, image/png, 70 bytes]",
        "[a sound, audio/wav, 6 bytes: not shown]",
        "[the resource `two` at demo://2: a\\x1b[31mb]",
        "[the resource demo://1]",
        "inside",
        "[the resource demo://1, 3 bytes of binary data: not shown]",
    ]
    assert json.loads((await session.call("structured")).text) == {"one": [1, 2]}
    wrong = await session.call("wrong")
    assert (wrong.status, wrong.text) == ("failed", "that is wrong")


@with_servers(odd())
async def test_a_long_result_is_cut_and_kept_in_a_file(session: Session) -> None:
    """The model gets head and tail and the name of the file with all of it."""
    result = await session.call("big", size=100_000)
    assert result.bytes == 100_000
    assert Path(result.spilled).read_text() == "x" * 100_000
    assert len(result.text) < 4200
    missing = 100_000 - 2 * (2000 // 3)
    assert f"[… {missing} bytes left out; whole output in {result.spilled}" in result.text


@with_servers(odd())
async def test_progress_is_shown_as_output(session: Session, bench: Any) -> None:
    """Each report of progress is a line of the call's output, with nothing that acts on a terminal."""
    assert (await session.call("steps")).text == "done"
    assert bench.pieces == [f"{done} of 3 step\\x1b {done}\n" for done in (1, 2, 3)]


def test_a_server_has_its_folder_and_its_environment(
    play: Play, bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs in the folder, with the environment of tools and its own variables, and no other ones."""
    monkeypatch.setenv("MY_TOKEN", "secret")

    async def scenario(session: Session) -> None:
        known = json.loads((await session.call("environment")).text)
        assert known["folder"] == str(bench.folder)
        assert known["environment"]["OWN"] == "1"
        assert known["environment"]["HOME"] == os.environ["HOME"]
        assert "MY_TOKEN" not in known["environment"]

    play(scenario, odd(env={"OWN": "1"}), limit=100_000)


@with_servers(odd())
async def test_calls_of_one_server_run_at_the_same_time(session: Session) -> None:
    """A call that waits does not keep another one, and each gets its own answer."""
    waiting = session.start("waits")
    answers = await asyncio.gather(*(session.call("echo", text=f"{n}") for n in range(20)))
    assert [answer.text for answer in answers] == [f"{n}" for n in range(20)]
    waiting.stop()
    await waiting.wait()


@with_servers(odd("everything"))
async def test_resources_and_prompts_are_listed(session: Session) -> None:
    """What a server offers beside tools is known, with names that show every character."""
    offer = session.servers.status("odd").offer
    assert [(each.uri, each.name, each.is_template) for each in offer.resources] == [
        ("demo://1", "on\\u202ee", False),
        ("demo://{n}", "n", True),
    ]
    (prompt,) = offer.prompts
    assert (prompt.name, prompt.arguments) == ("on\\u202ee", (("which", True),))


def pids_of(session: Session) -> list[int]:
    """Find the processes that run our server's script in the folder of the test."""
    found: list[int] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            is_ours = Path(f"/proc/{name}/cwd").resolve() == session.bench.folder
            if is_ours and b"mcp_servers.py" in Path(f"/proc/{name}/cmdline").read_bytes():
                found.append(int(name))
        except OSError:
            continue  # it has ended
    return found


# Stops --------------------------------------------------------------------------------------------


@with_servers(odd(), grace=seconds(LONG))
async def test_a_stop_is_answered_by_the_server_which_goes_on(session: Session) -> None:
    """A server that answers a cancelled call continues, and the call is reported as interrupted."""
    pid = session.servers.status("odd").pid
    run = await session.begun("waits")
    assert run.pid == pid
    run.stop()
    text = "[interrupted: the server `odd` has ended the call]"
    assert await run.wait() == m.ToolResult(status="killed", text=text)
    assert (await session.call("look")).text == str(pid)


@pytest.mark.parametrize("turns", range(12))
@with_servers(odd(), grace=seconds(LONG))
async def test_a_stop_at_once_ends_the_call_and_not_the_server(
    session: Session, turns: int
) -> None:
    """What was not sent yet is not sent, and what was just sent is answered: none waits for `grace`."""
    pid = session.servers.status("odd").pid
    run = session.start("waits")
    for _ in range(turns):
        await asyncio.sleep(0)
    run.stop()
    assert (await run.wait()).status == "killed"
    assert (await session.call("look")).text == str(pid)


@with_servers(odd(), grace=seconds(LONG))
async def test_a_result_that_comes_first_counts(session: Session) -> None:
    """The real result of a call that was being cancelled is not lost."""
    run = await session.begun("finishes")
    run.stop()
    assert await run.wait() == m.ToolResult(status="ok", text="finished first", bytes=14)


@with_servers(odd(timeout=0.5))
async def test_a_call_that_takes_too_long_is_cut_off(session: Session) -> None:
    """It is reported as timed out, and the server that goes on with it is ended."""
    pid = session.servers.status("odd").pid
    result = await session.call("deaf")
    assert result.status == "timed_out"
    assert result.text.startswith("[timed out after 0.5 s: the server `odd` did not end the call")
    assert not is_alive(pid)


def test_a_call_is_stopped_while_its_server_starts(play: Play, bench: Any) -> None:
    """What was being started is dead when the stop is reported; a later call starts it again."""
    os.mkfifo(bench.folder / "go")

    def open_the_way() -> threading.Thread:
        thread = threading.Thread(target=(bench.folder / "go").write_bytes, args=[b""])
        thread.start()
        return thread

    async def scenario(session: Session) -> None:
        opener = open_the_way()
        await session.servers.connect("odd")
        opener.join()
        await session.call("dies")
        run = session.start("look")
        while not (starting := pids_of(session)):
            await asyncio.sleep(0)
        assert session.servers.status("odd").state == "starting"
        run.stop()
        result = await run.wait()
        assert result.status == "killed"
        assert result.text == "[interrupted: the server `odd` was not ready yet]"
        assert not any(map(is_alive, starting))
        opener = open_the_way()
        assert (await session.call("echo", text="there")).text == "there"
        opener.join()

    play(scenario, odd("slow"), is_connected=False)


@with_servers(odd(), odd("stubborn", name="stubborn"))
async def test_closing_lets_a_server_exit_and_ends_one_that_does_not(session: Session) -> None:
    """After `aclose` no server runs; afterwards none is started."""
    pids = [session.servers.status(name).pid for name in ("odd", "stubborn")]
    await session.servers.aclose()
    assert not any(map(is_alive, pids))
    result = await session.call("look")
    assert (result.status, result.text) == ("failed", "Error: the server `odd` was closed")


# Ends and restarts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "end"),
    [
        (
            "dies",
            "it ended with exit code 3; its last error output is: "
            "first line no more \\x1b[31mmemory",
        ),
        ("killed", "it was ended by signal 9"),
    ],
)
@with_servers(odd())
async def test_a_server_that_dies_in_a_call_is_started_again(
    session: Session, tool: str, end: str
) -> None:
    """The call fails with the reason, the next one starts the server, and nothing else is lost."""
    pid = session.servers.status("odd").pid
    waiting = await session.begun("waits")
    result = await session.call(tool)
    assert (result.status, result.text) == ("failed", f"Error: the server `odd` ended: {end}")
    other = await waiting.wait()
    assert (other.status, other.text) == (result.status, result.text)
    status = await session.until(lambda status: status.state == "ended")
    assert status.fault == end
    assert len(session.servers.tools()) == len(status.offer.tools) > 10
    assert int((await session.call("look")).text) not in (pid, 0)


@with_servers(odd(restart=McpRestart(backoff=0.4)))
async def test_a_restart_waits_longer_each_time(session: Session) -> None:
    """Between an end and the next start there are the seconds of the rule, twice as many each time."""
    loop = asyncio.get_running_loop()
    for least in (0.4, 0.8):
        await session.call("dies")
        since = loop.time()
        await session.call("look")
        assert loop.time() - since > least * 0.9


@with_servers(odd(restart=McpRestart(most=0)))
async def test_an_end_that_we_made_is_no_failure(session: Session) -> None:
    """A server that is ended for a cut-off call may be started again each time."""
    for _ in range(3):
        run = session.start("deaf")
        while session.servers.status("odd").state != "ready":
            await asyncio.sleep(0)
        run.stop()
        await run.wait()
    assert (await session.call("look")).status == "ok"


# Changes ------------------------------------------------------------------------------------------


@with_servers(odd())
async def test_tools_that_change_are_listed_again(session: Session) -> None:
    """A new tool can be called, one that is gone says so, changed arguments are checked and noted."""
    before = {tool.schema.name: tool for tool in session.servers.tools()}
    await session.call("changes")
    gone = await before["mcp__odd__look"].start({}, session.bench.context()).wait()
    assert session.tool("fresh").is_mutating
    assert gone.text == "Error: the server `odd` no longer has the tool `look`"
    fault = before["mcp__odd__echo"].fault({"text": "a"})
    assert fault == (
        "`text` must be a whole number; the server has changed the arguments of this tool"
    )
    assert session.tool("echo").fault({"text": "a"}) == "`text` must be a whole number"
    assert session.tool("wrong") is before["mcp__odd__wrong"]  # it has not changed


@with_servers(odd())
async def test_a_restless_server_is_not_asked_each_time(session: Session) -> None:
    """A thousand notices of a change, in ten calls, are a listing a second and no more."""
    loop = asyncio.get_running_loop()
    since = loop.time()
    for _ in range(10):
        await session.call("restless")
    listings = int((await session.call("listings")).text)
    assert 2 <= listings <= 3 + loop.time() - since


# Starts and versions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "version"),
    [("strict", "2025-06-18"), ("oldest", "2024-11-05"), ("slow", "2025-06-18")],
)
def test_older_and_slow_servers_work(play: Play, bench: Any, mode: str, version: str) -> None:
    """A server may end at the newest question, speak the first version, or take its time."""
    os.mkfifo(bench.folder / "go")
    opener = threading.Thread(target=(bench.folder / "go").write_bytes, args=[b""], daemon=True)
    opener.start()

    async def scenario(session: Session) -> None:
        assert session.servers.status("odd").protocol == version
        assert (await session.call("echo", text="yes")).text == "yes"
        assert "exit code" in (await session.call("dies")).text
        if mode != "slow":
            assert (await session.call("echo", text="again")).text == "again"

    play(scenario, odd(mode))


# Real servers -------------------------------------------------------------------------------------


def test_the_everything_server(play: Play, bench: Any) -> None:
    """The server that has all of the protocol, from npm: progress, pictures, a cancel."""

    async def scenario(session: Session) -> None:
        status = session.servers.status("odd")
        assert status.offer.resources
        assert status.offer.prompts
        assert (await session.call("echo", message="hi")).text == "Echo: hi"
        assert "[a picture, image/png, " in (await session.call("get-tiny-image")).text
        await session.call("trigger-long-running-operation", duration=0.2, steps=2)
        assert bench.pieces == ["1 of 2\n", "2 of 2\n"]
        run = session.start("trigger-long-running-operation", duration=60, steps=600)
        while len(bench.pieces) < 3:
            await asyncio.sleep(0)
        run.stop()
        assert (await run.wait()).status == "killed"
        assert (await session.call("echo", message="again")).text == "Echo: again"

    play(scenario, odd(command=(program("mcp-server-everything"), "stdio")))


def test_a_python_server_of_the_newest_protocol(play: Play) -> None:
    """The server of times, which is built on the SDK, speaks the version of 2026."""

    async def scenario(session: Session) -> None:
        assert session.servers.status("odd").protocol == "2026-07-28"
        assert (
            "Europe/Berlin"
            in (await session.call("get_current_time", timezone="Europe/Berlin")).text
        )

    play(scenario, odd(command=(program("mcp-server-time"),)))
