"""Testing a model against limited servers: each limit is reported, with the alternative."""

import pytest
from models.conftest import NONE
from support.coroutines import run
from support.model_server import Hang, ModelServer, Stall, Status, Text, Tools
from support.patience import seconds

from steersman.machines.errors import ModelError
from steersman.ports.models.anthropic import AnthropicModel
from steersman.ports.models.chat import ChatModel
from steersman.ports.models.model import Model
from steersman.ports.models.trial import Trial, try_out

CALL = {"tool": "report", "arguments": {"word": "ready"}}
FORM = Text('{"colour": "green"}', match="red or green")
LONG = Stall("one two three", match="Count from")


async def tried(model: Model, seconds: float = 10.0) -> dict[str, Trial]:
    """Try everything, and close the model."""
    try:
        return {one.name: one async for one in try_out(model, seconds, print)}
    finally:
        await model.aclose()


@pytest.mark.parametrize("kind", [ChatModel, AnthropicModel])
def test_a_good_model_is_found_good(asker, kind) -> None:
    """Over both APIs everything works, and the long answer was really cut off."""
    form = Tools([{"tool": "give_answer", "arguments": {"colour": "green"}}], match="red or green")
    answers = [Tools([CALL], text="I am ready."), FORM if kind is ChatModel else form, LONG]
    with ModelServer(answers, window=9000) as server:
        found = run(tried(kind(server.base_url, "claude-test")))
        assert server.requests[2].closed.wait(seconds(5))
    assert [one.name for one in found.values() if not one.is_good] == []
    assert found["window"].text == ("9,000 tokens" if kind is ChatModel else "200,000 tokens")


def test_a_limited_model_is_reported_with_the_alternative(asker) -> None:
    """No tools, no stream, no usage, no form, no window: each line names its consequence."""
    refusal = Status(400, {"error": {"message": "this model does not support tools"}})
    with ModelServer([refusal, Text("ready", stream=False, usage=None)]) as server:
        model = ChatModel(server.base_url, "m", retry=NONE)
        found = run(tried(model))
    bad = {one.name for one in found.values() if not one.is_good}
    assert bad == {"streaming", "tools", "usage", "form", "window"}
    assert "does not support tools" in found["tools"].text
    assert 'tool_dialect = "json"' in found["tools"].then
    assert all(found[name].then for name in bad)


def test_a_stream_that_goes_silent_is_given_up(asker) -> None:
    """A short answer that never ends is an error with a next step."""
    with ModelServer([Hang()]) as server, pytest.raises(ModelError, match="did not finish"):
        run(tried(ChatModel(server.base_url, "m"), 0.3))
