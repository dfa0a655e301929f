"""Many tools of MCP servers, and what each request lists of them."""

import json
import sys
from typing import Any

from support.driver import Place
from support.mcp_servers import SERVER
from support.model_server import Text, Tools

from steersman.machines.context import CHARACTERS

from .test_sessions import by_name, last_result, listed, notes, table

FIND = {"tool": "find_tools", "arguments": {"words": "look up a note"}}


def test_three_hundred_tools(place: Place, serve: Any) -> None:
    """`hi` takes less than 2,000 tokens; the right one is found, asked about by name, and called."""
    many = table("many", sys.executable, str(SERVER), "many")
    server = serve(
        Text("Hello."),
        Tools([FIND]),
        by_name("mcp__notes__look_up", name="shopping"),
        Text("Milk."),
        rest=many + notes(),
    )
    chat = place.chat("hi")
    chat.wait("turn_ended", status="completed")
    sent = json.dumps(server.requests[0].body)
    assert len(sent) // CHARACTERS < 2_000
    assert '"find_tools"' in sent
    assert "mcp__" not in sent

    chat.send("what is on the list?")
    question = chat.wait("question")
    assert (question["tool"], question["arguments"]) == (
        "mcp__notes__look_up",
        {"name": "shopping"},
    )
    assert last_result(server).startswith('{"name": "mcp__notes__look_up"')
    chat.answer(question, "allow")
    chat.wait("turn_ended", status="completed")
    assert last_result(server) == "The note shopping: buy milk."
    assert len(listed(server)) == 1
    rows = [row["name"] for row in chat.ask("/tools")["data"]["tools"]]
    assert len([name for name in rows if name.startswith("mcp__many__")]) >= 300
    assert chat.close() == 0
