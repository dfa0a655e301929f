"""What servers send, and what has to come of it: the rows of `streams.toml`, against a real server."""

import asyncio
import json
import re
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from models.conftest import QUICK
from msgspec.structs import replace
from support.model_server import Behaviour, Door, ModelServer, Raw, Status, Text

from steersman.machines.conversation import ChatMessage, ToolSchema
from steersman.machines.errors import ModelError
from steersman.ports.models.anthropic import AnthropicModel
from steersman.ports.models.chat import ChatModel
from steersman.ports.models.error_text import ServerErrorText
from steersman.ports.models.model import AnswerListener, ModelAnswer, ModelRequest
from steersman.ports.models.retry import GO_ON, RepeatingModel
from steersman.ports.models.stream import json_objects

ROWS: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("streams.toml").read_text("utf-8")
)["row"]
KINDS = {"chat": ChatModel, "messages": AnthropicModel}
READ = ToolSchema(name="read", description="Read.", parameters={"type": "object"})


def behaviour(body: str, size: int) -> Behaviour:
    """Return what the server does for a body; it is sent in pieces of so many characters, 0 for one."""
    if body.startswith("HTTP "):
        _, status, content = body.split(" ", 2)
        return Status(int(status), json.loads(content))
    sent = body.removesuffix("<cut>")
    splits = range(size, len(sent.encode()), size) if size else ()
    return Raw(sent, splits=tuple(splits), is_cut=body.endswith("<cut>"))


def asked(asker: Any, row: dict[str, Any], size: int = 0) -> tuple[ModelAnswer | ModelError, Any]:
    """Ask a model whose server sends what the row says; return what came of it, and the requests."""
    request = ModelRequest(
        system="",
        messages=(ChatMessage(role="user", text="Hi"),),
        tools=(READ,),
        call_prefix="t1.s1.c",
    )
    with ModelServer([behaviour(body, size) for body in row["bodies"]]) as server:
        inner = KINDS[row.get("format", "chat")](server.base_url, "m", key="sk-secret", retry=QUICK)
        try:
            [answer] = asker(RepeatingModel(inner, QUICK), request)
        except ModelError as error:
            return error, server.requests
        return answer, server.requests


def checked(asker: Any, row: dict[str, Any], size: int = 0) -> None:
    """Compare with the right values of a row."""
    result, requests = asked(asker, row, size)
    assert len(requests) == row.get("requests", 1), result
    if "fault" in row:
        assert isinstance(result, ModelError)
        assert row["fault"] in result.message
        assert row["hint"] in result.hint
        return
    assert isinstance(result, ModelAnswer), result
    calls = [
        f"{call.tool} {json.dumps(call.arguments, ensure_ascii=False)}{call.fault}"
        for call in result.tool_calls
    ]
    assert (result.text, calls) == (row.get("text", ""), row.get("calls", []))
    assert "".join(asker.pieces) == result.text


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_what_servers_send_becomes_what_is_right(asker: Any, row: dict[str, Any]) -> None:
    """Text, calls, faults and the number of requests are as the table says."""
    checked(asker, row)


@pytest.mark.nightly
def test_the_pieces_in_which_it_comes_do_not_matter(asker: Any) -> None:
    """The same comes of each row when the network cuts it into pieces of three bytes."""
    for row in ROWS:
        if sum(map(len, row["bodies"])) < 200:
            asker.pieces.clear()
            checked(asker, row, 3)


def test_a_continuation_shows_the_model_what_came(asker: Any) -> None:
    """The second request ends with the part that was shown, and with what is asked for."""
    row = next(row for row in ROWS if row["name"] == "a lost connection after text is continued")
    _, requests = asked(asker, row)
    assert requests[1].body["messages"][-2:] == [
        {"role": "assistant", "content": "One "},
        {"role": "user", "content": GO_ON},
    ]
    assert requests[1].body["messages"][:-2] == requests[0].body["messages"]


@pytest.mark.parametrize("name", ["one id for two calls", "messages: one id for two calls"])
def test_ids_of_calls_are_unique_on_the_wire(asker: Any, name: str) -> None:
    """Each call goes back with an id that no other has, also of another answer, and its result has it."""
    row = next(row for row in ROWS if row["name"] == name)
    answer, _ = asked(asker, row)
    assert isinstance(answer, ModelAnswer)
    again = [replace(call, call=call.call.replace("s1", "s2")) for call in answer.tool_calls]
    said: list[ChatMessage] = []
    for calls in (answer.tool_calls, tuple(again)):
        said.append(ChatMessage(role="assistant", text="", tool_calls=calls))
        said += [ChatMessage(role="tool", text="x", call=call.call) for call in calls]
    kind = KINDS[row.get("format", "chat")]
    wire = json.dumps([value for _, value in kind.format.objects(said)])
    ids = re.findall(r'"(?:id|tool_call_id|tool_use_id)": "(\w+)"', wire)
    assert (len(set(ids)), sorted(ids)) == (4, sorted([*set(ids)] * 2))


class _Jumping(asyncio.SelectorEventLoop):
    """A loop whose clock can leap, as it does for a process that was stopped meanwhile."""

    leap = 0.0

    def time(self) -> float:
        """Return the time in seconds."""
        return super().time() + self.leap


@pytest.mark.nightly
def test_time_in_which_the_process_was_stopped_is_no_silence() -> None:
    """The call goes on after a leap over its limit, and what the server sends then is read."""
    door = Door()
    said: list[str] = []
    loop = _Jumping()

    def hear(piece: str) -> None:
        said.append(piece)
        if not loop.leap:
            loop.call_later(0.05, stopped)  # when it waits for more

    def stopped() -> None:
        loop.leap = 1000.0
        loop.call_later(0.05, door.open)

    with (
        ModelServer([Text("One two", door=door)]) as server,
        asyncio.Runner(loop_factory=lambda: loop) as runner,
    ):
        model = ChatModel(server.base_url, "m", silence=60.0)
        request = ModelRequest(system="", messages=(ChatMessage(role="user", text="Hi"),))
        answer = runner.run(model.answer(request, AnswerListener(on_text=hear)))
        runner.run(model.aclose())
    assert (answer.text, "".join(said)) == ("One two", "One two")


@pytest.mark.parametrize("begin", ["data: ", ""])
def test_a_long_object_is_not_parsed_on_the_loop(begin: str) -> None:
    """In an event or bare; the loop passes on a stop meanwhile."""
    body = f"{begin}{json.dumps({'text': ['x'] * 100_000})}\n\n".encode()
    here = list[int]()

    def look(frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_code.co_name == "parse_json":
            here.append(len(frame.f_locals["text"]))

    async def pieces() -> AsyncIterator[bytes]:
        yield body

    async def read() -> list[dict[str, Any]]:
        diagnostic = ServerErrorText(url="http://example.org")
        return [found async for found in json_objects(pieces(), diagnostic)]

    sys.setprofile(look)
    try:
        [found] = asyncio.run(read())
    finally:
        sys.setprofile(None)
    assert len(found["text"]) == 100_000
    assert here == []
