"""A call that a model wrote as text is made, and the model is asked for JSON from then on."""

import asyncio
import json

from models.conftest import Printing

from steersman.machines.conversation import ChatMessage, ToolSchema
from steersman.ports.models.dialect import NOTICE, ReadingModel
from steersman.ports.models.model import AnswerListener, ModelRequest

READ = ToolSchema(name="read", description="Read.", parameters={"type": "object"})
REQUEST = ModelRequest(
    system="s", messages=(ChatMessage(role="user", text="what is in a.txt?"),), tools=(READ,)
)


def test_a_printed_call_is_a_call() -> None:
    """The words before it stay, a notice says what follows, and JSON is asked for next time."""
    printed = 'I look.\n```json\n{"name": "read", "arguments": {"path": "a.txt"}}\n```'
    inner = Printing(printed, json.dumps({"say": "It is empty."}))
    notices: list[str] = []
    model = ReadingModel(inner)
    listener = AnswerListener(on_notice=notices.append)
    answer = asyncio.run(model.answer(REQUEST, listener))
    assert (answer.text, answer.stop_reason, notices) == ("I look.", "tools", [NOTICE])
    (call,) = answer.tool_calls
    assert (call.tool, call.arguments) == ("read", {"path": "a.txt"})
    assert asyncio.run(model.answer(REQUEST, listener)).text == "It is empty."
    first, second = inner.asked
    assert first.response_schema is None
    assert second.response_schema is not None
    assert len(notices) == 1


def test_other_answers_pass() -> None:
    """JSON that names no offered tool is data; nothing is read where no tool was offered."""
    text = '{"name": "write", "arguments": {}}'
    assert asyncio.run(ReadingModel(Printing(text)).answer(REQUEST, AnswerListener())).text == text
    bare = ModelRequest(system="", messages=REQUEST.messages)
    text = '{"name": "read", "arguments": {}}'
    assert asyncio.run(ReadingModel(Printing(text)).answer(bare, AnswerListener())).text == text
