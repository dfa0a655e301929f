"""The scripted model: files, order, matching, delays and errors."""

import asyncio
import json
import math

import pytest

from steersman.machines.conversation import ChatMessage, ToolRequest, Usage
from steersman.machines.errors import ConfigError, ModelError
from steersman.ports.models.model import ModelAnswer, ModelRequest
from steersman.ports.models.scripted import ScriptedAnswer, ScriptedModel, load_script

TOML = """
[[answer]]
match = "notes"
text = "I will read it."
usage = { input = 12, output = 3 }
[[answer.tool_calls]]
tool = "read"
arguments = { path = "notes.txt" }
[[answer]]
match = "notes"
text = "It says hello."
[[answer]]
text = "First."
[[answer]]
text = "Second and last."
"""


@pytest.fixture
def script(tmp_path):
    """Write a script file and load it."""

    def write(text: str, name: str = "script.toml"):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return load_script(path)

    return write


def test_unmatched_answers_come_in_order_and_the_last_repeats(asker, script):
    """Three requests to two answers give the first, the last, the last."""
    answers = asker(ScriptedModel(script(TOML)), "Hi", "Hi", "Hi")
    assert [answer.text for answer in answers] == ["First.", "Second and last.", "Second and last."]
    assert asker.pieces[:1] == ["First."]


def test_matching_answers_follow_the_turn(asker, script):
    """The first match answers the message, the second the call after the tools have run."""
    model = ScriptedModel(script(TOML))
    call = ToolRequest(call="t1.c1", tool="read", arguments={"path": "notes.txt"})
    asked = (ChatMessage(role="user", text="what do my notes say?"),)
    read = (
        *asked,
        ChatMessage(role="assistant", text="", tool_calls=(call,)),
        ChatMessage(role="tool", text="x", call="t1.c1"),
    )
    again = (*read, ChatMessage(role="assistant", text="It says hello."), *asked)
    requests = [
        ModelRequest(system="", messages=talk, call_prefix="t1.c") for talk in (asked, read, again)
    ]
    first, second, third = asker(model, *requests)
    assert first == ModelAnswer(
        text="I will read it.",
        tool_calls=(call,),
        usage=Usage(input=12, output=3),
        stop_reason="tools",
    )
    assert (second.text, second.stop_reason) == ("It says hello.", "stop")
    assert third == first


def test_no_answer_is_an_error_with_the_prompt(asker):
    """A script that does not fit says for what."""
    with pytest.raises(ModelError, match="no answer for `Hi`") as caught:
        asker(ScriptedModel([ScriptedAnswer(text="x", match="^bye$")]), "Hi")
    assert "[[answer]]" in caught.value.hint


def test_delays_are_slept_through(asker):
    """The delay lies before the first piece, the chunk delay before each further one."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    scripted = ScriptedAnswer(text="one two three", delay=0.5, chunk_delay=0.1)
    asker(ScriptedModel([scripted], sleep=sleep), "Hi")
    assert slept == [0.5, 0.1, 0.1]
    assert asker.pieces == ["one ", "two ", "three"]


def test_error_comes_after_the_text(asker):
    """An answer with text and error breaks off after the text."""
    with pytest.raises(ModelError, match="out of order"):
        asker(ScriptedModel([ScriptedAnswer(text="Well", error="out of order")]), "Hi")
    assert asker.pieces == ["Well"]


async def test_endless_delay_can_be_cancelled(asker, script):
    """`delay = inf` never answers, and ends at once when its task is cancelled."""
    assert script("[[answer]]\ndelay = inf")[0].delay == math.inf
    model = ScriptedModel(script("[[answer]]\ndelay = inf"))
    task = asyncio.create_task(asker.ask(model, "Hi"))
    done, _ = await asyncio.wait([task], timeout=0)
    assert not done
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_json_is_the_same(script):
    """A JSON file of the same shape gives the same script."""
    data = {"answer": [{"text": "a", "tool_calls": [{"tool": "list"}]}]}
    assert script(json.dumps(data), "script.json") == (
        ScriptedAnswer(text="a", tool_calls=(("list", {}),)),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[answer", "the script is no TOML"),
        ("x = 1", "the script has no answers"),
        ("[[answer]]\ntxt = 'a'", "answer 1: unknown key `txt`"),
        ("[[answer]]\ntext = 1", "answer 1: `text` is of the wrong type"),
        ("[[answer]]\nmatch = '('", "answer 1: "),
        ("[[answer]]\nusage = { tokens = 1 }", "answer 1: "),
        ("[[answer]]\ntool_calls = [{ name = 'x' }]", "answer 1: "),
        ("answer = [1]", "answer 1: is no table"),
    ],
)
def test_broken_scripts_are_refused_with_the_place(script, text, words):
    """Each fault names the file and the answer."""
    with pytest.raises(ConfigError) as caught:
        script(text)
    assert words in caught.value.message
    assert caught.value.file.endswith("script.toml")
    assert caught.value.hint


def test_missing_script_is_refused(tmp_path):
    """A file that is not there is a configuration error."""
    with pytest.raises(ConfigError, match="cannot be read"):
        load_script(tmp_path / "none.toml")
