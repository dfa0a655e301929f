"""The MCP servers that an editor passes to a session: used, asked about, and ended with it."""

import asyncio
import sys
from typing import Any

import pytest
from acp.schema import EnvVariable, HttpMcpServer, McpServerStdio, SseMcpServer
from blackbox.conftest import Serve
from extensions.acp.editor import editing
from extensions.mcp.test_sessions import offered, server_pids
from support.driver import Place, wait_gone
from support.mcp_servers import SERVER
from support.model_server import Text, Tools
from support.notes_server import NOTES


def stdio(name: str, *arguments: str) -> McpServerStdio:
    """Write a server as an editor passes it."""
    env = [EnvVariable(name="FROM_EDITOR", value="yes")]
    return McpServerStdio(name=name, command=sys.executable, args=list(arguments), env=env)


async def ready(editor: Any, session: str) -> None:
    """Wait until no server of a session is starting any more: on a busy machine it begins without."""
    is_starting = True
    while is_starting:
        before = len(editor.text(session))
        await editor.say(session, "/mcp")
        is_starting = ": starting" in editor.text(session)[before:]


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["new", "load", "resume"])
def test_an_editors_servers_are_used_and_asked_about(place: Place, serve: Serve, way: str) -> None:
    """The model calls a tool of such a server, after a question; it ends with the editor."""
    look_up = {"tool": "mcp__notes__look_up", "arguments": {"name": "a"}}
    server = serve(Text("Hello."), Tools([look_up]), Text("Milk."))
    begun = place.run("chat", "--json", "hello")
    assert begun.returncode == 0
    given: list[Any] = [stdio("notes", str(NOTES))]

    async def story() -> None:
        async with editing(place) as editor:
            assert editor.about.agent_capabilities.mcp_capabilities.http
            where = {"cwd": str(place.folder), "mcp_servers": given}
            if way == "new":
                session = (await editor.agent.new_session(**where)).session_id
            else:
                (known,) = (await editor.agent.list_sessions(cwd=str(place.folder))).sessions
                session = known.session_id
                open_it = (
                    editor.agent.load_session if way == "load" else editor.agent.resume_session
                )
                await open_it(session_id=session, **where)
            await ready(editor, session)
            answer = await editor.say(session, "look it up")
            assert answer.stop_reason == "end_turn"
            _, asked, _ = editor.asked[0]
            assert "mcp__notes__look_up" in str(asked.title)

            def reviews() -> list[Any]:
                told = editor.of("available_commands_update", session)
                known = told[-1].available_commands if told else []
                return [command for command in known if command.name == "notes:review"]

            await editor.until(lambda: bool(reviews()))
            assert reviews()[0].input.root.hint == "NAME [FOCUS]"
            await editor.say(session, "/notes:review a")
            assert len(server_pids(place, str(NOTES))) == 1
        assert editor.process.returncode == 0

    asyncio.run(story())
    assert "Review the note a for its spelling" in server.requests[-1].prompt
    assert not wait_gone(server_pids(place, str(NOTES)), 0.0)


@pytest.mark.nightly
async def test_what_cannot_be_used_is_a_notice(place: Place, serve: Serve) -> None:
    """A taken name, a transport that is not known and a broken server leave the others usable."""
    rest = f'[mcp.mine]\ncommand = ["{sys.executable}", "{NOTES}"]\n'
    rest += '[permissions]\nrules = [{ tool = "mcp__odd*", do = "deny" }]\n'
    environment = {"tool": "mcp__odd__environment", "arguments": {}}
    server = serve(Tools([environment]), Text("Denied."), rest=rest)
    given: list[Any] = [
        stdio("mine", str(SERVER)),
        stdio("odd", str(SERVER)),
        stdio("odd", str(SERVER)),
        stdio("My \x1b[31mserver", str(SERVER)),
        SseMcpServer(type="sse", name="old", url="http://127.0.0.1:9/", headers=[]),
        HttpMcpServer(type="http", name="web", url="http://127.0.0.1:9/", headers=[]),
    ]
    async with editing(place) as editor:
        opened = await editor.agent.new_session(cwd=str(place.folder), mcp_servers=given)
        session = opened.session_id
        await ready(editor, session)
        await editor.say(session, "go")
        text = editor.text(session)
        assert "`mine` is left out: there is another one of that name" in text
        assert "`odd` is left out" in text
        assert "`old` cannot be used: steersman knows commands and HTTP" in text
        assert "MCP server `web` cannot be used" in text
        assert "\x1b" not in text
    names = offered(server, 0)
    assert {"mcp__odd__echo", "mcp__mine__look_up"} <= set(names)
    assert "mcp__mine__echo" not in names
    assert [name for name in names if name.startswith("mcp__My_")]
    assert "rule" in server.requests[-1].body["messages"][-1]["content"]
    assert not wait_gone(server_pids(place, str(SERVER)), 0.0)
