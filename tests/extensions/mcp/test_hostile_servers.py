"""MCP servers that lie, flood, hang and die: a clear message soon, nothing lost, memory bounded."""

import asyncio
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from extensions.mcp.conftest import Play, Session, odd, with_servers
from support.mcp_servers import SERVER

from steersman.extensions.mcp.foreign_schema import foreign_fault, given_of, is_within
from steersman.machines.errors import ToolError
from steersman.ports.process.ancestry import is_alive
from steersman.ports.tools.mcp_offer import McpServer


@contextmanager
def little_memory(mebibytes: int) -> Iterator[None]:
    """Fail if this process has grown by more than so much at its largest."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    assert grown < mebibytes, f"{grown} MiB"


# Calls --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ("long_line", "it sent a line of more than 1,048,576 bytes"),
        ("flood", "it sent more than 1,000 unsolicited messages in a second"),
        ("pings", "it sent more than 1,000 unsolicited messages in a second"),
    ],
)
@with_servers(odd(limit=1 << 20))
async def test_a_flood_ends_the_server_and_no_more(
    session: Session, tool: str, reason: str
) -> None:
    """The call fails at once with the reason, the server is dead, and the next call has a new one."""
    pid = session.servers.status("odd").pid
    with little_memory(64):
        result = await session.call(tool)
    assert (result.status, result.text) == (
        "failed",
        f"Error: the server `odd` ended: {reason}",
    )
    assert session.servers.status("odd").fault == reason
    assert int((await session.call("look")).text) != pid
    assert not is_alive(pid)


@with_servers(odd(limit=1 << 20))
async def test_a_result_of_50_megabytes_is_refused(session: Session) -> None:
    """Where its line is longer than the limit, the call fails and little memory was used."""
    with little_memory(64):
        result = await session.call("big", size=50_000_000)
    assert "it sent a line of more than 1,048,576 bytes" in result.text
    assert (await session.call("big", size=1_000_000)).bytes == 1_000_000


@pytest.mark.parametrize(
    ("tool", "status", "text"),
    [
        ("chatter", "ok", "after all"),
        ("no_answer", "failed", "Error: `odd`: its answer is not one of the protocol: "),
        (
            "wrong_result",
            "failed",
            "Error: the answer of the server `odd` is not one of the protocol",
        ),
        (
            "asks",
            "ok",
            "Sampling not supported; nobody can be asked here; List roots not supported",
        ),
    ],
)
@with_servers(odd())
async def test_what_is_no_message_costs_one_call_at_most(
    session: Session, tool: str, status: str, text: str
) -> None:
    """Stray lines are passed over; a wrong answer fails its own call at once; questions are refused."""
    pid = session.servers.status("odd").pid
    result = await session.call(tool)
    assert result.status == status
    assert result.text.startswith(text)
    assert (await session.call("look")).text == str(pid)


@with_servers(odd())
async def test_a_surrogate_in_arguments_is_sent_as_it_is(session: Session) -> None:
    """Half a character of a model neither fails in an unclear way nor ends the server."""
    assert (await session.call("echo", text="a\ud800b")).status in ("ok", "failed")
    assert (await session.call("echo", text="fine")).text == "fine"


# Listings -----------------------------------------------------------------------------------------


@with_servers(odd("lying"))
async def test_tools_that_lie_cost_only_themselves(session: Session) -> None:
    """Each tool that cannot be used is left out with a note; the others can be called."""
    offer = session.servers.status("odd").offer
    assert [tool.name for tool in offer.tools] == ["echo", "loop", "slow"]
    no_object = "is left out: the schema of its arguments is no object"
    too_large = "is left out: the schema of its arguments has more than 65,536 bytes or 32 levels"
    bad_name = "is left out: a name has 1 to 256 characters"
    assert offer.notes == (
        "the tool without a name is left out: it is no object",
        f"the tool `no_schema` {no_object}",
        f"the tool `list_schema` {no_object}",
        f"the tool `text_schema` {no_object}",
        f"the tool `large_schema` {too_large}",
        f"the tool `deep_schema` {too_large}",
        f"the tool without a name {bad_name}",
        f"the tool `{'n' * 64} […]` {bad_name}",
        f"the tool without a name {bad_name}",
        "the tool `echo` is listed twice; the first one counts",
    )
    assert session.tool("loop").fault({"a": 1}) == ""
    slow = session.tool("slow")
    assert slow.fault({"a": "a" * 40 + "b"}) == ""  # the pattern takes for ever
    assert slow.is_mutating
    assert slow.schema.description == ""
    pattern = {"type": "string", "pattern": "^(a+)+$"}
    assert slow.schema.parameters == {"type": "object", "properties": {"a": pattern}}


@with_servers(odd("names"))
async def test_names_and_descriptions_show_every_character(session: Session) -> None:
    """Nothing of them acts on a terminal, is hidden, or is endless; each tool has its own name."""
    schemas = [tool.schema for tool in session.servers.tools()]
    assert len({schema.name for schema in schemas}) == 8
    for schema in schemas:
        assert schema.name.isascii()
        assert schema.description.startswith(
            r"Good.\x1b]0;title\x07 \u202eevil\u202c" + "\n" + r"Next \U000e0041line. zzz"
        )
        assert len(schema.description) < 9000
        result = await session.call(schema.name)
        assert result.status == "failed"
        assert result.text.startswith("Error: `odd`: no tool ")
        assert all(sign.isprintable() for sign in result.text)


@pytest.mark.parametrize(("mode", "number"), [("many", 1000), ("endless", 100)])
def test_a_listing_is_bounded(play: Play, mode: str, number: int) -> None:
    """Of too many tools, or pages without an end, the first ones are listed, and a note says so."""

    async def scenario(session: Session) -> None:
        offer = session.servers.status("odd").offer
        assert len(session.servers.tools()) == len(offer.tools) == number
        assert offer.notes == (f"of its tools only the first {number:,} are listed",)

    play(scenario, odd(mode))


@with_servers(odd("lying_resources"))
async def test_resources_that_lie_do_not_cost_the_tools(session: Session) -> None:
    """Resources that cannot be read are noted."""
    (note,) = session.servers.status("odd").offer.notes
    assert note.startswith("resources or prompts cannot be listed: the answer of the server `odd`")
    assert (await session.call("look")).status == "ok"


@with_servers(odd("once"))
async def test_a_server_that_starts_only_once_fails_clearly(session: Session) -> None:
    """A restart that fails gives its own reason, and the tools stay known."""
    await session.call("dies")
    result = await session.call("look")
    assert result.text == (
        "Error: the server `odd` could not be used: "
        "it ended with exit code 7; its last error output is: no configuration"
    )
    assert session.servers.tools()


# Schemas ------------------------------------------------------------------------------------------


def of(**schema: Any) -> dict[str, Any]:
    """Write the schema of one argument `a`."""
    return {"type": "object", "properties": {"a": schema}}


@pytest.mark.parametrize(
    ("schema", "value", "fault"),
    [
        (of(type="string"), "x", ""),
        (of(type="integer"), 2.0, ""),
        (of(type="integer"), 2.5, "`a` must be a whole number"),
        (of(type="integer"), True, "`a` must be a whole number"),
        (of(type=["string", "null"]), None, ""),
        (of(type=["string", "null"]), 1, "`a` must be a text or null"),
        (of(type="hologram"), 1, ""),
        (of(enum=["x", 1]), True, '`a` must be one of ["x", 1]'),
        (of(const={"b": [1]}), {"b": [1]}, ""),
        (of(const=1), 2, "`a` must be 1"),
        (of(minimum=3), 2, "`a` must be at least 3"),
        (of(exclusiveMaximum=3), 3, "`a` must be less than 3"),
        (of(minimum="three"), 2, ""),
        (of(maxLength=2), "abc", "`a` must have at most 2 characters"),
        (of(minItems=1), [], "`a` must have at least 1 entries"),
        (of(items={"type": "string"}), ["x", 1], "`a[1]` must be a text"),
        (of(**of(type="string")), {"a": 1}, "`a.a` must be a text"),
        (of(required=["b"]), {}, "`a.b` is missing"),
        (of(additionalProperties={"type": "string"}), {"b": 1}, "`a.b` must be a text"),
        (of(anyOf=[{"type": "string"}, {"type": "null"}]), 1, "`a` must be a text"),
        (of(anyOf=[{"type": "string"}, {"type": "null"}]), None, ""),
        (of(allOf=[{"minimum": 1}, {"maximum": 2}]), 3, "`a` must be at most 2"),
        (of(allOf="all"), 3, ""),
        (
            {**of(**{"$ref": "#/$defs/b"}), "$defs": {"b": {"type": "string"}}},
            1,
            "`a` must be a text",
        ),
        (of(**{"$ref": "https://example.invalid/x.json"}), 1, ""),
        (of(**{"$ref": "#/nowhere/else"}), 1, ""),
        (of(**{"$ref": "#"}), {"a": {"a": {}}}, ""),
        ({"properties": {"a": False}}, 1, "`a` must not be given"),
        ({"properties": [], "required": 1, "type": 7}, 1, ""),
        (
            {"properties": {"path": {}}, "additionalProperties": False},
            1,
            "`a` is not an argument of this tool; known are `path`",
        ),
        (
            {"properties": {"aa": {}}, "additionalProperties": False},
            1,
            "`a` is not an argument of this tool; did you mean `aa`?",
        ),
        ({"additionalProperties": False}, 1, "`a` is not an argument of this tool, which has none"),
    ],
)
def test_a_foreign_schema_is_checked_as_far_as_it_is_known(
    schema: dict[str, Any], value: Any, fault: str
) -> None:
    """A fault is named by its path; what is unknown or makes no sense is left to the server."""
    assert foreign_fault(schema, {"a": value}) == fault


@pytest.mark.parametrize(
    ("schema", "is_kept"),
    [
        ({"type": "boolean"}, False),
        ({"type": ["string", "null"]}, True),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        ({"enum": ["a"]}, False),
        ({"$ref": "#/nowhere"}, True),
        ({}, True),
        (3, True),
    ],
)
def test_what_is_null_and_must_not_be_is_not_given(schema: Any, *, is_kept: bool) -> None:
    """As models write what they leave out; a server gets null only where it may."""
    given = given_of({"properties": {"a": schema}}, {"a": None, "b": 1})
    assert given == ({"a": None, "b": 1} if is_kept else {"b": 1})


def deep(levels: int) -> Any:
    """Nest lists."""
    data: Any = []
    for _ in range(levels):
        data = [data]
    return data


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({**of(**{"$ref": "#/$defs/a"}), "$defs": {"a": {"$ref": "#/$defs/a"}}}, 1),
        ({"anyOf": [{"$ref": "#"}] * 50}, 1),
        ({"allOf": [{"$ref": "#"}] * 50}, 1),
        (of(items={"$ref": "#/properties/a"}), deep(400)),
        (of(items={"anyOf": [{"type": "string"}] * 100}), list(range(100_000))),
        ({"properties": {"x" * 50_000: {}}, "additionalProperties": False}, 1),
    ],
    ids=["loop", "alternatives", "combinations", "depth", "long list", "long name"],
)
@pytest.mark.timeout(20)
def test_a_check_of_a_foreign_schema_ends(schema: dict[str, Any], value: Any) -> None:
    """Loops and combinations, which could take for ever, are given up early."""
    foreign_fault(schema, {"a": value, "x" * 50_000: 1})


@pytest.mark.parametrize(
    ("data", "is_small"),
    [([1], True), ("x" * 99, False), (deep(9), True), (deep(11), False), (deep(10_000), False)],
)
def test_size_and_depth_of_data_are_measured(data: Any, is_small: bool) -> None:
    """Both are bounds, and data too deep to be written is not within them."""
    assert is_within(data, size=90, depth=10) == is_small


# On the web ---------------------------------------------------------------------------------------


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Callable[..., tuple[McpServer, "subprocess.Popen[str]"]]]:
    """Start servers by Streamable HTTP on loopback; each comes with its process."""
    started: list[subprocess.Popen[str]] = []

    def start(*modes: str, **settings: Any) -> tuple[McpServer, "subprocess.Popen[str]"]:
        command = [sys.executable, "-I", "-S", str(SERVER), "http", *modes]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        return odd(command=(), url=url, **settings), process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_a_server_on_the_web_is_called(play: Play, web: Any) -> None:
    """Its tools are listed and called with the headers that are configured; it has no process here."""
    config, process = web("locked", headers={"authorization": "Bearer k"})

    async def scenario(session: Session) -> None:
        status = session.servers.status("odd")
        assert (status.state, status.protocol, status.pid) == ("ready", "2025-06-18", 0)
        assert (await session.call("echo", text="hi")).text == "hi"
        assert (await session.call("look")).text == str(process.pid)

    play(scenario, config)


def test_a_server_that_does_not_know_us_says_so(play: Play, web: Any) -> None:
    """Without the header the connection fails with a message."""
    config, _ = web("locked")

    async def scenario(session: Session) -> None:
        with pytest.raises(ToolError, match="could not be used: Server returned an error response"):
            await session.servers.connect("odd")

    play(scenario, config, is_connected=False)


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ("big", "the answer has more than 1,048,576 bytes"),
        ("squeezed", "the answer is compressed, which was not asked for"),
        ("broken", "Failed to parse JSON response"),
        ("busy", "Server returned an error response"),
    ],
)
def test_a_wrong_answer_from_the_web_fails_the_call(
    play: Play, web: Any, tool: str, reason: str
) -> None:
    """The call fails with the reason, in little memory, and the next one succeeds."""
    config, _ = web(limit=1 << 20)

    async def scenario(session: Session) -> None:
        with little_memory(64):
            result = await session.call(tool, size=50_000_000)
        assert result.status == "failed"
        assert reason in result.text
        assert (await session.call("echo", text="hi")).text == "hi"

    play(scenario, config)


def test_a_server_on_the_web_that_vanishes_fails_its_calls(play: Play, web: Any) -> None:
    """The call in progress and the next ones fail with a reason, soon, and the session goes on."""
    config, _ = web()

    async def scenario(session: Session) -> None:
        for tool in ("vanish", "look", "look"):
            result = await session.call(tool)
            assert result.status == "failed"
            assert result.text.startswith("Error: the server `odd` ")

    play(scenario, config)


def test_a_stopped_call_of_the_web_is_given_up(play: Play, web: Any) -> None:
    """What continues there is not known, and said so; other calls go on."""
    config, process = web()

    async def scenario(session: Session) -> None:
        run = session.start("hangs")
        assert await asyncio.to_thread(process.stdout.readline) == "hangs\n"
        run.stop()
        result = await run.wait()
        assert result.status == "killed"
        assert "was asked to end the call; whether it has is not known" in result.text
        assert (await session.call("echo", text="hi")).text == "hi"

    play(scenario, config)
